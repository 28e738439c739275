"""Scenarios: from TOML, or from keywords."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypedDict, Union

import tomli_w

from . import _core
from .units import Quantity

if TYPE_CHECKING:
    from typing_extensions import Self

Value = Union[str, Quantity]
"""A quantity: a text with its unit, or a number times a unit of :mod:`sweetspot.units`."""


class Hop(TypedDict, total=False):
    """One hop of a chain of routers, or its backward direction: the keys of ``[path]`` for a hop."""

    rate: Value
    buffer: Value
    delay: Value
    queue: str
    burst: Value
    policer: Value
    policer_burst: Value
    loss: str
    loss_burst: int
    jitter: Value
    jitter_order: str
    reorder: str
    reorder_by: Value
    aggregation: Value


class ForwardHop(Hop, total=False):
    """One ``[[path.hop]]`` entry of docs/scenario.md."""

    backward: Hop


class Change(TypedDict, total=False):
    """One ``[[path.change]]`` entry of docs/scenario.md."""

    at: Value
    hop: int
    way: str
    rate: Value
    delay: Value


class Trace(TypedDict, total=False):
    """One ``[[path.trace]]`` entry of docs/scenario.md."""

    content: str
    hop: int
    way: str


class Path(ForwardHop, total=False):
    """The ``[path]`` table of docs/scenario.md."""

    rtt: Value
    packet: Value
    packet_spread: Value
    access_rate: Value
    reverse: str
    forward: str
    hop: Sequence[ForwardHop]
    change: Sequence[Change]
    trace: Sequence[Trace]


class Tcp(TypedDict, total=False):
    """The ``[tcp]`` table of docs/scenario.md."""

    flavour: str
    delayed_ack: bool
    ack_delay: Value
    initial_window: Value
    min_rto: Value
    initial_rto: Value
    clock: Value
    timestamps: bool
    limited_transmit: bool
    slow_start_restart: bool
    pacing: bool
    ecn: bool
    header: Value
    window_scale: int
    send_buffer: Value
    segment_overhead: Value
    backoff: Value
    max_window: Value


class Cross(Tcp, total=False):
    """One ``[[cross]]`` entry of docs/scenario.md."""

    kind: str
    count: int
    rate: Value
    shape: float
    window: Value
    rtt: Value | Sequence[Value]
    start: Value | Sequence[Value]
    nodes: int
    packets: Sequence[int]
    sleep: Sequence[Value]
    users: int
    size_mean: Value
    size_shape: float
    think_mean: Value
    hop: int
    last_hop: int
    congestion: str
    inputs: int
    input_rate: Value
    servers: int


class Transfer(Tcp, total=False):
    """One ``[[transfer]]`` entry of docs/scenario.md."""

    start: Value
    follows: bool
    size: Value
    count: int
    congestion: str
    congestion_fixed: bool
    sizing: str
    reader: str
    writer: str


class Scenario(_core.Scenario):
    """A valid scenario; immutable and picklable.

    The constructor takes the tables of docs/scenario.md as keywords::

        Scenario(
            path=dict(rate=50 * Mbit_s, rtt="100ms", buffer="625pkt"),
            cross=[dict(kind="elephants", count=20, window="22pkt")],
            transfer=[dict(start="15s", sizing="sobas")],
            warmup="65s",
            duration="150s",
        )

    A quantity is a text with its unit or a number times a unit.

    Raises:
        ScenarioError: Names the key, the line, and the valid values.
    """

    def __new__(
        cls,
        text: str | None = None,
        overrides: Sequence[str] = (),
        *,
        path: Path | None = None,
        duration: Value | None = None,
        warmup: Value | None = None,
        tcp: Tcp | None = None,
        cross: Sequence[Cross] = (),
        transfer: Sequence[Transfer] = (),
        title: str | None = None,
        seed: int | None = None,
        ties: str | None = None,
        send_pool: Value | None = None,
    ) -> Self:
        if text is None:
            tables = {
                "title": title,
                "seed": seed,
                "warmup": warmup,
                "duration": duration,
                "ties": ties,
                "send_pool": send_pool,
                "path": path,
                "tcp": tcp,
                "cross": cross or None,
                "transfer": transfer or None,
            }
            given = {key: value for key, value in tables.items() if value is not None}
            text = tomli_w.dumps(_plain(given))
        return super().__new__(cls, text, list(overrides))

    @classmethod
    def from_toml(cls, text: str, overrides: Sequence[str] = ()) -> Self:
        """A scenario from the text of a TOML file."""
        return cls(text, overrides)

    @classmethod
    def from_file(cls, file: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Self:
        """A scenario from a TOML file."""
        return cls(FilePath(file).read_text(encoding="utf-8"), overrides)

    def replace(self, changes: Mapping[str, object] | None = None, **more: object) -> Scenario:
        """The same scenario with other values for some keys.

        Keys are those of ``--set``: ``{"path.buffer": "313pkt", "transfer.0.sizing": "sobas"}``.
        """
        assignments = [
            f"{key}={assignable(value)}" for key, value in {**(changes or {}), **more}.items()
        ]
        return Scenario(self.text, [*self.overrides, *assignments])


def assignable(value: object) -> str:
    """A value in the form of ``--set``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(f'"{assignable(item)}"' for item in value) + "]"
    return str(value)


def _plain(value: Any) -> Any:
    """Converts a value to tables, lists and strings only, as in TOML."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Quantity) else value
