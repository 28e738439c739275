"""The emulator's token bucket beside tc's tbf, on the same parameters and the same datagrams.

    sudo python3 bench/tc/tbf.py target/dist/sweetspot

Datagrams of 1000 bytes (IP) in three patterns go once across `sweetspot emulate` and once across two namespaces joined by a veth
pair with tbf on it. tbf counts Ethernet's 14 bytes, so that its rate, burst and limit are 1.014 times ours. Prints, for each
pattern and run, goodput and the mean queueing delay (from the sender's clock to the kernel's receive stamp, less the least)
by both, as Markdown.
"""

import contextlib
import json
import os
import random
import socket
import statistics
import struct
import subprocess
import sys
import time

RATE, BURST, LIMIT = 20_000_000, 15_000, 60_000
SIZE, FRAME = 1000, 1014
SECONDS, RUNS, PORT = 5.0, 3, 5001
# For each pattern, the mean load and the burst size in datagrams.
PATTERNS = {"Poisson, load 0.9": (0.9, 1), "Poisson, load 1.2": (1.2, 1), "bunches of 50, load 0.8": (0.8, 50)}
SO_TIMESTAMPNS = 35
NAMES = ("sweetspot-tbf-a", "sweetspot-tbf-b")


def send(address: str, pattern: str, seed: int) -> None:
    load, bunch = PATTERNS[pattern]
    gaps = random.Random(seed)
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect((address, PORT))
    payload = bytearray(SIZE - 28)
    mean = bunch * SIZE * 8 / (load * RATE)
    start = time.clock_gettime(time.CLOCK_REALTIME) + 0.2
    due = start
    while due < start + SECONDS:
        while time.clock_gettime(time.CLOCK_REALTIME) < due:
            pass
        for _ in range(bunch):
            struct.pack_into("d", payload, 0, time.clock_gettime(time.CLOCK_REALTIME))
            out.send(payload)
        due += gaps.expovariate(1 / mean) if bunch == 1 else mean
    time.sleep(0.3)
    # A lost datagram is sent again; the far end exits once it has received one.
    with contextlib.suppress(ConnectionRefusedError):
        for _ in range(20):
            out.send(b"over")
            time.sleep(0.02)


def receive(file: str) -> None:
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sink.bind(("0.0.0.0", PORT))
    sink.settimeout(30)
    delays: list[float] = []
    while True:
        data, ancillary, _, _ = sink.recvmsg(2048, 64)
        if data == b"over":
            break
        seconds, nanos = struct.unpack("qq", ancillary[0][2][:16])
        delays.append(seconds + nanos / 1e9 - struct.unpack_from("d", data)[0])
    with open(file, "w", encoding="ascii") as found:
        json.dump(delays, found)


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def result(file: str) -> tuple[float, float]:
    with open(file, encoding="ascii") as found:
        delays = json.load(found)
    os.remove(file)
    goodput = len(delays) * SIZE * 8 / SECONDS / 1e6
    return goodput, (statistics.mean(delays) - min(delays)) * 1e3


def ours(program: str, pattern: str, seed: int) -> tuple[float, float]:
    file = f"/tmp/sweetspot-tbf-{os.getpid()}.json"
    me = f"{sys.executable} {os.path.abspath(__file__)}"
    path = f"rate={RATE}bit/s delay=2ms buffer={LIMIT}B burst={BURST}B"
    far, near = f"{me} receive {file}", f"sleep 0.5; {me} send $SWEETSPOT_FAR '{pattern}' {seed}"
    run(program, "emulate", "--quiet", "--path", path, "--far", far, "--", "sh", "-c", near)
    return result(file)


def theirs(pattern: str, seed: int) -> tuple[float, float]:
    file = f"/tmp/sweetspot-tbf-{os.getpid()}.json"
    near, far = NAMES
    try:
        for name in NAMES:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "va", "netns", near, "type", "veth", "peer", "name", "vb", "netns", far)
        for name, link, address in ((near, "va", "10.99.0.1"), (far, "vb", "10.99.0.2")):
            run("ip", "-n", name, "address", "add", f"{address}/24", "dev", link)
            run("ip", "-n", name, "link", "set", link, "up")
        share = FRAME / SIZE
        limits = ("rate", f"{round(RATE * share)}bit", "burst", str(round(BURST * share)), "limit", str(round(LIMIT * share)))
        run("tc", "-n", near, "qdisc", "add", "dev", "va", "root", "tbf", *limits)
        me = (sys.executable, os.path.abspath(__file__))
        with subprocess.Popen(("ip", "netns", "exec", far, *me, "receive", file)) as sink:
            time.sleep(0.5)
            run("ip", "netns", "exec", near, *me, "send", "10.99.0.2", pattern, str(seed))
            sink.wait(timeout=60)
    finally:
        for name in NAMES:
            subprocess.run(("ip", "netns", "delete", name), check=False)
    return result(file)


def main() -> None:
    program = sys.argv[1]
    print("| pattern | run | goodput, ours, Mbit/s | tbf | off | queue, ours, ms | tbf | off |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for pattern in PATTERNS:
        for seed in range(1, RUNS + 1):
            (goodput, queue), (their_goodput, their_queue) = ours(program, pattern, seed), theirs(pattern, seed)
            print(
                f"| {pattern} | {seed} | {goodput:.3f} | {their_goodput:.3f} | {goodput / their_goodput - 1:+.1%} "
                f"| {queue:.3f} | {their_queue:.3f} | {queue / their_queue - 1:+.1%} |",
                flush=True,
            )


if __name__ == "__main__":
    match sys.argv[1]:
        case "send":
            send(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        case "receive":
            receive(sys.argv[2])
        case _:
            main()
