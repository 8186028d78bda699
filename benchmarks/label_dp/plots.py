"""The pictures of benchmarks.label_dp: test MSE against epsilon, the mean over seeds and one standard deviation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from benchmarks.label_dp.arms import ARMS

INK, LINE = "#24292f", "#d8dee4"
COLOURS = {
    "laplace": "#8a6d3b",
    "gaussian": "#9aa3ab",
    "staircase": "#c2571a",
    "rr-on-bins": "#7a4fa3",
    "unbiased": "#2f8f5b",
    "rp": "#7fb0e0",
    "rp debiased": "#2b7bba",
    "rp auto": "#e5a3c0",
    "rp auto debiased": "#0b3d91",
    "rp-banded": "#5c6670",
}
PANELS = {
    "other mechanisms, and one of ours": (
        "laplace", "gaussian", "staircase", "rr-on-bins", "unbiased", "rp auto debiased",
    ),
    "RPWithPrior": ("rp", "rp debiased", "rp auto", "rp auto debiased", "rp-banded"),
}  # fmt: skip
FULL_TITLES = {"rp debiased": "RPWithPrior, published h, debiased", "rp auto debiased": "RPWithPrior, auto h, debiased"}


def draw(datasets: Mapping[str, Any], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, figures in datasets.items():
        with mpl.rc_context({"svg.hashsalt": "blindfit"}):
            error_plot(name, figures).savefig(directory / f"label-dp-{name.lower()}.svg", metadata={"Date": None})


def error_plot(name: str, figures: Mapping[str, Any]) -> Figure:
    figure = Figure(figsize=(10.4, 4.6), layout="constrained", facecolor="white")
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (title, arms) in zip(panels, PANELS.items(), strict=True):
        for arm in arms:
            _band(axes, figures["rows"], arm)
        axes.axhline(figures["no_noise"]["mean"], color=INK, linewidth=1.1, linestyle="--", label="no noise")
        axes.axhline(figures["constant"]["mean"], color=INK, linewidth=1.1, linestyle=":", label="the mean label")
        _dress(axes, f"{name}: {title}", [row["epsilon"] for row in figures["rows"]])
        axes.legend(fontsize=8, frameon=False, loc="upper right")
    panels[0].set_ylabel("test MSE on true labels", color=INK)
    return figure


def _band(axes: Axes, rows: Sequence[Mapping[str, Any]], arm: str) -> None:
    epsilons = [row["epsilon"] for row in rows]
    mean, std = (np.array([row["arms"][arm][figure] for row in rows]) for figure in ("mean", "std"))
    axes.fill_between(
        epsilons, np.maximum(mean - std, mean / 4), mean + std, color=COLOURS[arm], alpha=0.13, linewidth=0
    )
    title = FULL_TITLES.get(arm, ARMS[arm].title)
    axes.plot(epsilons, mean, color=COLOURS[arm], marker="o", markersize=3.5, linewidth=1.7, label=title)


def _dress(axes: Axes, title: str, epsilons: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    axes.set_xlabel("epsilon", color=INK)
    axes.grid(color=LINE, linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8.5)
