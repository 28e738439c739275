"""Advice from closed forms, from the simulator if they do not apply, and on the settings of this host.

>>> import sweetspot as ss
>>> advice = ss.advise.window(rate="10Gbit/s", rtt="80ms", kernel="6.18")
>>> advice["sweet_spot_low_bytes"]  # 1448 of 1500 bytes are payload
96533333

The settings that limit a connection on this host, and the commands that change them:

>>> advice = ss.advise.host(rate="10Gbit/s", rtt="80ms")
>>> [finding["command"] for finding in advice["findings"] if finding["gain_bps"]]  # doctest: +SKIP
['sysctl -w net.ipv4.tcp_wmem="4096 16384 193066666"', 'sysctl -w net.ipv4.tcp_rmem="4096 131072 193066667"']
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from typing import cast

from . import _core
from .tables import HostAdvice, RouterAdvice, WindowAdvice
from .units import Quantity

__all__ = ["host", "router", "window"]

NEWEST = "6.18"
"""The assumed kernel if this host does not run Linux."""


@dataclass(frozen=True)
class _Path:
    rate: str
    rtt: str
    buffer: str | None
    cross: str | None
    loss: str | None
    congestion: str
    mtu: str
    kernel: str


def window(
    rate: str | Quantity,
    rtt: str | Quantity,
    buffer: str | Quantity | None = None,
    cross: str | None = None,
    loss: str | float | None = None,
    mtu: str | Quantity = "1500B",
    kernel: str | None = None,
    simulate: bool = True,
    workers: int | None = None,
    congestion: str = "cubic",
) -> WindowAdvice:
    """The window that a path needs, and the cost of a wrong one: ``sweetspot advise window``.

    Args:
        rate: Capacity of the narrowest link.
        rtt: Round-trip time without queueing.
        buffer: Buffer of that link, if known.
        cross: Cross traffic and its share of the link, such as ``"mice:30%"``.
        loss: Random loss, or the loss of a path that was already congested.
        mtu: Size of the largest packet.
        kernel: The receiver's kernel, such as ``"6.18"``; by default this host's.
        simulate: Whether to try windows in the simulator if no closed form gives the best one (cross
            traffic or loss, and a known buffer). On a fast path, this takes long.
        workers: Number of threads for the simulation; by default one per core.
        congestion: The sender's congestion control, which decides the rate at a given loss:
            ``"cubic"`` or ``"reno"``.

    Returns:
        The members of ``--json``, and the printed advice as ``text``.

    Raises:
        ValueError: An argument is not a valid quantity, the path is impossible, or no window helps on it.
    """
    if kernel is None:
        kernel = platform.release() if platform.system() == "Linux" else NEWEST
    path = _Path(
        rate=str(rate),
        rtt=str(rtt),
        buffer=None if buffer is None else str(buffer),
        cross=cross,
        loss=None if loss is None else str(loss),
        congestion=congestion,
        mtu=str(mtu),
        kernel=kernel,
    )
    text, table = _core.advise_window(path, simulate, workers or os.cpu_count() or 1)
    return cast(WindowAdvice, {"text": text, **json.loads(table)})


@dataclass(frozen=True)
class _HostPath:
    rate: str | None
    rtt: str | None
    peer: str | None
    path_mtu: str | None
    peer_mtu: str | None
    rcvbuf: str | None
    connections: int
    peer_sysctl: str | None
    peer_kernel: str | None


def host(
    rate: str | Quantity | None = None,
    rtt: str | Quantity | None = None,
    peer: str | None = None,
    path_mtu: str | Quantity | None = None,
    peer_mtu: str | Quantity | None = None,
    rcvbuf: str | Quantity | None = None,
    connections: int = 1,
    peer_sysctl: str | None = None,
    peer_kernel: str | None = None,
) -> HostAdvice:
    """The settings of this host that limit a connection, and the gain from changes: ``sweetspot advise host``.

    It only reads settings. ``sysctl_file`` in the result is the text of a file for ``/etc/sysctl.d``.

    Args:
        rate: Capacity of the path. Without ``rate`` and ``rtt``, buffers are not checked.
        rtt: Round-trip time of the path.
        peer: Address of the other host. The path MTU to it is read from this kernel's cache; nothing is sent.
        path_mtu: Path MTU, if you know it; instead of ``peer``.
        peer_mtu: MTU of the other host's device.
        rcvbuf: The ``SO_RCVBUF`` that a program sets.
        connections: Number of simultaneous connections.
        peer_sysctl: Output of ``sysctl -a`` on the other host.
        peer_kernel: That host's kernel, such as ``"6.18"``, if the output does not name it.

    Returns:
        The members of ``--json``, the printed advice as ``text``, and the file of ``--write`` as ``sysctl_file``.

    Raises:
        ValueError: An argument is not a valid quantity, the path is impossible, or no window helps on it.
        OSError: This host does not run Linux.
    """
    if (rate is None) != (rtt is None):
        raise ValueError("rate and rtt: give both, or neither")
    if peer is not None and path_mtu is not None:
        raise ValueError("peer and path_mtu: give one of them")
    if peer_kernel is not None and peer_sysctl is None:
        raise ValueError("peer_kernel: give peer_sysctl, too")

    if platform.system() != "Linux":
        raise OSError("this host has no Linux, whose settings these are; advise.window() needs none")

    def text(quantity: str | Quantity | None) -> str | None:
        return None if quantity is None else str(quantity)

    path = _HostPath(
        rate=text(rate),
        rtt=text(rtt),
        peer=peer,
        path_mtu=text(path_mtu),
        peer_mtu=text(peer_mtu),
        rcvbuf=text(rcvbuf),
        connections=connections,
        peer_sysctl=peer_sysctl,
        peer_kernel=peer_kernel,
    )
    words, table, file = _core.advise_host(path)
    return cast(HostAdvice, {"text": words, "sysctl_file": file, **json.loads(table)})


@dataclass(frozen=True)
class _Link:
    rate: str
    rtt: str
    input_rate: str
    inputs: int | None
    flows: int | None
    load: float | None
    size_mean: str | None
    mix: str
    favour: str | None
    available: str | None
    packet: str


def router(
    rate: str | Quantity,
    rtt: str | Quantity,
    input_rate: str | Quantity,
    inputs: int | None = None,
    flows: int | None = None,
    load: float | None = None,
    size_mean: str | Quantity | None = None,
    mix: str = "bulk",
    favour: str | None = None,
    available: str | Quantity | None = None,
    packet: str | Quantity = "1500B",
) -> RouterAdvice:
    """The buffer for a router's link, by formulas: ``sweetspot advise router --verify none``.

    Args:
        rate: Rate of the output link.
        rtt: Round-trip time of the flows, without this link's queue.
        input_rate: Rate of the links that feed it, or of the flows' bottleneck upstream of it.
        inputs: Number of these links.
        flows: Number of simultaneously active flows; by default as many as fill the link.
        load: Share of the link that is used in busy times with an ample buffer.
        size_mean: Mean size of a transfer.
        mix: ``"short"`` or ``"bulk"``.
        favour: ``"throughput"``, ``"short"`` or ``"latency"``; by default according to the mix.
        available: The device's buffer.
        packet: Packet size.

    Returns:
        The members of ``--json``, and the printed advice as ``text``.

    Raises:
        ValueError: An argument is not a valid quantity, or the link is impossible.
    """
    link = _Link(
        rate=str(rate),
        rtt=str(rtt),
        input_rate=str(input_rate),
        inputs=inputs,
        flows=flows,
        load=load,
        size_mean=None if size_mean is None else str(size_mean),
        mix=mix,
        favour=favour,
        available=None if available is None else str(available),
        packet=str(packet),
    )
    text, table = _core.advise_router(link)
    return cast(RouterAdvice, {"text": text, **json.loads(table)})
