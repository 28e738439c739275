"""The types of the package's results, which are the same as the program's ``--json``.

Rates are in bit/s (``_bps``), times in seconds (``_s``) and sizes in bytes (``_bytes``); shares and loss rates are
between 0 and 1; unknown values are ``None``. docs/formats.md describes each member.
"""

from __future__ import annotations

from typing import Literal, Optional, TypedDict, Union


class Quantiles(TypedDict):
    """Quantiles of a ratio over paths."""

    p1: Optional[float]
    p5: Optional[float]
    p25: Optional[float]
    p50: Optional[float]
    p75: Optional[float]
    p95: Optional[float]


class RunMeasured(TypedDict):
    """The results on one path, as means over its seeds."""

    goodput_bps: float
    delay_s: float
    delivered: float
    retransmitted: float
    timeouts: float
    rivals_bps: float


# "class" is a Python keyword.
ClassSummary = TypedDict(
    "ClassSummary",
    {
        "class": str,
        "paths": int,
        "goodput": Quantiles,
        "goodput_mean": Optional[float],
        "surely_worse": Optional[float],
        "delay_median": Optional[float],
        "delay": Optional[float],
        "retransmitted": Optional[float],
        "timeouts": Optional[float],
        "rivals": Quantiles,
    },
)


class PathComparison(TypedDict):
    """The results on a path with a sizing and with the kernel's own."""

    path: int
    classes: list[str]
    goodput: float
    surely_worse: Optional[bool]
    variant: RunMeasured
    kernel: RunMeasured


class VariantResult(TypedDict):
    """The results of a sizing with a congestion control, over all paths."""

    sizing: str
    congestion: str
    classes: list[ClassSummary]
    paths: list[PathComparison]


class GauntletReport(TypedDict):
    """The result of :func:`sweetspot.gauntlet`."""

    sweetspot_gauntlet: int
    version: str
    population: str
    seed: int
    first_path: int
    paths: int
    seeds: int
    duration_s: float
    variants: list[VariantResult]


class Formula(TypedDict):
    """A formula with its numbers."""

    what: str
    rule: str
    numbers: str
    source: str


class TriedWindow(TypedDict):
    """A window that the simulator tried."""

    window_bytes: int
    rate_bps: int
    rate_error_bps: int
    rate_interval_bps: int
    as_fast: bool
    unsure: bool
    delay_s: float
    loss_rate: float


class TriedWindows(TypedDict):
    """The windows that the simulator tried."""

    seeds: int
    settling_s: float
    measured_s: float
    access_bps: int
    cross: Optional[str]
    windows: list[TriedWindow]


class AddedDelay(TypedDict):
    """The queueing delay that a window adds."""

    recommended: Optional[float]
    double: Optional[float]


class FillsPath(TypedDict):
    """Ways to fill 95 % of a path on which loss limits one connection."""

    loss_rate: Optional[float]
    connections: int
    bbr: bool


class WindowSettings(TypedDict):
    """Kernel settings that allow a window."""

    kernel: str
    tcp_rmem_max_bytes: int
    so_rcvbuf_bytes: int
    tcp_wmem_max_bytes: int
    window_scale: int
    granularity_bytes: int


class WindowAdvice(TypedDict):
    """The result of :func:`sweetspot.advise.window`."""

    text: str
    connections: int
    sweet_spot_low_bytes: int
    sweet_spot_high_bytes: int
    bdp1_bytes: Optional[int]
    bdp2_bytes: Optional[int]
    bdp3_bytes: Optional[int]
    bdp4_bytes: Optional[int]
    bdp5_bytes: Optional[int]
    bdp6_bytes: Optional[int]
    recommended_bytes: Optional[int]
    expected_bps: dict[str, Optional[int]]
    half_bytes: Optional[int]
    double_bytes: Optional[int]
    expected_by: dict[str, Optional[Literal["simulation", "closed form"]]]
    added_delay_s: AddedDelay
    loss_limited: bool
    fills_path: Optional[FillsPath]
    closed_form_bps: Optional[float]
    congestion: Literal["cubic", "reno"]
    simulated: Optional[TriedWindows]
    settings: WindowSettings
    warnings: list[str]
    assumptions: list[str]
    formulas: list[Formula]
    sources: str


class HostDirection(TypedDict):
    """The rate of one connection in a direction, and the setting that caps it."""

    direction: Literal["receiving", "sending"]
    expected_bps: int
    cap: Optional[str]
    cap_end: Optional[Literal["this host", "the peer"]]
    cap_window_bytes: Optional[int]


class HostFinding(TypedDict):
    """A setting to change."""

    what: str
    end: Literal["this host", "the peer"]
    why: str
    now: str
    wanted: str
    gain_bps: Optional[int]
    cost_bytes: Optional[int]
    command: Optional[str]
    by_hand: Optional[str]
    undo: Optional[str]


# "class" is a Python keyword.
PublishedSettings = TypedDict(
    "PublishedSettings",
    {
        "who": str,
        "class": str,
        "socket_max_bytes": int,
        "autotuning_max_bytes": int,
    },
)


class HostAdvice(TypedDict):
    """The result of :func:`sweetspot.advise.host`."""

    text: str
    sysctl_file: str
    window_bytes: Optional[int]
    mtu_bytes: int
    window_mtu_bytes: Optional[int]
    connections: Optional[int]
    directions: list[HostDirection]
    findings: list[HostFinding]
    references: list[PublishedSettings]
    missing_from_peer: list[str]
    formulas: list[Formula]
    sources: str


