"""The search for the best window."""

from __future__ import annotations

import os
from dataclasses import dataclass

from . import _core


@dataclass(frozen=True)
class Trial:
    """A trial of one window."""

    window_packets: int
    goodput_bps: float
    lossless: bool


@dataclass(frozen=True)
class Mft:
    """The Maximum Feasible Throughput, and the trials that found it."""

    window_packets: int
    """The window at which the transfer is fastest."""
    mft_bps: float
    """The goodput with that window, as the mean over the seeds."""
    trials: tuple[Trial, ...]
    """All trials, the smallest window first."""


def mft(
    scenario: _core.Scenario,
    seeds: int = 1,
    tolerance: float = 0.005,
    workers: int | None = None,
) -> Mft:
    """Finds the window at which the first transfer of ``scenario`` is fastest: ``sweetspot sweep --find-best``.

    Args:
        scenario: The scenario to run.
        seeds: Number of seeds to average over, starting with the scenario's own.
        tolerance: Maximum relative distance from the best window.
        workers: Number of threads; by default one per core. The result does not depend on it.

    Raises:
        EngineError: The scenario has no transfer, or cannot be simulated.
    """
    window, rate, trials = _core.mft(scenario, seeds, tolerance, workers or os.cpu_count() or 1)
    return Mft(window, rate, tuple(Trial(*trial) for trial in trials))
