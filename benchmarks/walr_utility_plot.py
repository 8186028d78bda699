"""The picture of benchmarks.walr_utility: normalised entropy against epsilon, one panel for each data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

INK, LINE = "#24292f", "#d8dee4"
#: Colours that the colour-blind tell apart (Okabe and Ito 2008), and a mark for each.
STYLES = {
    "WALR": ("#0072b2", "o", 2.4),
    "buckets, single features": ("#e69f00", "s", 1.4),
    "buckets, pairs of features": ("#d55e00", "D", 1.4),
    "label proportions": ("#cc79a7", "v", 1.4),
    "randomised response": ("#009e73", "^", 1.4),
    "objective perturbation": ("#56b4e9", "x", 1.4),
    "DP-SGD": ("#555555", "P", 1.4),
}
COLUMNS = 2
ABOVE = 1.12  # the highest loss that is drawn: past 1 a constant is better


def draw(data: Mapping[str, Any], path: Path) -> None:
    figure = Figure(figsize=(9.6, 3.3 * -(-(len(data) + 1) // COLUMNS)), layout="constrained", facecolor="white")
    panels = figure.subplots(-(-(len(data) + 1) // COLUMNS), COLUMNS, squeeze=False).ravel()
    for axes, (name, figures) in zip(panels, data.items(), strict=False):
        panel(axes, name, figures)
    handles, labels = panels[0].get_legend_handles_labels()
    for axes in panels[len(data) :]:
        axes.axis("off")
    panels[len(data)].legend(handles, labels, fontsize=9.5, frameon=False, loc="center left")
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "blindfit"}):
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)


def panel(axes: Axes, name: str, figures: Mapping[str, Any]) -> None:
    for arm, (colour, mark, width) in STYLES.items():
        if rows := figures["arms"].get(arm):
            band(axes, rows, arm, colour, mark, width)
    axes.axhline(figures["without_privacy"], color=INK, linewidth=1.2, linestyle="--", label="no privacy, linear")
    axes.axhline(1.0, color=INK, linewidth=1.0, linestyle=":", label="base rate")
    best = min(row["median"] for rows in figures["arms"].values() for row in rows if row["median"])
    best = min(best, figures["without_privacy"])
    axes.set_ylim(best - 0.06 * (ABOVE - best), min(ABOVE, 1 + 0.6 * (1 - best)))
    epsilons = [row["epsilon"] for row in figures["arms"]["WALR"]]
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_title(f"{name}: {figures['rows']['train']:,} training rows", fontsize=10, color=INK, loc="left")
    axes.set_xlabel("epsilon (delta = 1e-5)", color=INK, fontsize=9)
    axes.set_ylabel("normalised entropy", color=INK, fontsize=9)
    axes.grid(color=LINE, linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8.5)


def band(axes: Axes, rows: Sequence[Mapping[str, Any]], arm: str, colour: str, mark: str, width: float) -> None:
    """The median, and the 5th to the 95th percentile; what has no figure is above every panel."""
    epsilons = [row["epsilon"] for row in rows]
    low, median, high = (
        np.array([np.inf if row[key] is None else row[key] for row in rows]).clip(max=1e3)
        for key in ("low", "median", "high")
    )
    axes.fill_between(epsilons, low, high, color=colour, alpha=0.13, linewidth=0)
    axes.plot(epsilons, median, color=colour, marker=mark, markersize=4.5, linewidth=width, label=arm)
