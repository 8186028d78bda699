"""The pictures of benchmarks.dp_lr: accuracy against epsilon, loss against iterations, decision boundaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.dp_lr.data import DELTA, EPSILONS, Split, gaussian_split
from blindfit import DPLogisticRegression, Pretrained
from blindfit.algorithms.statistics.dp_lr import descent as dp_gradient
from blindfit.algorithms.statistics.dp_lr.descent import DescentSettings
from blindfit.algorithms.statistics.linear.logistic import sigmoid
from blindfit.algorithms.statistics.linear.scaling import append_constant
from blindfit.algorithms.statistics.quality import metrics

PLAIN, PRETRAINED, INK, MUTED, LINE = "#c2571a", "#1f5fa8", "#24292f", "#5c6670", "#d8dee4"
ARMS = {"plain": ("no pre-training", PLAIN), "pretrained": ("pre-training", PRETRAINED)}
TITLES = {"defaults": "learning rate from the noise (default)", "fixed rate": "one fixed rate, declared bounds"}
LOSS_EPSILONS = (0.5, 1.0, 10.0)
BOUNDARY_EPSILONS = (0.1, 0.5, 1.0, 10.0)
BOUNDARY_DRAWS = 12
SEED = 1

Floats = NDArray[np.float64]


def draw(datasets: Mapping[str, Any], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, figures in datasets.items():
        _save(accuracy_plot(name, figures), directory / f"dp-lr-accuracy-{name.replace(' ', '-').lower()}.svg")
    split = gaussian_split(SEED)
    _save(loss_plot(split), directory / "dp-lr-loss.svg")
    _save(boundary_plot(split), directory / "dp-lr-boundaries.svg")


# --- accuracy against epsilon --------------------------------------------------------------------------------


def accuracy_plot(name: str, figures: Mapping[str, Any]) -> Figure:
    figure = Figure(figsize=(9.6, 4.0), layout="constrained", facecolor="white")
    panels = figure.subplots(1, len(figures["settings"]), sharey=True, squeeze=False)[0]
    for axes, (setting, rows) in zip(panels, figures["settings"].items(), strict=True):
        for arm, (label, colour) in ARMS.items():
            _band(axes, rows, arm, label, colour)
        axes.axhline(figures["non_private"]["mean"], color=INK, linewidth=1.1, label="no privacy (scikit-learn)")
        axes.axhline(
            figures["public_alone"]["mean"], color=MUTED, linewidth=1.1, linestyle=":", label="public model by itself"
        )
        axes.set_xscale("log")
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.xaxis.set_minor_locator(NullLocator())
        for label in axes.get_xticklabels()[-2:-1]:
            label.set_visible(False)  # 15 stands too near 10
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        _dress(axes, f"{name}: {TITLES[setting]}", "epsilon (delta = 1e-5)")
    panels[0].set_ylabel("accuracy on test rows", color=INK)
    panels[-1].legend(fontsize=8.5, frameon=False, loc="lower right")
    return figure


def _band(axes: Axes, rows: Sequence[Mapping[str, Any]], arm: str, label: str, colour: str) -> None:
    epsilons = [row["epsilon"] for row in rows]
    mean = np.array([row[arm]["mean"] for row in rows])
    std = np.array([row[arm]["std"] for row in rows])
    axes.fill_between(epsilons, mean - std, np.minimum(mean + std, 1), color=colour, alpha=0.14, linewidth=0)
    axes.plot(epsilons, mean, color=colour, marker="o", markersize=4, linewidth=1.8, label=label)


# --- loss against iterations ---------------------------------------------------------------------------------


def loss_plot(split: Split) -> Figure:
    """Draw the loss on test rows, which are public here; the private rows' own loss would have to be paid for."""
    figure = Figure(figsize=(9.6, 4.0), layout="constrained", facecolor="white")
    panels = figure.subplots(1, 2, sharey=True)
    starts = {"plain": split.scale_alone(), "pretrained": split.pretrained()}
    shades = {"plain": ("#eec4a6", "#dd8a52", PLAIN), "pretrained": ("#b4cde8", "#6f9fd0", PRETRAINED)}
    for axes, (arm, init) in zip(panels, starts.items(), strict=True):
        for epsilon, shade in zip(LOSS_EPSILONS, shades[arm], strict=True):
            model = DPLogisticRegression(epsilon, DELTA, init=init).fit(*split.private, *split.test)
            axes.plot(model.loss_curve_, color=shade, linewidth=1.9, label=f"epsilon {epsilon:g}")
        axes.plot(
            loss_without_privacy(split, init), color=INK, linewidth=1.3, linestyle="--", label="the same without noise"
        )
        _dress(axes, ARMS[arm][0], "iteration")
        axes.legend(fontsize=8.5, frameon=False, loc="upper right")
    panels[0].set_ylabel("log loss on test rows", color=INK)
    return figure


