import socket,sys,time,os
host=sys.argv[1];port=int(sys.argv[2]);snd=int(sys.argv[3]);delay=float(sys.argv[4]);n=int(sys.argv[5]);T=float(sys.argv[6])
s=socket.socket()
if snd:s.setsockopt(socket.SOL_SOCKET,socket.SO_SNDBUF,snd)
cc=os.environ.get("CC")
if cc:s.setsockopt(6,13,cc.encode())
s.connect((host,port));b=bytes(n);t=time.time()
while time.time()-t<T:
    s.sendall(b)
    if delay:time.sleep(delay)
s.close()
