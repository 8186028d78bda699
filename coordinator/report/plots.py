"""Plots as inline SVG: no script, no font file, colours from the page's own scheme."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from rich.cells import cell_len, set_cell_size

from blindfit.coordinator.terminal.wording import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 30
MOST_LABEL_CHARS = 28
MOST_MARKED_POINTS = 30
NARROW = 100.0  # ratio of an axis that would have too few powers of ten as ticks
WIDTH_INCHES = 5.2
FONT_SIZE = 9
LOG_ODDS = "the log-odds by this much"

# matplotlib needs colours, but the page has variables: each colour stands for a variable, and the SVG gets that.
INK, MUTED, LINE, POSITIVE, NEGATIVE = "#010101", "#020202", "#030303", "#040404", "#050505"
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    LINE: "var(--line)",
    POSITIVE: "var(--accent)",
    NEGATIVE: "var(--accent-2)",
}


@dataclass(frozen=True)
class Plot:
    title: str
    note: str
    svg: Markup


def weights_plot(
    weights: Mapping[str, float],
    intercept: float | None,
    title: str = "Weights",
    changes: str = LOG_ODDS,
    reach: float | None = None,
) -> Plot:
    """Return the largest weights as bars, the largest on top.

    Args:
        changes: effect of a step in a feature. reach: end of the axis, for plots that are compared.
    """
    largest = sorted(weights, key=lambda name: abs(weights[name]), reverse=True)[:MOST_BARS]
    figure, axes = figure_of(height_inches=0.7 + 0.23 * len(largest))
    values = [weights[name] for name in largest]
    axes.barh(range(len(values)), values, color=[POSITIVE if v >= 0 else NEGATIVE for v in values], height=0.66)
    # A feature's name may hold $, which does not start a formula.
    axes.set_yticks(range(len(values)), [_label(name) for name in largest], parse_math=False)
    axes.invert_yaxis()
    if reach is not None:
        axes.set_xlim(-1.05 * reach, 1.05 * reach)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    axes.grid(axis="x", color=LINE, linewidth=0.7)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    note = f"For standardised features: a step of one standard deviation changes {changes}."
    if len(largest) < len(weights):
        note += f" The {len(largest)} largest of {len(weights)}."
    if intercept is not None:
        note += f" Intercept {intercept:.4g}."
    return Plot(title, note, svg_of(figure))


def weight_plots(models: Mapping[str, Mapping[str, Any]]) -> list[Plot]:
    """Return one plot for each party's own columns, on one scale."""
    reach = max((abs(weight) for model in models.values() for weight in model["weights"].values()), default=0.0) or 1.0
    return [
        weights_plot(model["weights"], model.get("intercept"), f"Weights of {party}", _changes(model["model"]), reach)
        for party, model in models.items()
        if model["weights"]
    ]


def _changes(model: str) -> str:
    return LOG_ODDS if model == "logistic" else "the value by so many of its standard deviations"


def objective_plot(history: Sequence[float]) -> Plot | None:
    """Return a plot of the objective above its least value; None if there is too little to draw."""
    least = min(history, default=0.0)
    points = [(i, value - least) for i, value in enumerate(history) if value > least]
    if len(history) <= 2 or len(points) < 2:
        return None
    from matplotlib.ticker import MaxNLocator

    figure, axes = figure_of(height_inches=2.7)
    marker = "o" if len(points) <= MOST_MARKED_POINTS else None
    axes.plot(*zip(*points, strict=True), color=POSITIVE, linewidth=1.6, marker=marker, markersize=4)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    set_log_scale(axes, lambda value: f"{value:g}")
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel("iteration", color=MUTED)
    return Plot("Convergence", f"The objective above its least value, {least:.6g}.", svg_of(figure))


def set_log_scale(axes: Axes, to_text: Callable[[float], str]) -> None:
    """Make the y axis logarithmic. A narrow axis, which may have no power of ten, gets evenly spaced ticks."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    is_narrow = high < NARROW * low
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5) if is_narrow else LogLocator(numticks=8))
    axes.yaxis.set_major_formatter(lambda value, _position: to_text(value))
    axes.minorticks_off()


def _label(name: str) -> str:
    """Return the name, or its beginning; characters of East Asian scripts take twice the width."""
    shown = plain(name)
    return shown if cell_len(shown) <= MOST_LABEL_CHARS else f"{set_cell_size(shown, MOST_LABEL_CHARS - 1).rstrip()}…"


def figure_of(height_inches: float) -> tuple[Figure, Axes]:
    # Imported here: every command and party process imports this package, few draw. No pyplot: it keeps global state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_INCHES, height_inches), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[:].set_visible(False)
    axes.set_axisbelow(True)
    axes.tick_params(colors=MUTED, labelsize=FONT_SIZE, length=0)
    return figure, axes


def svg_of(figure: Figure) -> Markup:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    drawn = io.StringIO()
    for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
        patch.set(facecolor="none", edgecolor="none")
    # Text stays text: it is searchable, takes the page's font and shows names in any script.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "blindfit"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has the fonts, not matplotlib
        # `savefig` would draw twice.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(drawn, metadata={"Date": None, "Creator": None})
    svg = drawn.getvalue()
    svg = svg[svg.index("<svg") :]  # HTML allows no XML prologue
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="\w*">', "<g>", svg)  # a second plot would repeat the ids
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, variable)
    # matplotlib has escaped every name.
    return Markup(svg.replace("<svg", '<svg role="img"', 1))  # noqa: S704
