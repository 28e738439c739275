"""What `sweetspot tune daemon --via bpf` costs connections that it leaves alone: python3 bench/live/crowd.py PROGRAM

Needs root, cgroup v2 and iperf3. In a network namespace of its own, with the daemon and without it, by turns:

- 10,000 connections over loopback, of which 100 carry 1 MB/s each and the others 2,000 requests a second together: the
  daemon's CPU time;
- a request and its answer on one more connection beside them: the median and the 99th percentile of the response time;
- one connection at full speed, and nothing beside it.

Prints the rows of docs/results/crowd.md.
"""

import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PROCESSES, CONNECTIONS, BULK = 4, 10_000, 100
BULK_RATE, REQUESTS = 1_000_000, 2_000
ROUNDS, CROWD_SECONDS, FULL_SPEED_SECONDS = 5, 10, 5
STEP = 0.02


def pairs(count):
    """Loopback connections of this process to itself."""
    listener = socket.create_server(("127.0.0.1", 0))
    made = []
    for _ in range(count):
        near = socket.create_connection(listener.getsockname())
        far = listener.accept()[0]
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.append((near, far))
    return made


def load():
    """Runs one process's part of the crowd until its standard input ends."""
    made = pairs(CONNECTIONS // PROCESSES)
    bulk, others = made[: BULK // PROCESSES], made[BULK // PROCESSES :]
    piece, question = bytes(int(BULK_RATE * STEP)), bytes(64)
    print("open", flush=True)
    os.set_blocking(0, False)
    turn, due = 0, time.monotonic()
    while sys.stdin.buffer.raw.read(1) is None:
        for near, far in bulk:
            far.sendall(piece)
            left = len(piece)
            while left:
                left -= len(near.recv(left))
        for _ in range(int(REQUESTS * STEP) // PROCESSES):
            near, far = others[turn % len(others)]
            turn += 1
            near.sendall(question)
            far.recv(64)
            far.sendall(question)
            near.recv(64)
        due += STEP
        time.sleep(max(0.0, due - time.monotonic()))


def ask():
    """The median and the 99th percentile of the response time, in seconds."""
    [(near, far)] = pairs(1)
    took, end = [], time.monotonic() + CROWD_SECONDS
    while time.monotonic() < end:
        asked = time.monotonic()
        near.sendall(bytes(64))
        far.recv(64)
        far.sendall(bytes(64))
        near.recv(64)
        took.append(time.monotonic() - asked)
        time.sleep(0.001)
    took.sort()
    print(json.dumps([took[len(took) // 2], took[len(took) * 99 // 100]]))


def cpu_seconds(pid):
    """CPU time of a process and its living children in nanoseconds: counted in ticks, a process woken by a timer would be charged for
    others' time."""
    total = 0
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = entry.read_text().rpartition(")")[2].split()[1]
            if pid in (int(entry.parent.name), int(parent)):
                threads = entry.parent.glob("task/*/schedstat")
                total += sum(int(thread.read_text().split()[0]) for thread in threads)
        except OSError:
            continue
    return total / 1e9


def full_speed():
    with subprocess.Popen(["iperf3", "--server", "--one-off"], stdout=subprocess.DEVNULL):
        time.sleep(0.3)
        command = ["iperf3", "--client", "127.0.0.1", "--json", "--time", str(FULL_SPEED_SECONDS)]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(said.stdout)["end"]["sum_received"]["bits_per_second"]


def measure(daemon):
    """CPU time per second, the median and 99th percentile of the response time, and the full speed."""
    own = [sys.executable, os.path.abspath(__file__)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    crowd = [subprocess.Popen([*own, "load"], **pipes) for _ in range(PROCESSES)]
    for process in crowd:
        process.stdout.readline()
    time.sleep(1)
    before = cpu_seconds(daemon.pid) if daemon else 0.0
    began = time.monotonic()
    answers = json.loads(subprocess.run([*own, "ask"], capture_output=True, check=True).stdout)
    taken = time.monotonic() - began
    spent = (cpu_seconds(daemon.pid) - before) / taken if daemon else 0.0
    for process in crowd:
        process.communicate()
    return [spent, *answers, full_speed()]


def main(program):
    mount = next(line.split()[1] for line in open("/proc/self/mounts") if line.split()[2] == "cgroup2")
    outside = pathlib.Path(mount + open("/proc/self/cgroup").read().rpartition("0::")[2].strip())
    inside = outside / f"crowd-{os.getpid()}"
    inside.mkdir()
    rows = {"alone": [], "bpf": []}
    print("| | daemon, of a core | answer, median us | p99 us | full speed, Gbit/s |\n|---|--:|--:|--:|--:|")

    def show(side, cpu, median, p99, speed):
        print(f"| {side} | {cpu:.2%} | {median * 1e6:.1f} | {p99 * 1e6:.1f} | {speed / 1e9:.2f} |", flush=True)

    try:
        with tempfile.TemporaryDirectory() as scratch:
            policy = pathlib.Path(scratch, "policy.toml")
            policy.write_text('[[rule]]\ngoal = "throughput"\n')
            command = [program, "tune", "daemon", "--via", "bpf", "--quiet"]
            command += ["--cgroup", str(inside), "--policy", str(policy)]
            for _ in range(ROUNDS):
                for side in rows:
                    daemon = subprocess.Popen(command) if side == "bpf" else None
                    time.sleep(1.5)
                    if daemon and daemon.poll() is not None:
                        sys.exit("the daemon ended")
                    (inside / "cgroup.procs").write_text(str(os.getpid()))
                    rows[side].append(measure(daemon))
                    (outside / "cgroup.procs").write_text(str(os.getpid()))
                    if daemon:
                        daemon.send_signal(signal.SIGTERM)
                        daemon.wait()
                    show(side, *rows[side][-1])
    finally:
        (outside / "cgroup.procs").write_text(str(os.getpid()))
        time.sleep(0.5)
        inside.rmdir()
    for side, all_rounds in rows.items():
        show(f"**{side}, median**", *map(statistics.median, zip(*all_rounds)))


if __name__ == "__main__":
    if sys.argv[1] in ("load", "ask"):
        {"load": load, "ask": ask}[sys.argv[1]]()
    elif os.environ.get("CROWD_INSIDE") == "1":
        main(sys.argv[1])
    else:
        again = [sys.executable, os.path.abspath(__file__), os.path.abspath(sys.argv[1])]
        os.environ["CROWD_INSIDE"] = "1"
        # Continues in a separate network namespace.
        os.execvp("unshare", ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *again])
