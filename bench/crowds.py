#!/usr/bin/env python3
"""Runs random crowds, or single lossy paths, and prints quantiles of the results of their transfers.

Usage: bench/crowds.py crowds|lossy COUNT SEED PROGRAM:SIZING...

A crowd is 2 to 30 CUBIC transfers that start 20 to 500 ms apart and share a buffer of 0.01 to 0.3 BDP, but at least ten packets. A lossy
path has one CUBIC transfer, random loss of 0.001 to 1 % (single packets or bursts), and jitter in three of ten cases. PROGRAM is a
sweetspot binary. Goodput on lossy paths is relative to the first PROGRAM:SIZING. Rates and times are log-uniform.
"""

import concurrent.futures
import json
import math
import os
import random
import subprocess
import sys
import tempfile

PATH = """title = "{title}"
seed = {seed}
warmup = "5s"
duration = "{duration}s"
[path]
rate = "{rate:.4f}Mbit/s"
rtt = "{rtt:.3f}ms"
buffer = "{buffer}pkt"
packet = "1500B"
{more}
[tcp]
flavour = "linux"
"""
TRANSFER = '[[transfer]]\nstart = "{start}ms"\ncongestion = "cubic"\nsizing = "{sizing}"\n'
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def between(draw: random.Random, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def packets(rate: float, rtt: float, bdps: float) -> int:
    return max(10, round(bdps * rate * 1e6 * rtt / 1e3 / 8 / 1500))


def crowd(draw: random.Random, seed: int, sizing: str) -> str:
    count = round(between(draw, 2, 30))
    rate, rtt = between(draw, 10, 500), between(draw, 10, 150)
    buffer = packets(rate, rtt, between(draw, 0.01, 0.3))
    gap = between(draw, 20, 500)
    text = PATH.format(title="a crowd", seed=seed, duration=15, rate=rate, rtt=rtt, buffer=buffer, more="")
    return text + "".join(TRANSFER.format(start=round(k * gap), sizing=sizing) for k in range(count))


def lossy(draw: random.Random, seed: int, sizing: str) -> str:
    rate, rtt = between(draw, 3, 400), between(draw, 8, 200)
    buffer = packets(rate, rtt, between(draw, 0.05, 4))
    loss, burst = between(draw, 1e-5, 1e-2), draw.choice([1, 1, 1, 2, 4])
    jitter = 0 if draw.random() < 0.7 else draw.uniform(0, min(20, rtt / 4))
    more = f'loss = "{loss:.6f}"\nloss_burst = {burst}\njitter = "{jitter:.3f}ms"'
    text = PATH.format(title="random losses", seed=seed, duration=20, rate=rate, rtt=rtt, buffer=buffer, more=more)
    return text + TRANSFER.format(start=0, sizing=sizing)


def outcome(program: str, text: str) -> dict:
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        run = subprocess.run([program, "run", file.name, "--json"], capture_output=True)
    if b"no transfer moved data" in run.stderr:
        return {"transfers": [{"goodput_bps": 0.0, "loss_rate": 1.0}] * text.count("[[transfer]]")}
    run.check_returncode()
    return json.loads(run.stdout)


def jain(rates: list[float]) -> float:
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 0.0


def quantiles(values: list[float]) -> str:
    ordered = sorted(values)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    shown = " / ".join(f"{at(share):.3f}" for share in QUANTILES)
    return f"{shown}, mean {sum(values) / len(values):.3f}"


def main() -> None:
    kind, count, seed, *variants = sys.argv[1:]
    draw_path = {"crowds": crowd, "lossy": lossy}[kind]
    print(f"{kind}: quantiles " + " / ".join(f"{share:.0%}" for share in QUANTILES))
    first: list[float] = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for variant in variants:
            program, sizing = variant.split(":", 1)
            texts = [draw_path(random.Random(f"{seed}-{i}"), i + 1, sizing) for i in range(int(count))]
            found = list(pool.map(lambda text: outcome(program, text), texts))
            rates = [[transfer["goodput_bps"] for transfer in one["transfers"]] for one in found]
            totals = [sum(all_of_one) for all_of_one in rates]
            losses = [sum(t["loss_rate"] for t in one["transfers"]) / len(one["transfers"]) for one in found]
            first = first or totals
            relative = [total / max(before, 1.0) for total, before in zip(totals, first, strict=True)]
            print(f"{variant}\n  goodput over the first: {quantiles(relative)}\n  lost: {quantiles(losses)}")
            if kind == "crowds":
                print(f"  Jain's index: {quantiles([jain(all_of_one) for all_of_one in rates])}")


if __name__ == "__main__":
    main()
