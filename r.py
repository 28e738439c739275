import socket,sys,time
port=int(sys.argv[1]);rcv=int(sys.argv[2]);delay=float(sys.argv[3]);n=int(sys.argv[4]) if len(sys.argv)>4 else 1<<20
s=socket.socket()
s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)
if rcv:s.setsockopt(socket.SOL_SOCKET,socket.SO_RCVBUF,rcv)
s.bind(('',port));s.listen();
c,a=s.accept()
while 1:
    d=c.recv(n)
    if not d:break
    if delay:time.sleep(delay)
