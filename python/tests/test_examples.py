"""The examples across an emulated path: downloads are complete and sized, and no limit remains."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import serve_file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="windows are sized on Linux alone")

# 50 Mbit/s x 40 ms = 250 kB; the buffer holds twice that.
PATH = "rate=50Mbit/s rtt=40ms buffer=2bdp"
# The path plus 60 ms of queue.
LIMIT = 625_000
BYTES = 12_000_000
PORT = "9000"
SERVER = f"http://10.77.0.2:{PORT}"

EXAMPLES = {
    "requests": [f"{SERVER}/file"],
    "asyncio": ["10.77.0.2", PORT, "/file"],
    "http_client": ["10.77.0.2", PORT, "/file"],
    "boto3": [SERVER, "bucket", "file"],
}


def emulate(root: pathlib.Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a client command across the path from a server."""
    binary = os.environ.get("SWEETSPOT_BIN", "sweetspot")
    if shutil.which(binary) is None:
        pytest.skip("there is no sweetspot to emulate a path (SWEETSPOT_BIN)")
    server = f"{sys.executable} {root}/python/tests/serve_file.py {PORT} {BYTES}"
    # The server needs a moment before it listens.
    line = ["sh", "-c", 'sleep 2; exec "$@"', "sh", *command]
    ran = subprocess.run(
        [binary, "emulate", "--quiet", "--path", PATH, "--far", server, "--", *line],
        capture_output=True,
        text=True,
        check=False,
    )
    if re.search("emulator: cannot (?!run)", ran.stderr):
        pytest.skip(f"no path can be emulated here (root): {ran.stderr.strip()}")
    return ran


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_download_is_complete_and_sized_and_ends_without_a_limit(
    example: str, root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    if example in ("boto3", "requests"):
        pytest.importorskip(example, reason=f"there is no {example} (pip install {example})")
    copy, trace = tmp_path / "copy", tmp_path / "trace"
    program = [sys.executable, f"{root}/examples/{example}_download.py"]
    strace = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=setsockopt", "-o", str(trace)]
    traced = strace if shutil.which("strace") else []
    ran = emulate(root, [*traced, *program, *EXAMPLES[example], str(copy), f"fixed:{LIMIT}B"])
    assert ran.returncode == 0, ran.stderr
    assert copy.read_bytes() == serve_file.body(BYTES)
    assert "holding, limited by " in ran.stdout, ran.stdout
    if not traced:
        pytest.skip("limits were not watched: there is no strace (apt-get install strace)")
    clamps = re.findall(r"TCP_WINDOW_CLAMP, \[(\d+)\], 4\) = 0", trace.read_text())
    assert str(LIMIT) in clamps
    assert int(clamps[-1]) > LIMIT
