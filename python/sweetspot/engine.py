"""Runs one scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import _core
from .controller import Controller
from .units import Quantity

if TYPE_CHECKING:
    import pyarrow as pa


def run(
    scenario: _core.Scenario,
    engine: str = "sim",
    seed: int | None = None,
    controllers: Sequence[Controller | None] = (),
) -> _core.Outcome:
    """Runs ``scenario`` and returns its outcome, without holding the GIL during the run.

    Args:
        scenario: The scenario to run.
        engine: ``"sim"``, packet by packet and deterministic, or ``"theory"``, closed forms, with the
            formulas in the JSON's ``derivation``.
        seed: A seed to use instead of the scenario's.
        controllers: A controller of your own for each transfer, in the order of the scenario;
            ``None`` keeps the scenario's sizing.

    Raises:
        EngineError: The engine cannot run this scenario; for theory: no closed form covers it.
        ValueError: Unknown engine, or more controllers than transfers.
    """
    return _core.run(scenario, engine, seed, list(controllers))


def series(
    scenario: _core.Scenario,
    interval: str | Quantity = "100ms",
    seed: int | None = None,
    controllers: Sequence[Controller | None] = (),
) -> tuple[_core.Outcome, pa.Table]:
    """Simulates ``scenario``; returns its outcome and its time series.

    Args:
        scenario: The scenario to run.
        interval: Time between two samples.
        seed: A seed to use instead of the scenario's.
        controllers: As in :func:`run`.

    Returns:
        The outcome, and a ``pyarrow.Table`` with a row per transfer and interval and, between
        them, one per event of a controller; the columns are those of ``sweetspot run --series``
        (docs/scenario.md, "The time series"): ``at_s``, ``transfer``, ``event`` (null in samples),
        ``goodput_bps``, ``window_bytes``, ``rtt_s``, ``queue_packets`` and more. Its metadata
        has scenario, engine, seed, version and interval.

    Raises:
        ValueError: The interval is invalid, or so short that there would be more than 4 million rows.
    """
    import pyarrow as pa
    import pyarrow.parquet

    outcome, file = _core.series(scenario, str(interval), seed, list(controllers))
    return outcome, pyarrow.parquet.read_table(pa.BufferReader(file))
