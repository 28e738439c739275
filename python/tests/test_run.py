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


def test_a_run_equals_the_command_lines_byte_for_byte(root: pathlib.Path) -> None:
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


SERIES_COLUMNS = [
    "at_s", "transfer", "event", "goodput_bps", "acked_bytes", "cwnd_packets", "ssthresh_packets",
    "window_bytes", "rtt_s", "rate_bps", "queue_packets", "dropped_packets", "utilisation",
]


def test_the_time_series_is_a_table_of_samples_and_events(bare: ss.Scenario) -> None:
    outcome, table = ss.series(bare.replace({"transfer.0.sizing": "sobas"}), interval=50 * ss.ms)
    assert table.column_names == SERIES_COLUMNS
    rows = table.to_pylist()
    samples = [row for row in rows if row["event"] is None]
    # 5 s of warm-up and 5 s of measurement.
    assert len(samples) == pytest.approx(10 / 0.05, abs=2)
    told = [event.kind for event in outcome.transfers[0].events]
    assert [row["event"] for row in rows if row["event"] is not None] == told
    assert table.schema.metadata[b"seed"] == b"1"
    # The bytes acknowledged between two samples give the goodput between them.
    one, two = samples[100:102]
    bits = 8 * (two["acked_bytes"] - one["acked_bytes"])
    assert two["goodput_bps"] == pytest.approx(bits / (two["at_s"] - one["at_s"]))


def test_a_series_changes_no_outcome_and_equals_the_command_lines(
    bare: ss.Scenario, tmp_path: pathlib.Path
) -> None:
    outcome, table = ss.series(bare)
    looked, alone = json.loads(outcome.to_json()), json.loads(ss.run(bare).to_json())
    # Taking a sample is itself an event in the simulator.
    cost = ("events", "wall_s")
    assert [looked[k] for k in looked if k not in cost] == [alone[k] for k in alone if k not in cost]
    binary = os.environ.get("SWEETSPOT_BIN")
    if binary is None:
        pytest.skip("set SWEETSPOT_BIN to the sweetspot program to compare with it")
    file, written = tmp_path / "bare.toml", tmp_path / "bare.parquet"
    file.write_text(bare.text)
    subprocess.run([binary, "run", str(file), "--series", str(written)], check=True)
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(written).equals(table, check_metadata=True)


def test_an_interval_with_too_many_samples_is_rejected(bare: ss.Scenario) -> None:
    # 10 s divided into 4 million rows gives 2.5 us.
    with pytest.raises(ValueError, match="interval.*use 3 us or more"):
        ss.series(bare, interval="1ns")
    with pytest.raises(ValueError, match="interval.*soon"):
        ss.series(bare, interval="soon")


def ask_wasm(file: pathlib.Path, question: dict[str, str]) -> str:
    """Returns the answer of the simulator compiled for the page."""
    wasmtime = pytest.importorskip("wasmtime")
    store = wasmtime.Store()
    module = wasmtime.Module.from_file(store.engine, str(file))
    exports = wasmtime.Instance(store, module, []).exports(store)
    memory = exports["memory"]
    text = json.dumps(question).encode()
    memory.write(store, text, exports["question"](store, len(text)))
    length = exports["answer"](store)
    start = exports["text"](store)
    return bytes(memory.read(store, start, start + length)).decode()


def test_python_command_line_and_webassembly_agree_byte_for_byte(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    wasm, binary = root / "crates/ui/wasm/sweetspot.wasm", os.environ.get("SWEETSPOT_BIN")
    if binary is None or not wasm.exists():
        pytest.skip("make python compiles the simulator for the page and the program before")
    scenario = ss.Scenario(
        title="Much at a time",
        seed=7,
        path=dict(rate="20Mbit/s", rtt="50ms", buffer="60pkt", loss="0.01%", queue="red"),
        cross=[
            dict(kind="pareto", count=3, rate="1Mbit/s"),
            dict(kind="elephants", count=2, window="10pkt"),
            dict(kind="mice", count=5, packets=[5, 50], sleep=["1s", "2s"]),
        ],
        transfer=[dict(sizing=sizing) for sizing in ("sobas", "drs", "heffner", "max")]
        + [dict(congestion=control) for control in ("cubic", "vegas", "bbr", "sack")],
        warmup="2s",
        duration="8s",
    )
    file = tmp_path / "busy.toml"
    file.write_text(scenario.text)
    command = [binary, "run", str(file), "--json"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    here = without_wall(ss.run(scenario).to_json())
    assert len(here) > 100
    assert without_wall(printed) == here
    assert without_wall(ask_wasm(wasm, {"ask": "run", "scenario": scenario.text})) == here


def test_throughput_below_the_sweet_spot_is_window_over_round_trip(bare: ss.Scenario) -> None:
    outcome = ss.run(bare)
    # Eq. (4): 450 packets of 8000 bit per 100 ms; the packet's own transmission times add less than
    # 1 %.
    assert outcome.transfers[0].goodput_bps == pytest.approx(36e6, rel=0.01)
    assert outcome.transfers[0].loss_rate == 0
    assert outcome.bottleneck.queue_mean_packets < 625


def test_a_seed_changes_nothing_on_a_path_without_randomness(bare: ss.Scenario) -> None:
    one, two = ss.run(bare), ss.run(bare, seed=2)
    assert (one.seed, two.seed) == (1, 2)
    assert one.transfers[0].goodput_bps == two.transfers[0].goodput_bps


def test_an_outcome_survives_json_and_pickling(bare: ss.Scenario) -> None:
    outcome = ss.run(bare)
    assert ss.Outcome.from_json(outcome.to_json()).to_json() == outcome.to_json()
    assert pickle.loads(pickle.dumps(outcome)).to_json() == outcome.to_json()
    assert json.loads(outcome.to_json())["transfers"][0]["sizing"] == "fixed:450pkt"


def test_theory_answers_with_a_formula_or_gives_a_reason(bare: ss.Scenario) -> None:
    outcome = ss.run(bare, engine="theory")
    # Eq. (4): 450 packets of 8000 bit per RTT: 100 ms, a packet's time at 50 Mbit/s, and its time
    # on two access links of 1 Gbit/s.
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
    # If the GIL were held throughout, there would be no tick at all.
    assert after - before >= 3
