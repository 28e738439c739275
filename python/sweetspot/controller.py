"""Controllers written in Python, for research: the contract of the native ones."""

from __future__ import annotations

from collections.abc import Iterable

from ._core import ControllerConfig
from .contract import EVERYTHING, Input, Needs, Output


class Controller:
    """Sizes the window of one simulated transfer. Subclass it and override what you need.

    Times are seconds since the start of the run and never go backwards. What arrives goes in as one
    of :data:`sweetspot.contract.Input`; what is to be done comes back as
    :data:`sweetspot.contract.Output`. Every call crosses into Python: a run is some ten times
    slower than with a native controller.

    ::

        class Bdp(Controller):
            def begin(self, config):
                return [SetWindow(625_000)]

        run(scenario, controllers=[Bdp()])
    """

    _due: float | None = None

    def needs(self) -> Needs:
        """The inputs that it lives on: all there are, unless overridden. Asked once."""
        return EVERYTHING

    def begin(self, config: ControllerConfig) -> Iterable[Output] | None:
        """The transfer begins; ``config`` has its MSS, packet size and largest window."""

    def handle(self, now: float, input: Input) -> Iterable[Output] | None:
        """Something was received, measured or is due; what is to be done about it."""

    def wake_at(self, time: float | None) -> None:
        """Ask for :class:`sweetspot.contract.Timeout` at ``time``; ``None``: not any more."""
        self._due = time
