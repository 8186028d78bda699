"""The plot of benchmarks.paillier: what an element of a sum of products costs as the rows grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

FUNCTIONS = {"columns_dot": ("X^T [[w]]", "#1f5fa8"), "rows_dot": ("X [[w]]", "#c2571a")}
PHE_COLOUR, INK, LINE = "#5c6670", "#24292f", "#d8dee4"
STYLES = ("-", "--", ":", "-.")

Growth = Sequence[Mapping[str, Any]]


def growth_plot(growth: Mapping[int, Growth], file: Path) -> None:
    """Time of an element, and the speed-up over python-paillier, over the rows; a style of line for each key size."""
    figure = Figure(figsize=(9.2, 4.0), layout="constrained", facecolor="white")
    times, speedups = figure.subplots(1, 2)
    for (bits, rows), style in zip(growth.items(), STYLES, strict=False):
        for name in FUNCTIONS:
            _line(times, rows, name, "us", bits, style)
            _line(speedups, rows, name, "speedup", bits, style)
        mine = [row for row in rows if row["function"] == "columns_dot"]
        _plot(times, mine, "phe_us", PHE_COLOUR, style, f"phe, {bits} bits")
    times.set_yscale("log")
    times.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    times.minorticks_off()
    _dress(times, "microseconds per element, one core")
    place = {"loc": "center right", "bbox_to_anchor": (1.0, 0.56), "ncols": len(growth)}
    times.legend(fontsize=8, frameon=False, handlelength=3.2, **place)
    speedups.set_ylim(bottom=0)
    _dress(speedups, "times faster than python-paillier")
    with mpl.rc_context({"svg.hashsalt": "blindfit"}):
        figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)


def _line(axes: Axes, rows: Growth, name: str, figure: str, bits: int, style: str) -> None:
    label, colour = FUNCTIONS[name]
    _plot(axes, [row for row in rows if row["function"] == name], figure, colour, style, f"{label}, {bits} bits")


def _plot(axes: Axes, rows: Growth, figure: str, colour: str, style: str, label: str) -> None:
    axes.plot(
        [row["rows"] for row in rows], [row[figure] for row in rows],
        color=colour, linestyle=style, marker="o", markersize=4, linewidth=1.7, label=label,
    )  # fmt: skip


def _dress(axes: Axes, title: str) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("rows, of 20 columns of 16-bit numbers", color=INK)
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    axes.xaxis.set_major_formatter(lambda value, _position: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _position: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(color=LINE, linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=9)
