"""The simulator's queue disciplines beside ns-3's, open loop: Poisson packets through one queue.

    python3 bench/ns3/aqm.py SWEETSPOT AQM

SWEETSPOT is the program, AQM is bench/ns3/aqm.cc compiled with ns-3. Prints, for each discipline and load, the share of packets lost
and their mean wait by both, with 95 % intervals over four seeds.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SEEDS = range(1, 5)
# Student's t for 95 % and three degrees of freedom, over the root of four seeds.
HALF = 3.18 / 2
SCENARIO = """
title = "open loop"
warmup = "5s"
duration = "60s"
seed = {seed}
[path]
rate = "10Mbit/s"
rtt = "0ms"
buffer = "100pkt"
queue = "{queue}"
packet = "1000B"
access_rate = "10Gbit/s"
reverse = "clean"
[[cross]]
kind = "poisson"
count = {flows}
rate = "{rate}bit/s"
"""


def output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def ours(program: str, queue: str, load: float, seed: int, flows: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "open.toml"
        rate = int(load * 1e7 / flows)
        file.write_text(SCENARIO.format(seed=seed, queue=queue, flows=flows, rate=rate))
        outcome = json.loads(output(program, "run", str(file), "--json"))
    bottleneck = outcome["bottleneck"]
    through = sum(cross["goodput_bps"] for cross in outcome["cross"])
    # Little: the mean wait is the mean queue over the rate of what leaves it; in milliseconds.
    return bottleneck["loss_rate"], bottleneck["queue_mean_packets"] * 8000 / through * 1e3


def ns3(program: str, queue: str, load: float, seed: int, flows: int) -> tuple[float, float]:
    said = output(program, queue, str(load), str(seed), str(flows))
    found = re.search(r"lost ([-\d.]+) mean ([\d.]+)", said)
    assert found, said
    # Without the packet's own time on the link.
    return float(found[1]), float(found[2]) - 0.8


def main() -> None:
    sweetspot, aqm = sys.argv[1:3]
    for queue in ("red", "pie", "codel", "fq-codel"):
        for load in (1.05, 1.2, 2.0):
            flows = 10 if queue == "fq-codel" else 1
            runs = [
                [engine(program, queue, load, seed, flows) for seed in SEEDS]
                for engine, program in ((ours, sweetspot), (ns3, aqm))
            ]
            cells = [
                (statistics.mean(values), statistics.stdev(values) * HALF)
                for run in runs
                for values in zip(*run, strict=True)
            ]
            lost, wait, their_lost, their_wait = cells
            print(
                f"| {queue} | {load} | {lost[0]:.2%} +- {lost[1]:.2%} | {their_lost[0]:.2%} +- {their_lost[1]:.2%} "
                f"| {wait[0]:.1f} +- {wait[1]:.1f} | {their_wait[0]:.1f} +- {their_wait[1]:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
