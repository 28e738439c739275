"""An HTTPS server for curl: python3 https.py ADDRESS PORT DIRECTORY PEM"""
import functools
import http.server
import ssl
import sys

address, port, directory, pem = sys.argv[1:]


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


handler = functools.partial(Handler, directory=directory)
server = http.server.ThreadingHTTPServer((address, int(port)), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(pem)
# Not in accept(), where one slow client would keep the others waiting.
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
