"""The path's queue disciplines beside ns-3's, open loop: Poisson packets through one queue.

    cargo build --release --example open_loop -p sweetspot-path
    python3 bench/ns3/aqm.py target/release/examples/open_loop AQM

AQM is bench/ns3/aqm.cc compiled with ns-3. Prints, for each discipline and load, the share of packets lost
and the mean wait of the others by both, with 95 % intervals over four seeds.
"""

import re
import statistics
import subprocess
import sys

SEEDS = range(1, 5)
# Student's t for 95 % and three degrees of freedom, over the root of four seeds.
HALF = 3.18 / 2


def output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def simulated(program: str, queue: str, load: float, seed: int, flows: int) -> tuple[float, float]:
    said = output(program, queue, str(load), str(seed), str(flows))
    found = re.search(r"lost ([-\d.]+) mean ([\d.]+)", said)
    assert found, said
    return float(found[1]), float(found[2])


def ours(program: str, queue: str, load: float, seed: int, flows: int) -> tuple[float, float]:
    return simulated(program, queue, load, seed, flows)


def ns3(program: str, queue: str, load: float, seed: int, flows: int) -> tuple[float, float]:
    lost, delay = simulated(program, queue, load, seed, flows)
    # Excludes the packet's own transmission time.
    return lost, delay - 0.8


def main() -> None:
    open_loop, aqm = sys.argv[1:3]
    for queue in ("red", "pie", "codel", "fq-codel"):
        for load in (1.05, 1.2, 2.0):
            flows = 10 if queue == "fq-codel" else 1
            runs = [
                [engine(program, queue, load, seed, flows) for seed in SEEDS]
                for engine, program in ((ours, open_loop), (ns3, aqm))
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