class BufferRange(TypedDict):
    """The buffers with at least nine tenths of the best rate."""

    low_packets: float
    high_packets: Optional[float]
    low_bytes: int
    high_bytes: Optional[int]


class BufferChoice(TypedDict):
    """A buffer and its effects."""

    source: Literal["formula", "simulation"]
    packets: float
    bytes: int
    worst_delay_s: float
    delay_s: Optional[float]
    loss: Optional[float]
    utilisation: Optional[float]
    active_flows: int
    flow_bps: Optional[int]
    short_bps: Optional[int]
    bulk_bps: Optional[int]
    short_error_bps: Optional[int]
    bulk_error_bps: Optional[int]
    loss_error: Optional[float]
    delay_error_s: Optional[float]
    utilisation_error: Optional[float]
    interpolated: bool


class TransferSizes(TypedDict):
    """The transfers by which a buffer is judged."""

    short: int
    bulk: int


class OutsideRange(TypedDict):
    """A quantity outside the range to which the model was fitted."""

    quantity: str
    given: float
    low: float
    high: float


class TwoRules(TypedDict):
    """Two rules for flows that may persist: if they persist, and if they are transfers that come and go."""

    persistent: BufferChoice
    transfers: BufferChoice


class RouterAdvice(TypedDict):
    """The result of :func:`sweetspot.advise.router`."""

    text: str
    gamma: float
    flows: int
    size_mean_bytes: int
    two_rules: Optional[TwoRules]
    form: Literal["PL", "EX"]
    form_of_ratio: Optional[Literal["PL", "EX"]]
    basis: str
    source: Literal["formula", "simulation"]
    closed_form: bool
    maximised: Literal["bulk", "short"]
    transfer_bytes: TransferSizes
    buffer_packets: float
    buffer_bytes: int
    buffer_delay_s: float
    delay_s: Optional[float]
    loss: Optional[float]
    utilisation: Optional[float]
    active_flows: int
    flow_bps: Optional[int]
    short_bps: Optional[int]
    bulk_bps: Optional[int]
    short_error_bps: Optional[int]
    bulk_error_bps: Optional[int]
    loss_error: Optional[float]
    delay_error_s: Optional[float]
    utilisation_error: Optional[float]
    interpolated: bool
    range_90_percent: Optional[BufferRange]
    rules: dict[str, BufferChoice]
    available: Optional[BufferChoice]
    fit: None
    simulation: None
    outside: list[OutsideRange]
    warnings: list[str]
    assumptions: list[str]
    formulas: list[Formula]
    sources: str


# "class" is a Python keyword.
Verdict = TypedDict(
    "Verdict",
    {
        "class": str,
        "cause": str,
        "share_of_time": float,
        "allowed_bps": Optional[float],
        "words": str,
    },
)


class ApplicationTime(TypedDict):
    """Shares of the time in which the sender had nothing to send."""

    own: float
    waiting_for_peer: float
    idle: float


class RetransmissionFacts(TypedDict):
    """Retransmissions, by cause."""

    fast: int
    timeout: int
    tail: int
    spurious: int
    taken_back: int


class WindowFacts(TypedDict):
    """The receiver's window, bytes."""

    min: Optional[int]
    median: Optional[int]
    largest: Optional[int]
    scale: Optional[int]


class RttFacts(TypedDict):
    """Statistics of the RTT."""

    min_s: Optional[float]
    mean_s: Optional[float]
    median_s: Optional[float]
    p99_s: Optional[float]
    samples: int
    measured: str


class Facts(TypedDict):
    """The figures of a captured flow (docs/diagnose.md)."""

    bytes: int
    acked_bytes: int
    unseen_bytes: int
    data_segments: int
    retransmitted: RetransmissionFacts
    loss_events: int
    timeouts: int
    out_of_order: int
    captured_twice: int
    zero_windows: int
    window_probes: int
    keep_alives: int
    shut_s: float
    window: WindowFacts
    mss: int
    largest_segment: int
    sack: Optional[bool]
    timestamps: bool
    rtt: RttFacts
    vantage: str
    largest_flight: int
    largest_burst: int
    delivery_bps: Optional[float]


class Found(TypedDict):
    """A quantity of a path, with its interval and method."""

    value: float
    low: Optional[float]
    high: Optional[float]
    how: str


class Untold(TypedDict):
    """The reason why a quantity of a path is unknown."""

    unknown: str


class Path(TypedDict):
    """The path, as measured from a capture."""

    capacity_bps: Union[Found, Untold]
    rtt_s: Union[Found, Untold]
    buffer_bytes: Union[Found, Untold]
    loss: Union[Found, Untold]
    segment_bytes: int
    header_bytes: int


class Flow(TypedDict):
    """The diagnosis of the data that one end of a connection sent."""

    source: str
    destination: str
    verdict: Verdict
    limits: dict[str, float]
    application_time: ApplicationTime
    rtt_min_s: Optional[float]
    rtt_median_s: Optional[float]
    goodput_bps: float
    bytes: int
    retransmitted_segments: int
    expected_gain_bps: Optional[float]
    fix: str
    remarks: list[str]
    zero_windows: int
    facts: Facts
    path: Path


class Diagnosis(TypedDict):
    """The result of :func:`sweetspot.diagnose`."""

    flows: list[Flow]
    flows_left_out: int
    packets: int
    tcp_segments: int
    remarks: list[str]
