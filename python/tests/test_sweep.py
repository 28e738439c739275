import os
import pathlib
import resource
import signal
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

import sweetspot as ss

OVER = {"path.buffer": ["100pkt", 313 * ss.pkt], "transfer.0.sizing": ["max", "fixed:450pkt"]}


@pytest.fixture
def noisy(bare: ss.Scenario) -> ss.Scenario:
    return ss.Scenario(
        path=dict(rate="20Mbit/s", rtt="50ms", buffer="100pkt"),
        cross=[dict(kind="pareto", count=5, rate="2Mbit/s")],
        transfer=[dict(sizing="max")],
        warmup="2s",
        duration="10s",
    )


def test_every_combination_and_seed_is_one_row(noisy: ss.Scenario) -> None:
    table = ss.sweep(noisy, OVER, seeds=3, executor=ThreadPoolExecutor(2))
    assert table.num_rows == 2 * 2 * 3
    rows = table.select(["path.buffer", "transfer.0.sizing", "seed"]).to_pylist()
    assert len({tuple(row.values()) for row in rows}) == 12
    assert rows[0] == {"path.buffer": "100pkt", "transfer.0.sizing": "max", "seed": 1}


def test_the_error_of_a_run_omits_the_traceback_of_its_process(bare: ss.Scenario) -> None:
    # No closed form covers sobas.
    with pytest.raises(ss.EngineError, match="because") as raised:
        ss.sweep(bare, {"transfer.0.sizing": ["sobas"]}, engine="theory")
    shown = "".join(traceback.format_exception(raised.value))
    assert "concurrent/futures" not in shown and "direct cause" not in shown
    assert "EngineError: " in shown.splitlines()[-1]


def test_a_sweep_is_the_same_on_every_executor(noisy: ss.Scenario) -> None:
    threads = ss.sweep(noisy, OVER, seeds=2, executor=ThreadPoolExecutor(2))
    processes = ss.sweep(noisy, OVER, seeds=2)
    assert threads.equals(processes)


def test_pandas_and_polars_read_the_numbers_without_a_copy(noisy: ss.Scenario) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    table = ss.sweep(noisy, {"path.buffer": ["100pkt"]}, seeds=4, executor=ThreadPoolExecutor(2))
    column = table.column("goodput_bps").chunk(0)
    address = column.buffers()[1].address
    assert column.to_numpy(zero_copy_only=True).__array_interface__["data"][0] == address
    series = polars.from_arrow(table).get_column("goodput_bps")
    assert series.to_arrow().buffers()[1].address == address
    assert pandas.DataFrame(table.to_pandas()).shape == (4, table.num_columns)


def test_a_wrong_key_is_an_error_before_anything_runs(noisy: ss.Scenario) -> None:
    ran = []
    with pytest.raises(ss.ScenarioError, match="path.bufer"):
        ss.sweep(noisy, {"path.bufer": ["1pkt"]}, progress=lambda *done: ran.append(done))
    with pytest.raises(ValueError, match="path.buffer: no values"):
        ss.sweep(noisy, {"path.buffer": []}, progress=lambda *done: ran.append(done))
    assert ran == []


def test_a_range_means_the_same_values_as_on_the_command_line(noisy: ss.Scenario) -> None:
    threads = ThreadPoolExecutor(2)
    # 50 x 40^(1/2) is 316.2, rounded to whole packets.
    table = ss.sweep(noisy, {"path.buffer": "50pkt..2000pkt:log:3"}, executor=threads)
    assert table.column("path.buffer").to_pylist() == ["50pkt", "316pkt", "2000pkt"]
    mixed = {"transfer.0.sizing": ["max", "fixed:10pkt..30pkt:lin:2"], "path.buffer": "9pkt, 8pkt"}
    table = ss.sweep(noisy, mixed, executor=threads)
    assert table.column("transfer.0.sizing").to_pylist()[::2] == ["max", "fixed:10pkt", "fixed:30pkt"]
    assert table.column("path.buffer").to_pylist()[:2] == ["9pkt", "8pkt"]
    for wrong, words in [
        ("9pkt..2pkt:log:3", "first end must be below its last"),
        ("1pkt,1pkt", "twice"),
        ("1pkt..9pkt", "a scale and a count"),
        ("", "write it like"),
    ]:
        with pytest.raises(ValueError, match=words):
            ss.sweep(noisy, {"path.buffer": wrong})


def test_a_sweep_is_sorted_and_drawn_by_number(noisy: ss.Scenario) -> None:
    threads = ThreadPoolExecutor(2)
    over = {"path.buffer": ["1MB", "30kB", "200kB"], "transfer.0.sizing": ["sobas", "fixed:50pkt"]}
    table = ss.sweep(noisy, over, executor=threads)
    numbers = table.sort_by("path.buffer_bytes").column("path.buffer_bytes").to_pylist()
    assert numbers == [3e4, 3e4, 2e5, 2e5, 1e6, 1e6]
    assert table.column("transfer.0.sizing_packets").to_pylist() == [None, 50.0] * 3
    # Values that are only words have no numbers.
    sizings = ss.sweep(noisy, {"transfer.0.sizing": ["max", "sobas"]}, executor=threads)
    assert [name for name in sizings.column_names if name.startswith("transfer.")] == ["transfer.0.sizing"]


