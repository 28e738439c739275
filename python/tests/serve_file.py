"""Serves one file over HTTP, whatever the path, for the tests of the examples.

python serve_file.py PORT BYTES
"""

import http.server
import sys

FILE = (bytes(range(251)) * (int(sys.argv[2]) // 251 + 1))[: int(sys.argv[2])]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(FILE)))
        self.end_headers()
        self.wfile.write(FILE)

    def log_message(self, format: str, *args: object) -> None:
        pass


with http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler) as server:
    server.serve_forever()
