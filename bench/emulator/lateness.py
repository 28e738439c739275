"""How late the emulator releases packets, by queue discipline, element and number of hops.

    python3 bench/emulator/lateness.py target/dist/sweetspot > docs/results/lateness.md

Needs iperf3, and the right to make network namespaces. Each path carries one iperf3 flow for five seconds, five
times, all paths in turn, so that other load on the machine meets all of them. Prints medians.
"""

import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

RTT_MS = 20
TURNS = 5
SECONDS = 5


def one_hop(rate: int, more: str = "") -> str:
    buffer = rate * 1_000_000 // 8 * RTT_MS // 1000
    return f"rate={rate}Mbit/s rtt={RTT_MS}ms buffer={buffer}B {more}"


def hops(rate: int, number: int) -> str:
    buffer = rate * 1_000_000 // 8 * RTT_MS // 1000
    hop = f'[[path.hop]]\nrate = "{rate}Mbit/s"\nbuffer = "{buffer}B"\ndelay = "{RTT_MS / 2 / number}ms"\n'
    return (
        f'seed = 1\nduration = "{SECONDS}s"\n[path]\nrtt = "{RTT_MS}ms"\n' + hop * number + "[[transfer]]\n"
    )


KINDS = {
    "drop-tail": one_hop,
    "RED": lambda rate: one_hop(rate, "queue=red"),
    "CoDel": lambda rate: one_hop(rate, "queue=codel"),
    "FQ-CoDel": lambda rate: one_hop(rate, "queue=fq-codel"),
    "PIE": lambda rate: one_hop(rate, "queue=pie"),
    "policer": lambda rate: one_hop(rate, f"policer={rate * 9 // 10}Mbit/s policer_burst=100kB"),
    "jitter of 2 ms": lambda rate: one_hop(rate, "jitter=2ms"),
    "losses in bursts": lambda rate: one_hop(rate, "loss=0.01% loss_burst=5"),
    "two hops": lambda rate: hops(rate, 2),
    "three hops": lambda rate: hops(rate, 3),
}


def measured(program: str, path: str, scratch: pathlib.Path) -> dict:
    if "[path]" in path:
        file = scratch / "path.toml"
        file.write_text(path)
        path = str(file)
    certificate = scratch / "certificate.json"
    certificate.unlink(missing_ok=True)
    flow = f"sleep 0.3; iperf3 --client $SWEETSPOT_FAR --time {SECONDS} >/dev/null"
    command = [program, "emulate", "--quiet", "--certificate", certificate, "--path", path]
    command += ["--far", "exec iperf3 --server --one-off", "--", "sh", "-c", flow]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if not certificate.exists():
        sys.exit(f"{path}: {done.stderr}")
    return json.loads(certificate.read_text())


def main() -> None:
    program = sys.argv[1]
    runs: dict[tuple[str, int], list[dict]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(TURNS):
            for rate in (100, 500):
                for name, path in KINDS.items():
                    run = measured(program, path(rate), pathlib.Path(scratch))
                    runs.setdefault((name, rate), []).append(run)
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip()
    print(
        f"# How late the emulator is\n\n"
        f"- **Question**: how much later than its time does the emulator release a packet?\n"
        f"- **Method**: one iperf3 flow for {SECONDS} s over each path (RTT {RTT_MS} ms, one BDP of buffer at each hop), "
        f"{TURNS} runs in turn; the medians of what\n  the certificates report for the direction of the data. "
        f"The columns are the median, the 99 % quantile and the maximum.\n\n"
        f"| | |\n|---|---|\n"
        f"| command | `python3 bench/emulator/lateness.py target/dist/sweetspot` |\n"
        f"| program | {version} |\n"
        f"| measured on | {platform.platform(terse=True)}, {time.strftime('%Y-%m-%d', time.gmtime())} |\n\n"
        f"| path | rate, Mbit/s | carried | late, us: 50 % | 99 % | latest | certified |\n"
        f"|---|--:|--:|--:|--:|--:|--:|"
    )
    for (name, rate), all_runs in runs.items():
        up = [run["up"] for run in all_runs]
        late = {
            key: statistics.median(way["lateness"][key] * 1e6 for way in up)
            for key in ("p50_s", "p99_s", "max_s")
        }
        carried = statistics.median(
            way["bytes_out"] * 8e-6 / run["duration_s"] for way, run in zip(up, all_runs, strict=True)
        )
        certified = sum(run["verdict"]["trust"] for run in all_runs)
        print(
            f"| {name} | {rate} | {carried:.1f} | {late['p50_s']:.0f} | {late['p99_s']:.0f} "
            f"| {late['max_s']:.0f} | {certified} of {TURNS} |"
        )


if __name__ == "__main__":
    main()
