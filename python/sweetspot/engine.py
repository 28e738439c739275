"""Playing one scenario."""

from __future__ import annotations

from collections.abc import Sequence

from . import _core
from .controller import Controller


def run(
    scenario: _core.Scenario,
    engine: str = "sim",
    seed: int | None = None,
    controllers: Sequence[Controller | None] = (),
) -> _core.Outcome:
    """Plays ``scenario`` and returns its outcome; the GIL is released meanwhile.

    Args:
        scenario: What to play.
        engine: ``"sim"``, packet by packet and deterministic, or ``"theory"``, closed forms with
            the formulas they used (in the JSON's ``derivation``).
        seed: Another seed than the scenario's.
        controllers: A controller of your own for each transfer, in the order of the scenario;
            ``None`` leaves the scenario's sizing.

    Raises:
        EngineError: The engine cannot play this scenario; for theory: no closed form covers it.
        ValueError: Unknown engine, or more controllers than transfers.
    """
    return _core.run(scenario, engine, seed, list(controllers))
