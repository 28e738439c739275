"""Many runs, on any executor."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from . import _core
from .journal import JournalFile
from .scenario import Scenario, assignable

if TYPE_CHECKING:
    import pyarrow as pa

Point = tuple[int, str, list[str], int]
"""Index, scenario text, overrides, seed."""

Runner = Callable[[Point, str], tuple[int, _core.Outcome]]
"""Runs a point in an engine, on a worker."""

TRANSFER_NUMBERS = (
    "goodput_bps",
    "rtt_mean_s",
    "rtt_p99_s",
    "loss_rate",
    "retransmitted_packets",
    "timeouts",
    "window_final_bytes",
)
CHANCES = 3
"""Maximum number of times that a pool of processes is restarted after one of them died."""

BOTTLENECK_NUMBERS = ("utilisation", "loss_rate", "queue_mean_packets", "queue_delay_mean_s")


def sweep(
    scenario: Scenario,
    over: Mapping[str, str | Iterable[object]],
    seeds: int | Sequence[int] = 1,
    engine: str = "sim",
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    journal: str | os.PathLike[str] | None = None,
) -> pa.Table:
    """Runs every combination of values with every seed and returns one table.

    All variants use the same seeds, so they differ only by the varied keys and not by chance
    (common random numbers).

    Args:
        scenario: The scenario to vary.
        over: The values of each key (as in ``--set``): a list, or a text as in ``sweetspot sweep
            --over``, such as ``"50pkt,100pkt"`` or ``"50pkt..2000pkt:log:12"``. A list may contain
            such ranges, too.
        seeds: Number of seeds, starting with the scenario's own, or the seeds themselves.
        engine: As in :func:`run`.
        executor: Any ``concurrent.futures.Executor``: ``dask.distributed.Client.get_executor()``,
            ``mpi4py.futures.MPIPoolExecutor()``, a Ray pool. By default, a process per core.
        progress: Called after each run with the number of finished runs and the total.
        journal: A file that stores each finished run. An interrupted or killed sweep resumes if it is
            called again with the same file; you may add values and seeds then.

    Returns:
        A ``pyarrow.Table``, a row per combination, seed and transfer, in that order: the varied
        keys as text, ``seed``, ``transfer``, the transfer's numbers (bit/s, s, bytes, shares), the
        bottleneck's with the prefix ``bottleneck_``. A key with numeric values also has a column
        of numbers, to sort and plot by. The name of that column ends in its unit, as in ``path.buffer_packets``, ``path.rate_bps``,
        ``path.loss_number``; it is null if the value is a word such as ``sobas``. pandas and polars
        use the columns without a copy.

    Raises:
        ScenarioError: A combination is not a valid scenario; nothing has run then.
        EngineError: The engine cannot run one of the combinations.
        ValueError: There are no values, a range is invalid, or the journal is from another version.
    """
    points, variants, scenarios = _points(scenario, over, seeds)
    outcomes = run_points(points, scenarios, run_point, engine, executor, progress, journal)
    return _table(list(over), variants, points, outcomes)


def run_points(
    points: Sequence[Point],
    scenarios: Sequence[_core.Scenario],
    run_point: Runner,
    engine: str,
    executor: Executor | None,
    progress: Callable[[int, int], None] | None,
    journal: str | os.PathLike[str] | None,
) -> list[_core.Outcome]:
    """The outcome of every point, in order; the arguments are as in :func:`sweep`."""
    outcomes: dict[int, _core.Outcome] = {}
    journal_file = JournalFile(journal) if journal is not None else None
    if journal_file is not None:
        for point, changed in zip(points, scenarios):
            known = journal_file.get(changed, engine, point[3])
            if known is not None:
                outcomes[point[0]] = known

    def work(pool: Executor) -> None:
        waiting = [point for point in points if point[0] not in outcomes]
        for index, outcome in _run_all(pool, waiting, run_point, engine):
            outcomes[index] = outcome
            if journal_file is not None:
                journal_file.put(scenarios[index], engine, points[index][3], outcome)
            if progress is not None:
                progress(len(outcomes), len(points))

    try:
        if len(outcomes) < len(points):
            if executor is not None:
                work(executor)
            else:
                _on_processes(work)
    finally:
        if journal_file is not None:
            journal_file.close()
    return [outcomes[i] for i in range(len(points))]


class _Worker(SpawnProcess):
    """A process that does not rerun the caller's script, which may have no main guard."""

    def start(self) -> None:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            super().start()
        finally:
            sys.modules["__main__"] = script


