"""The picture of benchmarks.walr.utility: normalised entropy against epsilon, one panel for each data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

INK, LINE = "#24292f", "#d8dee4"

Floats = NDArray[np.float64]
#: Colours that colour-blind readers can distinguish (Okabe and Ito 2008), a mark and a line for each.
STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "WALR": ("#0072b2", {"marker": "o", "linewidth": 2.6}),
    "WALR, 8 bins": ("#0072b2", {"marker": "o", "linewidth": 1.6, "linestyle": "--", "markerfacecolor": "white"}),
    "buckets, single features": ("#e69f00", {"marker": "s"}),
    "buckets, pairs of features": ("#d55e00", {"marker": "D"}),
    "label proportions": ("#cc79a7", {"marker": "v"}),
    "randomised response": ("#009e73", {"marker": "^"}),
    "objective perturbation": ("#56b4e9", {"marker": "x"}),
    "DP-SGD": ("#555555", {"marker": "P"}),
}
COLUMNS = 2
ABOVE = 1.1  # the highest loss that is drawn; above 1 a constant is better


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
    arms = {arm: rows for arm in STYLES if (rows := figures["arms"].get(arm))}
    for arm, rows in arms.items():
        band(axes, rows, arm)
    axes.axhline(figures["without_privacy"], color=INK, linewidth=1.2, linestyle="--", label="no privacy, linear")
    axes.axhline(1.0, color=INK, linewidth=1.0, linestyle=":", label="base rate")
    axes.set_ylim(*limits([of(rows, "median") for rows in arms.values()], figures["without_privacy"]))
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


def limits(medians: Sequence[Floats], reference: float) -> tuple[float, float]:
    """Return the limits of a panel.

    They leave out what is worse than the last line but one, or than a constant.
    """
    highest = sorted(float(line.max()) for line in medians)[-2:][0]
    lowest, highest = min(reference, *(float(line.min()) for line in medians)), min(highest, ABOVE)
    margin = 0.07 * (highest - lowest) or 0.01
    return lowest - margin, highest + margin


def band(axes: Axes, rows: Sequence[Mapping[str, Any]], arm: str) -> None:
    """Draw the median, and the 5th to the 95th percentile."""
    colour, style = STYLES[arm]
    epsilons = [row["epsilon"] for row in rows]
    axes.fill_between(epsilons, of(rows, "low"), of(rows, "high"), color=colour, alpha=0.1, linewidth=0)
    axes.plot(epsilons, of(rows, "median"), color=colour, markersize=4.5, label=arm, **{"linewidth": 1.4} | style)


def of(rows: Sequence[Mapping[str, Any]], key: str) -> Floats:
    """Return the figures of this key; a missing figure becomes a number above every panel."""
    return np.array([1e3 if row[key] is None else row[key] for row in rows])
