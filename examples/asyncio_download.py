"""Downloads with asyncio; Sweetspot sizes the window of the connection.

python examples/asyncio_download.py HOST PORT PATH FILE [SIZING]
"""

import asyncio
import sys

import sweetspot


async def main(host: str, port: str, path: str, to: str, sizing: str = "sobas:live") -> None:
    reader, writer = await asyncio.open_connection(host, int(port))
    report = None
    with sweetspot.sized(writer, sizing=sizing) as live, open(to, "wb") as file:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        while block := await reader.read(256 * 1024):
            file.write(block)
            report = live.report() or report
    writer.close()
    if report:
        print(f"{report.phase}, limited by {report.limited_by}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
