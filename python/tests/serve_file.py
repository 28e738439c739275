"""Serves one file over HTTP, whatever the path, for the tests of sized sockets.

python serve_file.py PORT BYTES
"""

import http.server
import sys


def body(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def handler(file: bytes) -> type[http.server.BaseHTTPRequestHandler]:
    """Answers each request with `file`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(file)))
            self.end_headers()
            self.wfile.write(file)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def main(port: str, size: str) -> None:
    with http.server.ThreadingHTTPServer(("", int(port)), handler(body(int(size)))) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