def loss_without_privacy(split: Split, init: Pretrained) -> list[float]:
    """Return the estimator's own descent at its largest rate, with nothing added to the sums."""
    model, start = DPLogisticRegression(), init.weights_for(init.standardiser)
    rows, test = (append_constant(init.standardiser.transform(part[0])) for part in (split.private, split.test))
    rate = dp_gradient.default_learning_rate(1e-12, rows.shape[1], model.n_iterations, model.clip_norm)
    descent = dp_gradient.descend(
        rows,
        split.private[1],
        DescentSettings(model.clip_norm, rate, model.n_iterations, len(rows)),
        start=start,
        anchor=start,
        sample=None,
        release_gradient=list,
    )
    return [metrics.log_loss(split.test[1], sigmoid(scores)) for scores in (test @ descent.path.T).T]


# --- decision boundaries -------------------------------------------------------------------------------------


def boundary_plot(split: Split) -> Figure:
    """Draw several fits of the same rows at each epsilon, to show how far the noise turns the line."""
    figure = Figure(figsize=(11.2, 5.6), layout="constrained", facecolor="white")
    grid = figure.subplots(len(ARMS), len(BOUNDARY_EPSILONS), sharex=True, sharey=True)
    best = LogisticRegression().fit(*split.private)
    starts = {"plain": split.scale_alone(), "pretrained": split.pretrained()}
    for row, (arm, (label, colour)) in zip(grid, ARMS.items(), strict=True):
        for axes, epsilon in zip(row, BOUNDARY_EPSILONS, strict=True):
            top, bottom = arm == "plain", arm == "pretrained"
            _points(axes, split)
            for draw in range(BOUNDARY_DRAWS):
                model = DPLogisticRegression(epsilon, DELTA, init=starts[arm], release=draw).fit(*split.private)
                _boundary(axes, model, colour, label, width=0.9, alpha=0.75)
            _boundary(axes, best, INK, "no privacy", width=1.8, alpha=1.0)
            _dress(axes, f"epsilon {epsilon:g}" if top else "", "first feature" if bottom else "")
            axes.grid(visible=False)
        row[0].set_ylabel("second feature", color=INK)
    named = {name: line for axes in grid[:, 0] for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=5, fontsize=9, frameon=False)
    return figure


def _points(axes: Axes, split: Split) -> None:
    features, labels = split.private
    for happened, colour in ((False, "#8a9299"), (True, "#46a06b")):
        first, second = features[labels == happened].T
        axes.scatter(
            first, second, s=6, color=colour, alpha=0.4, linewidths=0, label=f"class {happened:d}", rasterized=True
        )
    low, high = np.quantile(features, [0.005, 0.995], axis=0)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])


def _boundary(axes: Axes, model: Any, colour: str, label: str, *, width: float, alpha: float) -> None:
    """Draw the line where the score is 0: w_1 x_1 + w_2 x_2 + b = 0."""
    (first, second), intercept = model.coef_[0], model.intercept_[0]
    normal = np.array([first, second])
    point = -intercept * normal / (normal @ normal)
    axes.axline(point, (point[0] + second, point[1] - first), color=colour, linewidth=width, alpha=alpha, label=label)


# --- what all share ------------------------------------------------------------------------------------------


def _dress(axes: Axes, title: str, x_label: str) -> None:
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    axes.set_xlabel(x_label, color=INK)
    axes.grid(color=LINE, linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=9)


def _save(figure: Figure, file: Path) -> None:
    with mpl.rc_context({"svg.hashsalt": "blindfit"}):
        figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
