"""Controllers written in Python, for research: the interface of the native ones, call by call."""

from __future__ import annotations

from collections import deque

from ._core import ControllerSetting, Probe, Train


class Controller:
    """Sizes the window of one simulated transfer. Subclass it and override what you listen to.

    Times are seconds since the start of the run and never go backwards. After every ``handle_*``
    call the simulator polls outputs until there are none, and asks when to call
    :meth:`handle_timeout` next. Every call crosses into Python: a run is some ten times slower
    than with a native controller.

    ::

        class Bdp(Controller):
            def begin(self, setting):
                self.set_window(0.0, 625_000)

        run(scenario, controllers=[Bdp()])
    """

    _outputs: deque[tuple[float, str, float | None, int]]
    _due: float | None

    def __new__(cls, *args: object, **keywords: object) -> Controller:
        self = super().__new__(cls)
        self._outputs = deque()
        self._due = None
        return self

    def begin(self, setting: ControllerSetting) -> None:
        """The transfer begins; ``setting`` has its MSS, packet size and largest window."""

    def handle_data(self, now: float, size: int, unread: int) -> None:
        """The application took ``size`` bytes of payload; ``unread`` bytes still wait."""

    def handle_probe(self, now: float, probe: Probe) -> None:
        """A periodic probe's answer arrived."""

    def handle_kernel_rtt(self, now: float, rtt: float) -> None:
        """The receiver's own estimate of the round trip, seconds."""

    def handle_train(self, now: float, train: Train) -> None:
        """A packet train asked for with :meth:`request_train` arrived."""

    def handle_window(self, now: float, advertised: int) -> None:
        """The window that is really advertised now, bytes."""

    def handle_timeout(self, now: float) -> None:
        """The time given to :meth:`wake_at` has come."""

    def poll_timeout(self) -> float | None:
        """When the controller next wants to be called, if nothing arrives before."""
        return self._due

    def poll_output(self) -> tuple[float, str, float | None, int] | None:
        """The next thing to do or to record, until ``None``."""
        return self._outputs.popleft() if self._outputs else None

    def set_window(self, now: float, size: float | None) -> None:
        """Limit the advertised window to ``size`` bytes; ``None``: the largest there is."""
        self._outputs.append((now, "window", size, 0))

    def set_pacing(self, now: float, rate: float | None) -> None:
        """Ask the sender to pace its payload at ``rate`` bit/s; ``None``: as it likes."""
        self._outputs.append((now, "pacing", rate, 0))

    def request_train(self, now: float, packets: int, size: int) -> None:
        """Ask the sender for ``packets`` back-to-back packets of ``size`` bytes."""
        self._outputs.append((now, "train", float(size), packets))

    def wake_at(self, time: float | None) -> None:
        """Ask for :meth:`handle_timeout` at ``time``; ``None``: not any more."""
        self._due = time

    def note(self, now: float, kind: str, window: float | None = None) -> None:
        """Record an event for the outcome: limited, tightened, lifted, congested, reopened."""
        self._outputs.append((now, kind, window, 0))
