"""Pictures with matplotlib: R(S) with the sweet spot, and any column of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import theory

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers can distinguish; hues and markers change together.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")


def rate_curve(
    rate: float | str,
    rtt: float | str,
    buffer: float | str,
    ax: Axes | None = None,
    points: int = 400,
) -> Axes:
    """R(S) by eqs (4) and (5) up to twice the sweet spot's end, the sweet spot shaded.

    Args:
        rate: Capacity, bit/s or a text with its unit.
        rtt: Two-way propagation, seconds or a text.
        buffer: The bottleneck's drop-tail buffer, bytes or a text.
        ax: Where to draw; a new figure by default.
        points: How many windows are computed.
    """
    ax = _axes(ax)
    low, high = theory.sweet_spot(rate, rtt, buffer)
    window = np.linspace(high / points, 2 * high, points)
    goodput = theory.throughput(window, rate, rtt, buffer)
    ax.axvspan(low / 1e3, high / 1e3, color="#009E73", alpha=0.15, label="sweet spot", lw=0)
    ax.plot(window / 1e3, goodput / 1e6, color=COLOURS[0], label="R(S), eqs (4), (5)")
    ax.set_xlabel("socket buffer S (kB)")
    ax.set_ylabel("throughput (Mbit/s)")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def sweep_curve(
    table: pa.Table,
    x: str,
    y: str = "goodput_bps",
    by: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The mean of ``y`` over the seeds against ``x``, with the standard error, a line per ``by``.

    Args:
        table: What :func:`sweetspot.sweep` returned.
        x: A varied key; its values are read as numbers, units left out.
        y: A column of numbers; ``_bps`` is drawn in Mbit/s, ``_s`` in ms.
        by: Another column whose values get a line each.
        ax: Where to draw; a new figure by default.

    Raises:
        KeyError: no such column.
    """
    ax = _axes(ax)
    values, unit = _column(table, y)
    keys = [_number(text) for text in table.column(x).to_pylist()]
    groups = table.column(by).to_pylist() if by is not None else [""] * len(keys)
    for index, group in enumerate(dict.fromkeys(groups)):
        mine: dict[float, list[float]] = {}
        for key, owner, value in zip(keys, groups, values):
            if owner == group:
                mine.setdefault(key, []).append(value)
        xs = sorted(mine)
        means = [float(np.mean(mine[key])) for key in xs]
        errors = [_standard_error(mine[key]) for key in xs]
        ax.errorbar(
            xs,
            means,
            yerr=errors,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            capsize=3,
            label=str(group) or None,
        )
    ax.set_xlabel(x)
    ax.set_ylabel(f"{y.rsplit('_', 1)[0].replace('_', ' ')} ({unit})" if unit else y)
    if by is not None:
        ax.legend(frameon=False, title=by)
    return ax


def _axes(ax: Axes | None) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(6.4, 3.6), layout="constrained")[1]


def _column(table: pa.Table, name: str) -> tuple[list[float], str]:
    scale, unit = 1.0, ""
    if name.endswith("_bps"):
        scale, unit = 1e-6, "Mbit/s"
    elif name.endswith("_s"):
        scale, unit = 1e3, "ms"
    return [value * scale for value in table.column(name).to_pylist()], unit


def _number(text: str) -> float:
    digits = text.rstrip("%/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    try:
        return float(digits)
    except ValueError:
        raise ValueError(f"{text!r} has no number to draw it at; draw it with by=") from None


def _standard_error(sample: list[float]) -> float:
    return float(np.std(sample, ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else 0.0