def test_a_killed_sweep_repeats_no_run(
    noisy: ss.Scenario, tmp_path: pathlib.Path
) -> None:
    threads = ThreadPoolExecutor(2)
    journal = tmp_path / "sweep.journal"
    whole = ss.sweep(noisy, OVER, seeds=3, executor=threads, journal=journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + 12
    # As a SIGKILL would leave it: five runs, and a sixth cut off.
    journal.write_bytes(b"".join(lines[:6]) + lines[6][:40])
    done: list[int] = []
    again = ss.sweep(
        noisy, OVER, seeds=3, executor=threads, journal=journal,
        progress=lambda now, _: done.append(now),
    )
    assert again.equals(whole) and done == list(range(6, 13))
    assert len(journal.read_bytes().splitlines()) == 13
    done.clear()
    more = ss.sweep(
        noisy, OVER, seeds=4, executor=threads, journal=journal,
        progress=lambda now, _: done.append(now),
    )
    assert more.num_rows == 16 and len(done) == 4


def test_a_journal_of_another_sweep_is_rejected_with_a_next_step(
    noisy: ss.Scenario, tmp_path: pathlib.Path
) -> None:
    journal = tmp_path / "sweep.journal"
    journal.write_text('{"sweetspot_journal":1,"version":"0.0.1"}\n')
    with pytest.raises(ValueError, match="sweep.journal.*sweetspot 0.0.1.*remove it"):
        ss.sweep(noisy, OVER, journal=journal)
    journal.write_text("shopping list\n")
    with pytest.raises(ValueError, match="not a journal"):
        ss.sweep(noisy, OVER, journal=journal)


def test_a_full_disk_causes_a_warning_and_loses_no_run(
    noisy: ss.Scenario, tmp_path: pathlib.Path
) -> None:
    threads, journal = ThreadPoolExecutor(2), tmp_path / "sweep.journal"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Space for the first line and the first runs.
    resource.setrlimit(resource.RLIMIT_FSIZE, (2500, hard))
    try:
        with pytest.warns(UserWarning, match="sweep.journal.*runs are no longer kept"):
            table = ss.sweep(noisy, OVER, seeds=3, executor=threads, journal=journal)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert table.num_rows == 12
    kept = journal.read_bytes()
    assert kept.endswith(b"\n") and 2 <= len(kept.splitlines()) < 13
    assert ss.sweep(noisy, OVER, seeds=3, executor=threads, journal=journal).equals(table)


def test_a_script_without_a_main_guard_runs_once(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sweetspot as ss\n"
        "path = dict(rate='20Mbit/s', rtt='50ms', buffer='100pkt')\n"
        "scenario = ss.Scenario(path=path, transfer=[dict(sizing='max')], duration='2s')\n"
        "table = ss.sweep(scenario, {'path.buffer': ['50pkt', '100pkt']})\n"
        "print(table.num_rows, 'rows')\n"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "2 rows\n", "")


def test_a_process_that_dies_loses_no_point(noisy: ss.Scenario) -> None:
    long = noisy.replace({"duration": "200s"})
    killed: list[int] = []

    def kill_a_worker(done: int, all: int) -> None:
        import multiprocessing

        children = multiprocessing.active_children()
        if not killed and children and done >= 2:
            killed.append(children[0].pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    table = ss.sweep(long, {"path.buffer": ["100pkt"]}, seeds=12, progress=kill_a_worker)
    assert killed, "nothing was killed: the test shows nothing"
    assert table.column("seed").to_pylist() == list(range(1, 13))


def test_a_dask_cluster_that_loses_a_worker_delivers_every_point_once(noisy: ss.Scenario) -> None:
    distributed = pytest.importorskip("distributed")
    long = noisy.replace({"duration": "200s"})
    over = {"path.buffer": ["50pkt", "100pkt", "200pkt"]}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        workers = sorted(client.run(os.getpid).values())
        killed: list[int] = []

        def kill_a_worker(done: int, all: int) -> None:
            if not killed and done >= 3:
                killed.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        table = ss.sweep(
            long, over, seeds=6, executor=client.get_executor(), progress=kill_a_worker
        )
        deadline = time.monotonic() + 30
        while workers[0] in client.run(os.getpid).values() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert workers[0] not in client.run(os.getpid).values()
    assert killed == [workers[0]]
    alone = ss.sweep(long, over, seeds=6, executor=ThreadPoolExecutor(2))
    assert table.equals(alone)
