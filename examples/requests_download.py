"""Downloads with requests; Sweetspot sizes the window of every connection.

python examples/requests_download.py URL FILE [SIZING]
"""

import sys

import requests

import sweetspot


def main(url: str, path: str, sizing: str = "sobas:live") -> None:
    session = requests.Session()
    live = sweetspot.size_pools(session.get_adapter(url).poolmanager, sizing=sizing)
    report = None
    with session.get(url, stream=True) as response, open(path, "wb") as file:
        response.raise_for_status()
        for block in response.iter_content(256 * 1024):
            file.write(block)
            report = live[0].report() or report if live else report
    session.close()
    if report:
        print(f"{report.phase}, limited by {report.limited_by}")


if __name__ == "__main__":
    main(*sys.argv[1:])
