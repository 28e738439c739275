import json
import os
import pathlib
import pickle
import subprocess
import threading
import time

import pytest

import sweetspot as ss


def without_wall(text: str) -> list[str]:
    return [line for line in text.strip().splitlines() if '"wall_s"' not in line]


def test_a_run_is_the_same_bytes_as_from_the_command_line(root: pathlib.Path) -> None:
    binary = os.environ.get("SWEETSPOT_BIN")
    if binary is None:
        pytest.skip("set SWEETSPOT_BIN to the sweetspot program to compare with it")
    scenario = root / "scenarios" / "elephants.toml"
    changes = ["duration=5s", "warmup=20s", "transfer.0.sizing=sobas"]
    command = [binary, "run", str(scenario), "--json"]
    for change in changes:
        command += ["--set", change]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    outcome = ss.run(ss.Scenario.from_file(scenario, changes))
    assert without_wall(outcome.to_json()) == without_wall(printed)


def test_throughput_below_the_sweet_spot_is_window_over_round_trip(bare: ss.Scenario) -> None:
    outcome = ss.run(bare)
    # Eq. (4): 450 packets of 8000 bit per 100 ms; the packet's own sending times add below 1 %.
    assert outcome.transfers[0].goodput_bps == pytest.approx(36e6, rel=0.01)
    assert outcome.transfers[0].loss_rate == 0
    assert outcome.bottleneck.queue_mean_packets < 625


def test_another_seed_leaves_a_path_without_chance_alone(bare: ss.Scenario) -> None:
    one, two = ss.run(bare), ss.run(bare, seed=2)
    assert (one.seed, two.seed) == (1, 2)
    assert one.transfers[0].goodput_bps == two.transfers[0].goodput_bps


def test_an_outcome_survives_json_and_pickling(bare: ss.Scenario) -> None:
    outcome = ss.run(bare)
    assert ss.Outcome.from_json(outcome.to_json()).to_json() == outcome.to_json()
    assert pickle.loads(pickle.dumps(outcome)).to_json() == outcome.to_json()
    assert json.loads(outcome.to_json())["transfers"][0]["sizing"] == "fixed:450pkt"


def test_theory_answers_with_its_formula_or_says_why_not(bare: ss.Scenario) -> None:
    outcome = ss.run(bare, engine="theory")
    # Eq. (4): 450 packets of 8000 bit per round trip: 100 ms, a packet's time at 50 Mbit/s, and
    # its time on two access links of 1 Gbit/s.
    rtt = 0.1 + 8000 / 50e6 + 2 * 8000 / 1e9
    assert outcome.transfers[0].goodput_bps == pytest.approx(450 * 8000 / rtt)
    assert json.loads(outcome.to_json())["derivation"]
    with pytest.raises(ss.EngineError, match="because"):
        ss.run(bare.replace({"transfer.0.sizing": "sobas"}), engine="theory")


def test_an_unknown_engine_is_an_error_that_names_the_known(bare: ss.Scenario) -> None:
    with pytest.raises(ValueError, match="ns-2.*sim"):
        ss.run(bare, engine="ns-2")


def test_other_threads_run_while_it_simulates(bare: ss.Scenario) -> None:
    long = bare.replace({"duration": "100s"})
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    other = threading.Thread(target=tick)
    other.start()
    before = ticks
    ss.run(long)
    after = ticks
    done.set()
    other.join()
    # With the GIL held throughout there would be no tick at all.
    assert after - before >= 3
