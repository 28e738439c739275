"""Random paths on which sizings are compared with the kernel's own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import cast

from . import _core
from .studies import Point, run_points
from .tables import GauntletReport


def gauntlet(
    population: str = "drawn",
    seed: int = 1,
    paths: int | range = 300,
    seeds: int = 4,
    sizings: Sequence[str] = ("sobas",),
    congestions: Sequence[str] = ("cubic",),
    congestion_fixed: bool = False,
    duration: str | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    journal: str | os.PathLike[str] | None = None,
) -> GauntletReport:
    """Runs a population of random paths as ``sweetspot-research gauntlet`` does, on any executor.

    Args:
        population: ``drawn``, ``sizes``, ``long``, ``changes``, ``transfers`` or ``again``.
        seed: The population's seed; the same seed always gives the same paths.
        paths: Number of paths, or a range of path indices.
        seeds: Number of seeds per path.
        sizings: The sizings to compare with the kernel's.
        congestions: Congestion controls; every sizing runs with each.
        congestion_fixed: Whether sizings must not switch the congestion control.
        duration: Measured time of each transfer, such as ``"20s"``; by default the population's.
        executor: As in :func:`sweep`.
        progress: As in :func:`sweep`.
        journal: As in :func:`sweep`; a killed run resumes from it.

    Returns:
        The object that ``sweetspot-research gauntlet --json`` prints.

    Raises:
        ValueError: The population, sizing or congestion control is unknown, or the journal is from
            another version.
    """
    if isinstance(paths, int):
        paths = range(paths)
    if paths.step != 1 or not paths:
        raise ValueError(f"paths: {paths} is no range without gaps")
    numbers = (seed, paths.start, paths.stop, seeds)
    plan = _core.Gauntlet(
        population, numbers, duration, list(congestions), congestion_fixed, list(sizings)
    )
    scenarios = [_core.Scenario(text) for text in plan.texts()]
    points: list[Point] = [
        (index, scenario.text, [], scenario.seed) for index, scenario in enumerate(scenarios)
    ]
    outcomes = run_points(points, scenarios, run_point, "sim", executor, progress, journal)
    return cast(GauntletReport, json.loads(plan.report(outcomes)))


def run_point(point: Point, engine: str) -> tuple[int, _core.Outcome]:
    """One run, on a worker. The controllers' events, often thousands, stay there."""
    index, text, overrides, seed = point
    outcome = _core.run(_core.Scenario(text, overrides), engine, seed)
    return index, outcome.without_events()
