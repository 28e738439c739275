import os
import signal
import time
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


def test_a_sweep_is_the_same_on_every_executor(noisy: ss.Scenario) -> None:
    threads = ss.sweep(noisy, OVER, seeds=2, executor=ThreadPoolExecutor(2))
    processes = ss.sweep(noisy, OVER, seeds=2)
    assert threads.equals(processes)


def test_pandas_and_polars_take_the_numbers_without_a_copy(noisy: ss.Scenario) -> None:
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


def test_a_process_that_dies_costs_no_point(noisy: ss.Scenario) -> None:
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
