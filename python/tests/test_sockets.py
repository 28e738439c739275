import asyncio
import gc
import http.client
import http.server
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import serve_file

import sweetspot as ss

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="windows are sized on Linux alone")

FILE = bytes(n % 251 for n in range(3_000_000))


@pytest.fixture
def server() -> Iterator[http.server.ThreadingHTTPServer]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve_file.handler(FILE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        with near, far:
            yield near, far


def clamp(sock: socket.socket) -> int:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP)


def test_two_ends_size_a_connection_together(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    with ss.sized(near, invite=True) as host:
        assert host.invitation is not None and len(host.invitation) == 24
        with ss.sized(far, invitation=host.invitation) as guest:
            assert guest.invitation is None
            end = time.monotonic() + 20
            while not (report := guest.report()) or not report.both_ends:
                assert time.monotonic() < end
                near.sendall(bytes(10_000))
                far.recv(10_000)


def test_text_that_is_not_an_invitation_is_a_value_error(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, _ = pair
    for garbage in (b"", b"S", bytes(24), bytes(1000)):
        with pytest.raises(ValueError, match="expected an invitation of 24 bytes"):
            ss.sized(near, invitation=garbage)
    with pytest.raises(ValueError, match="one of the two"):
        ss.sized(near, invite=True, invitation=bytes(24))


def test_a_limit_is_set_while_data_flows_and_lifted_at_the_end(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    before = clamp(near)
    with ss.sized(near, sizing="fixed:300kB") as live:
        deadline = time.monotonic() + 20
        while (report := live.report()) is None or report.limit != 300_000:
            assert time.monotonic() < deadline
            far.sendall(bytes(50_000))
            near.recv(50_000, socket.MSG_WAITALL)
            time.sleep(0.002)
        assert clamp(near) <= 300_000
        assert report.phase == "holding" and report.activity == "active"
        assert report.rtt_s is not None and report.rtt_s > 0
    assert clamp(near) >= before
    assert live.report() is None
    live.close()


def test_an_object_that_cannot_be_sized_is_an_error(pair: tuple[socket.socket, socket.socket]) -> None:
    near, _ = pair
    with pytest.raises(ValueError, match="nonsense"):
        ss.sized(near, sizing="nonsense")
    with pytest.raises(OSError, match="TCP"), open("/proc/self/stat") as file:
        ss.sized(file)
    with pytest.raises(ValueError, match="connect it first"):
        ss.sized(http.client.HTTPConnection("127.0.0.1"))
    with ss.sized(near), pytest.raises(OSError, match="attached already"):
        ss.sized(near)
    near.close()
    with pytest.raises(OSError, match="closed"):
        ss.sized(near)


def test_a_socket_that_is_closed_first_has_no_report(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    live = ss.sized(near)
    near.close()
    # Nothing keeps the connection open.
    assert far.recv(1) == b""
    deadline = time.monotonic() + 20
    while live.report() is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    live.close()


def test_a_forked_child_gets_errors_for_its_parents_sockets(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, _ = pair
    live = ss.sized(near)
    child = os.fork()
    if child == 0:
        try:
            live.report()
        except OSError as error:
            os._exit(0 if "before fork" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert live.report() is not None
    live.close()


def test_asyncio_transports_are_sized(server: http.server.ThreadingHTTPServer) -> None:
    async def download() -> str:
        reader, writer = await asyncio.open_connection(*server.server_address)
        with ss.sized(writer.transport) as live:
            report = live.report()
            assert report is not None
        with ss.sized(writer):
            pass
        writer.close()
        return report.activity

    assert asyncio.run(download()) == "idle"


def test_every_connection_of_a_pool_is_sized_while_it_is_open(
    server: http.server.ThreadingHTTPServer,
) -> None:
    urllib3 = pytest.importorskip("urllib3")
    manager = urllib3.PoolManager()
    live = ss.size_pools(manager, sizing="kernel")
    host, port = server.server_address[:2]
    assert manager.request("GET", f"http://{host}:{port}/").data == FILE
    assert len(live) == 1 and live[0].report() is not None
    manager.clear()
    del manager
    gc.collect()
    assert live == []


@pytest.mark.parametrize("example", ["requests", "asyncio", "http_client"])
def test_an_example_downloads_the_whole_file(
    example: str,
    server: http.server.ThreadingHTTPServer,
    root: pathlib.Path,
    tmp_path: pathlib.Path,
) -> None:
    if example == "requests":
        pytest.importorskip("requests")
    host, port = str(server.server_address[0]), str(server.server_address[1])
    copy = tmp_path / "copy"
    source = [f"http://{host}:{port}/file"] if example == "requests" else [host, port, "/file"]
    program = root / "examples" / f"{example}_download.py"
    ran = subprocess.run(
        [sys.executable, program, *source, copy], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "limited by" in ran.stdout
    assert copy.read_bytes() == FILE
