"""Downloads with http.client; Sweetspot sizes the window of the connection.

python examples/http_client_download.py HOST PORT PATH FILE [SIZING]
"""

import http.client
import sys

import sweetspot


def main(host: str, port: str, path: str, to: str, sizing: str = "sobas:live") -> None:
    connection = http.client.HTTPConnection(host, int(port))
    connection.connect()
    report = None
    with sweetspot.sized(connection, sizing=sizing) as live, open(to, "wb") as file:
        connection.request("GET", path)
        response = connection.getresponse()
        while block := response.read(256 * 1024):
            file.write(block)
            report = live.report() or report
    connection.close()
    if report:
        print(f"{report.phase}, limited by {report.limited_by}")


if __name__ == "__main__":
    main(*sys.argv[1:])
