"""Pictures with matplotlib: R(S) with the sweet spot, and any column of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import _core, theory

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

COLOURS: tuple[str, ...] = tuple(_core.COLOURS)
"""The pages' colours (Okabe and Ito's, which colour-blind readers can distinguish)."""
MARKERS = ("o", "s", "^", "D", "v")
"""A marker shape for each group, to distinguish groups without colours, too."""
INK, MUTED, GRID, EDGE = "#1c1c1a", "#5f5f5a", "#e4e4df", "#cfcfc8"
"""Colours of the text, the axes' text, the grid lines and the frame."""


def rate_curve(
    rate: float | str,
    rtt: float | str,
    buffer: float | str,
    ax: Axes | None = None,
    points: int = 400,
) -> Axes:
    """R(S) by eqs (4) and (5), up to twice the upper end of the sweet spot, which is shaded.

    Args:
        rate: Capacity, bit/s or a text with its unit.
        rtt: Two-way propagation, seconds or a text.
        buffer: The bottleneck's drop-tail buffer, bytes or a text.
        ax: Where to draw; a new figure by default.
        points: Number of windows to compute.
    """
    ax = dressed(ax)
    low, high = theory.sweet_spot(rate, rtt, buffer)
    window = np.linspace(high / points, 2 * high, points)
    goodput = theory.throughput(window, rate, rtt, buffer)
    ax.axvspan(low / 1e3, high / 1e3, color="#0072b2", alpha=0.2, lw=0)
    ax.plot(window / 1e3, goodput / 1e6, color=COLOURS[0], ls=(0, (5, 3)))
    ax.set_ylim(bottom=0)
    # Labels are placed at the things they name.
    middle = ax.get_xaxis_transform()
    ax.text(low / 1e3, 0.03, " sweet spot", transform=middle, color=MUTED, fontsize="small")
    ax.set_xlabel("socket buffer $S$, kB")
    ax.set_ylabel("throughput, Mbit/s, eqs (4), (5)")
    return ax


def sweep_curve(
    table: pa.Table,
    x: str,
    y: str = "goodput_bps",
    by: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The mean of ``y`` over the seeds against ``x``, with its 95 % interval and a line per value of ``by``.

    Args:
        table: The table that :func:`sweetspot.sweep` returned.
        x: A varied key with numeric values, or a column of numbers.
        y: A column of numbers; ``_bps`` is drawn in Mbit/s, ``_s`` in ms.
        by: Another column; each of its values gets a line.
        ax: Where to draw; a new figure by default.

    Raises:
        KeyError: There is no such column.
        ValueError: A value of ``x`` has no number.
    """
    ax = dressed(ax)
    values, unit = _column(table, y)
    keys, key_unit = _positions(table, x)
    groups = table.column(by).to_pylist() if by is not None else [""] * len(keys)
    for index, group in enumerate(dict.fromkeys(groups)):
        mine: dict[float, list[float]] = {}
        for key, owner, value in zip(keys, groups, values):
            if owner == group:
                mine.setdefault(key, []).append(value)
        xs = sorted(mine)
        means = [float(np.mean(mine[key])) for key in xs]
        errors = [_core.half_interval(mine[key]) or 0.0 for key in xs]
        ax.errorbar(
            xs,
            means,
            yerr=errors,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            markersize=4.5,
            lw=1.6,
            elinewidth=1,
            capsize=2.5,
            label=str(group) or None,
        )
    ax.set_xlabel(f"{x}, {key_unit}" if key_unit else x)
    ax.set_ylabel(f"{y.rsplit('_', 1)[0].replace('_', ' ')}, {unit}" if unit else y)
    if by is not None:
        ax.legend(frameon=False, title=by)
    return ax


def dressed(ax: Axes | None = None) -> Axes:
    """Axes in the style of the pages: a frame, grid lines behind the curves, muted numbers.

    Args:
        ax: Existing axes; a new figure by default.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")[1]
    ax.grid(axis="y", color=GRID, lw=1)
    ax.set_axisbelow(True)
    ax.tick_params(colors=MUTED, which="both", left=False)
    for spine in ax.spines.values():
        spine.set_color(EDGE)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(MUTED)
    ax.title.set_color(INK)
    return ax


def _column(table: pa.Table, name: str) -> tuple[list[float], str]:
    scale, unit = 1.0, ""
    if name.endswith("_bps"):
        scale, unit = 1e-6, "Mbit/s"
    elif name.endswith("_s"):
        scale, unit = 1e3, "ms"
    return [value * scale for value in table.column(name).to_pylist()], unit


UNITS = {"packets": "packets", "bytes": "bytes", "bps": "bit/s", "s": "s", "number": ""}
"""Suffixes of the columns of numbers that sweeps have in addition to a varied key."""


def _positions(table: pa.Table, key: str) -> tuple[list[float], str]:
    """The numbers at which to draw a key, and their unit."""
    texts = table.column(key).to_pylist()
    if not texts or not isinstance(texts[0], str):
        return texts, ""
    for end, unit in UNITS.items():
        if f"{key}_{end}" in table.column_names:
            numbers = table.column(f"{key}_{end}").to_pylist()
            for text, number in zip(texts, numbers):
                if number is None:
                    raise ValueError(f"{text!r} has no number to draw it at; draw it with by=")
            return numbers, unit
    raise ValueError(f"{key}: its values have no numbers in one unit; draw it with by=")
