"""Inputs and outputs of a sizing controller, the same as for native ones.

Times are in seconds, rates in bit/s and sizes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, Union

Probing: TypeAlias = Literal["never", "periodic", "budgeted", "sparse"]
"""The probing rate: never; every 20 ms; at most 0.5 % of the bytes received; once a second."""

CongestionChoice: TypeAlias = Literal["own", "reno", "bbr"]
"""A sender's congestion control: its original one, or the named one."""

CongestionState: TypeAlias = Literal["open", "disorder", "reduced", "recovery", "loss"]
"""Linux's ``enum tcp_ca_state``."""

Phase: TypeAlias = Literal[
    "hands-off", "measuring", "ramping", "holding", "trying", "open", "congested"
]
"""The phase of a controller."""

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
    "queue-gone",
    "queue-below-target",
    "queue-above-target",
    "packet-lost",
    "slowdown",
    "slowdown-over",
]
"""The reason for a controller's change of state."""


@dataclass(frozen=True)
class Needs:
    """The inputs that a controller needs; it gets only these."""

    probes: Probing = "never"
    trains: bool = False
    data: bool = False
    kernel_rtt: bool = False
    minimum_rtt: bool = False
    out_of_order: bool = False
    window: bool = False


EVERYTHING = Needs("periodic", True, True, True, True, True, True)
"""All inputs."""


@dataclass(frozen=True)
class Data:
    """The application read ``size`` bytes of payload; ``unread`` bytes are still waiting."""

    size: int
    unread: int


@dataclass(frozen=True)
class Probe:
    """The answer to a probe arrived."""

    rtt: float
    """RTT of this probe, which waits in no send or receive buffer."""
    forward_lost: int
    """Probes lost on the forward path since the previous answer."""


@dataclass(frozen=True)
class Sender:
    """The sender's report, which arrives with a probe's answer. Counters start with the transfer."""

    retransmitted: int
    """Number of segments retransmitted."""
    cwnd: int
    """Congestion window."""
    ssthresh: int | None
    """Slow-start threshold; ``None``: not set yet."""
    in_flight: int
    """Unacknowledged data."""
    delivery_rate: float
    """The latest delivery rate; 0 if unknown."""
    app_limited: bool
    """Whether the application limited that rate."""
    busy: float
    """Time with data in flight."""
    window_limited: float
    """The part of that time in which the receiver's window was the limit."""
    minimum_rtt: float
    """The min RTT; 0 if unknown."""
    state: CongestionState
    reordering: int
    """Tolerated reordering, in segments."""
    dsacks: int
    """Duplicate SACKs."""
    marked: int
    """Segments delivered with congestion marks."""
    starved: bool
    """Whether the sender ran out of data at some time since its last report."""


@dataclass(frozen=True)
class KernelRtt:
    """The receiving kernel's estimate of the RTT."""

    rtt: float


@dataclass(frozen=True)
class MinimumRtt:
    """The min RTT of this end's own segments, mostly from the handshake."""

    rtt: float


@dataclass(frozen=True)
class OutOfOrder:
    """The number of segments that arrived out of order since the last report."""

    segments: int


@dataclass(frozen=True)
class Train:
    """The result of a packet train that :class:`RequestTrain` requested."""

    sent: int
    """Number of packets sent."""
    received: int
    """Packets of these that arrived."""
    bytes_after_first: int
    """Bytes on the wire of the packets that arrived after the first one."""
    dispersion: float
    """Time between the arrivals of the first and the last packet."""


@dataclass(frozen=True)
class Window:
    """The window that the kernel actually advertises."""

    advertised: int


@dataclass(frozen=True)
class Timeout:
    """The time given to :meth:`sweetspot.Controller.wake_at` has been reached."""


@dataclass(frozen=True)
class End:
    """All connections on this path have ended."""


Input: TypeAlias = Union[
    Data, Probe, Sender, KernelRtt, MinimumRtt, OutOfOrder, Train, Window, Timeout, End
]
"""Input of a controller."""


@dataclass(frozen=True)
class SetWindow:
    """Limit the advertised window to ``size``; ``None`` removes the limit."""

    size: float | None


@dataclass(frozen=True)
class SetPacing:
    """Ask the sender to pace its payload at ``rate``; ``None``: to stop pacing."""

    rate: float | None


@dataclass(frozen=True)
class RequestTrain:
    """Ask the sender for ``packets`` back-to-back packets of ``size`` bytes on the wire."""

    packets: int
    size: float


@dataclass(frozen=True)
class SetCongestion:
    """Ask the sender to use a congestion control."""

    choice: CongestionChoice


@dataclass(frozen=True)
class CapacityEstimated:
    """Event: the controller knows the path's capacity and its RTT."""

    rate: float
    rtt: float


@dataclass(frozen=True)
class Limited:
    """Event: the controller limited the window."""

    window: float


@dataclass(frozen=True)
class Lifted:
    """Event: the controller removed the limit."""


@dataclass(frozen=True)
class Saturated:
    """Event: throughput no longer grows with the window."""

    rate: float
    rtt: float


@dataclass(frozen=True)
class Congested:
    """Event: the path loses packets regardless of this transfer."""


@dataclass(frozen=True)
class Entered:
    """Event: the controller entered another state."""

    phase: Phase
    reason: Reason


@dataclass(frozen=True)
class Switched:
    """Event: the controller asked the sender for a congestion control."""

    to: CongestionChoice


Event: TypeAlias = Union[
    CapacityEstimated, Limited, Lifted, Saturated, Congested, Entered, Switched
]
"""An event for the outcome's record."""

Output: TypeAlias = Union[SetWindow, SetPacing, RequestTrain, SetCongestion, Event]
"""An action or an event from a controller."""
