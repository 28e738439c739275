"""Inputs and outputs of a sizing controller, as of the native ones.

Times are seconds, rates bit/s, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, Union

Probing: TypeAlias = Literal["never", "periodic", "budgeted", "sparse"]
"""How often the path is probed: not at all; every 20 ms; for no more than a two-hundredth of the
transfer's own rate."""

CongestionChoice: TypeAlias = Literal["own", "reno", "bbr"]
"""A sender's congestion control: the one the transfer was begun with, or this one."""

CongestionState: TypeAlias = Literal["open", "disorder", "reduced", "recovery", "loss"]
"""Linux's ``enum tcp_ca_state``."""

Phase: TypeAlias = Literal[
    "hands-off", "measuring", "ramping", "holding", "trying", "open", "congested"
]
"""Where a controller stands."""

Reason: TypeAlias = Literal[
    "capacity-known",
    "path-remembered",
    "capacity-unclear",
    "capacity-unknown",
    "short-path",
    "short-transfer",
    "rate-fell",
    "random-loss",
    "others-queue",
    "path-faster",
    "path-slower",
    "overflow",
    "rate-inelastic",
    "trying-more",
    "no-more",
    "trial-paid",
    "trial-failed",
    "ended",
]
"""Why a controller changed its state."""


@dataclass(frozen=True)
class Needs:
    """The inputs that a controller needs; it gets no others."""

    probes: Probing = "never"
    trains: bool = False
    data: bool = False
    kernel_rtt: bool = False
    minimum_rtt: bool = False
    out_of_order: bool = False
    window: bool = False


EVERYTHING = Needs("periodic", True, True, True, True, True, True)
"""All inputs there are."""


@dataclass(frozen=True)
class Data:
    """The application took ``size`` bytes of payload; ``unread`` bytes still wait."""

    size: int
    unread: int


@dataclass(frozen=True)
class Probe:
    """A periodic probe's answer arrived."""

    rtt: float
    """Round trip of this probe: out of band, so without the hosts' buffers."""
    forward_lost: int
    """Probes now known to be lost on the forward path since the answer before this one."""


@dataclass(frozen=True)
class Sender:
    """The sender's own view, as it comes with a probe's answer. Counters run from the beginning."""

    retransmitted: int
    """Segments."""
    cwnd: int
    """Congestion window."""
    ssthresh: int | None
    """Slow-start threshold; ``None``: not set yet."""
    in_flight: int
    """Unacknowledged data."""
    delivery_rate: float
    """The latest one; 0 where it is not known."""
    app_limited: bool
    """Whether that rate was limited by the application."""
    busy: float
    """Time in which data was under way."""
    window_limited: float
    """Of that, the time in which the receiver's window was the limit."""
    minimum_rtt: float
    """The minimum round trip; 0 where it is not known."""
    state: CongestionState
    reordering: int
    """Segments."""
    dsacks: int
    """Duplicate SACKs."""
    marked: int
    """Segments delivered with congestion marks."""
    starved: bool
    """Whether the sender had nothing to send at some time since its last report."""


@dataclass(frozen=True)
class KernelRtt:
    """The receiver's own estimate of the round trip."""

    rtt: float


@dataclass(frozen=True)
class MinimumRtt:
    """The minimum round trip of what this end sent, the handshake's mostly."""

    rtt: float


@dataclass(frozen=True)
class OutOfOrder:
    """So many segments arrived ahead of a missing one since the last time."""

    segments: int


@dataclass(frozen=True)
class Train:
    """A packet train asked for with :class:`RequestTrain` arrived, or did not."""

    sent: int
    """Packets."""
    received: int
    """Of these, the ones that arrived."""
    bytes_after_first: int
    """Bytes of those that arrived after the first one, on the wire."""
    dispersion: float
    """Time from the arrival of the first to that of the last."""


@dataclass(frozen=True)
class Window:
    """The window that is really advertised now."""

    advertised: int


@dataclass(frozen=True)
class Timeout:
    """The time given to :meth:`sweetspot.Controller.wake_at` has come."""


@dataclass(frozen=True)
class End:
    """All connections of this path are over."""


Input: TypeAlias = Union[
    Data, Probe, Sender, KernelRtt, MinimumRtt, OutOfOrder, Train, Window, Timeout, End
]
"""Input of a controller."""


@dataclass(frozen=True)
class SetWindow:
    """Limit the advertised window to ``size``; ``None``: the largest the host allows."""

    size: float | None


@dataclass(frozen=True)
class SetPacing:
    """Ask the sender to pace its payload at ``rate``; ``None``: as it likes."""

    rate: float | None


@dataclass(frozen=True)
class RequestTrain:
    """Ask the sender for ``packets`` back-to-back packets of ``size`` on the wire."""

    packets: int
    size: float


@dataclass(frozen=True)
class SetCongestion:
    """Ask the sender for a congestion control."""

    choice: CongestionChoice


@dataclass(frozen=True)
class CapacityEstimated:
    """To be recorded: the path's capacity is known, and the round trip that goes with it."""

    rate: float
    rtt: float


@dataclass(frozen=True)
class Limited:
    """To be recorded: the window limit was set."""

    window: float


@dataclass(frozen=True)
class Lifted:
    """To be recorded: the window limit was lifted."""


@dataclass(frozen=True)
class Saturated:
    """To be recorded: throughput no longer grows with the window."""

    rate: float
    rtt: float


@dataclass(frozen=True)
class Congested:
    """To be recorded: the path loses packets independently of this transfer."""


@dataclass(frozen=True)
class Entered:
    """To be recorded: the controller is in another state."""

    phase: Phase
    reason: Reason


@dataclass(frozen=True)
class Switched:
    """To be recorded: the sender was asked for a congestion control."""

    to: CongestionChoice


Event: TypeAlias = Union[
    CapacityEstimated, Limited, Lifted, Saturated, Congested, Entered, Switched
]
"""What is recorded in the outcome."""

Output: TypeAlias = Union[SetWindow, SetPacing, RequestTrain, SetCongestion, Event]
"""What a controller wants done or recorded."""