class _Workers(SpawnContext):
    Process = _Worker


def _on_processes(work: Callable[[Executor], None]) -> None:
    """A process per core. If one dies, the whole pool breaks, and a new pool continues from there."""
    for chance in range(CHANCES):
        pool = ProcessPoolExecutor(os.cpu_count(), mp_context=_Workers())
        try:
            with pool:
                return work(pool)
        except BrokenProcessPool:
            if chance + 1 == CHANCES:
                raise


def _run_all(
    pool: Executor, points: Sequence[Point], run_point: Runner, engine: str
) -> Iterator[tuple[int, _core.Outcome]]:
    running: list[Future[tuple[int, _core.Outcome]]] = [
        pool.submit(run_point, point, engine) for point in points
    ]
    try:
        for future in as_completed(running):
            try:
                finished = future.result()
            except _core.EngineError as error:
                # The traceback of the worker adds nothing to the message.
                raise error.with_traceback(None) from None
            yield finished
    finally:
        for future in running:
            future.cancel()


def run_point(point: Point, engine: str) -> tuple[int, _core.Outcome]:
    """One run, on a worker."""
    index, text, overrides, seed = point
    return index, _core.run(_core.Scenario(text, overrides), engine, seed)


def _values(key: str, some: str | Iterable[object]) -> list[str]:
    """The values of one key as for ``--set``, with ranges expanded."""
    if isinstance(some, str):
        return _core.sweep_values(key, some)
    values: list[str] = []
    for value in some:
        if isinstance(value, str) and ".." in value:
            values += _core.sweep_values(key, value)
        else:
            values.append(assignable(value))
    return values


def _points(
    scenario: Scenario, over: Mapping[str, str | Iterable[object]], seeds: int | Sequence[int]
) -> tuple[list[Point], list[tuple[str, ...]], list[Scenario]]:
    """All runs, each with its values and its scenario."""
    values = {key: _values(key, some) for key, some in over.items()}
    empty = [key for key, some in values.items() if not some]
    if empty:
        raise ValueError(f"{empty[0]}: no values; give at least one")
    if isinstance(seeds, int):
        seeds = range(scenario.seed, scenario.seed + seeds)
    if not seeds:
        raise ValueError("seeds: none; give a number of 1 or more, or a list")
    points: list[Point] = []
    variants: list[tuple[str, ...]] = []
    scenarios: list[Scenario] = []
    for combination in itertools.product(*values.values()):
        changes = dict(zip(values, combination))
        # Parsed here, so that a wrong key is reported before anything runs.
        changed = scenario.replace(changes)
        for seed in seeds:
            points.append((len(points), changed.text, changed.overrides, seed))
            variants.append(combination)
            scenarios.append(changed)
    return points, variants, scenarios


def _table(
    keys: Sequence[str],
    variants: Sequence[tuple[str, ...]],
    points: Sequence[Point],
    outcomes: Sequence[_core.Outcome],
) -> pa.Table:
    import pyarrow as pa

    rows = [
        (variant, point[3], number, transfer, outcome)
        for variant, point, outcome in zip(variants, points, outcomes)
        for number, transfer in enumerate(outcome.transfers)
    ]
    columns: dict[str, object] = {}
    for i, key in enumerate(keys):
        values = [row[0][i] for row in rows]
        columns[key] = pa.array(values, pa.string())
        found = _core.sweep_numbers(values)
        if found is not None:
            unit, numbers = found
            columns[f"{key}_{unit}"] = pa.array(numbers, pa.float64())
    columns["seed"] = np.array([row[1] for row in rows], np.int64)
    columns["transfer"] = np.array([row[2] for row in rows], np.int64)
    for name in TRANSFER_NUMBERS:
        columns[name] = np.array([getattr(row[3], name) for row in rows])
    columns["sizing"] = pa.array([row[3].sizing for row in rows], pa.string())
    for name in BOTTLENECK_NUMBERS:
        numbers = [getattr(row[4].bottleneck, name) for row in rows]
        columns[f"bottleneck_{name}"] = np.array(numbers)
    return pa.table(columns)
