"""Controllers written in Python, for research, with the same contract as native ones."""

from __future__ import annotations

from collections.abc import Iterable

from ._core import ControllerConfig
from .contract import EVERYTHING, Input, Needs, Output


class Controller:
    """Sizes the window of one simulated transfer. Subclass it and override the methods that you need.

    Times are seconds since the start of the run and never go backwards. Each input is one of
    :data:`sweetspot.contract.Input`; return actions and events as :data:`sweetspot.contract.Output`.
    Every call crosses into Python, so a run is some ten times slower than with a native controller.

    ::

        class Bdp(Controller):
            def begin(self, config):
                return [SetWindow(625_000)]

        run(scenario, controllers=[Bdp()])
    """

    _due: float | None = None

    def needs(self) -> Needs:
        """The inputs that the controller needs; by default all. Called once."""
        return EVERYTHING

    def begin(self, config: ControllerConfig) -> Iterable[Output] | None:
        """Called when the transfer begins; ``config`` has its MSS, packet size and largest window."""

    def handle(self, now: float, input: Input) -> Iterable[Output] | None:
        """Called for each input, with the time; returns the actions to take."""

    def wake_at(self, time: float | None) -> None:
        """Request a :class:`sweetspot.contract.Timeout` at ``time``; ``None`` cancels it."""
        self._due = time
