"""Draw a simulation: quality against epsilon, against time, and against bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from blindfit.coordinator.plan.pictures import figure_by_epsilon
from blindfit.coordinator.report.plots import (
    FONT_SIZE,
    INK,
    LINE,
    MUTED,
    NEGATIVE,
    POSITIVE,
    Plot,
    figure_of,
    svg_of,
)
from blindfit.coordinator.simulate.recommendation import NAMES
from blindfit.coordinator.simulate.results import ACTIVE_ONLY, CONSTANT, JOINED, Results, Row
from blindfit.coordinator.terminal.wording import duration, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT_INCHES = 3.6
MARKS = {  # a system looks the same in every picture: colour and marker
    "taylor": (POSITIVE, "o"),
    "falcon": (NEGATIVE, "s"),
    "walr": (POSITIVE, "^"),
    "label-dp": (NEGATIVE, "D"),
    "dp-lr": (INK, "v"),
}
LINES = {JOINED: (INK, "--"), ACTIVE_ONLY: (MUTED, "-."), CONSTANT: (MUTED, ":")}
ASIDE = 1.04  # distance of two systems at one epsilon, as a factor
ROOM = 1.6  # beyond the outer points of a logarithmic axis, as a factor
MOST_TICKS = 5
LEAST_HEIGHT = 0.02  # smallest height of the quality's axis: all points may lie on one line
SECONDS = tuple(
    [n * 10.0**power for power in range(-3, 1) for n in (1, 2, 5)]
    + [10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0]
    + [3600.0 * n * 10.0**power for power in range(4) for n in (1, 2, 5)]
)
BYTES = tuple(float(4**power) for power in range(25))


def draw(results: Results) -> Iterator[Plot]:
    """Yield the pictures that have results."""
    name = NAMES[results.main]
    rows = [row for row in results.done if row.system in MARKS]
    if any(row.epsilon is not None for row in rows):
        yield _by_epsilon(results, rows, name)
    timed = [(row, row.seconds.mean) for row in rows if row.seconds]
    if timed:
        note = "Seconds of one run, from the start of its processes to its report."
        yield _by_cost(results, timed, name, "Quality and time", "time of a run", note, SECONDS, duration)
    sent = [(row, float(row.bytes_sent)) for row in rows if row.bytes_sent]
    if sent:
        note = "Bytes that all parties of a run have sent. A run that sends none has no point here."
        yield _by_cost(
            results, sent, name, "Quality and bytes", "bytes sent in a run", note, BYTES, lambda n: size(round(n))
        )


def _by_epsilon(results: Results, rows: Sequence[Row], name: str) -> Plot:
    private = [row for row in rows if row.epsilon is not None]
    epsilons = sorted({row.epsilon for row in private if row.epsilon is not None})
    figure, axes = figure_by_epsilon(epsilons, name)
    figure.set_figheight(HEIGHT_INCHES)
    axes.set_xlim(epsilons[0] / ROOM, epsilons[-1] * ROOM)
    systems = list(dict.fromkeys(row.system for row in private))
    for number, system in enumerate(systems):
        own = sorted((row for row in private if row.system == system), key=lambda row: row.epsilon or 0.0)
        aside = ASIDE ** (number - (len(systems) - 1) / 2)  # so that no point hides another one
        _errors(axes, system, own, [aside * (row.epsilon or 0.0) for row in own])
    for row in rows:
        if row.epsilon is None and row.figure:
            colour, _ = MARKS[row.system]
            axes.axhline(row.figure.mean, color=colour, linewidth=1.2, alpha=0.7, label=f"{row.system}, no epsilon")
    outside = _baselines(axes, results)
    _legend(figure)
    return Plot("Quality and epsilon", _note(results, f"{name} of the held-out rows.{outside}"), svg_of(figure))


def _by_cost(
    results: Results,
    points: Sequence[tuple[Row, float]],
    name: str,
    title: str,
    axis: str,
    note: str,
    round_numbers: Sequence[float],
    to_text: Callable[[float], str],
) -> Plot:
    figure, axes = figure_of(HEIGHT_INCHES)
    axes.grid(color=LINE, linewidth=0.7)
    axes.set_xlabel(axis, color=MUTED)
    axes.set_ylabel(name, color=MUTED)
    axes.set_xscale("log")
    costs = [cost for _, cost in points]
    axes.set_xlim(min(costs) / ROOM, max(costs) * ROOM)
    _set_ticks(axes, round_numbers, to_text)
    for system in dict.fromkeys(row.system for row, _ in points):
        own = [(row, cost) for row, cost in points if row.system == system]
        _errors(axes, system, [row for row, _ in own], [cost for _, cost in own], joins=False)
    outside = _baselines(axes, results)
    _legend(figure)
    more = " A system has a point for each epsilon." if any(row.epsilon is not None for row, _ in points) else ""
    return Plot(title, _note(results, f"{note}{more}{outside}"), svg_of(figure))


def _errors(axes: Axes, system: str, rows: Sequence[Row], at: Sequence[float], *, joins: bool = True) -> None:
    colour, marker = MARKS[system]
    figures = [row.figure for row in rows if row.figure]
    axes.errorbar(
        at,
        [figure.mean for figure in figures],
        yerr=[figure.std or 0.0 for figure in figures],
        color=colour,
        marker=marker,
        markersize=5.5,
        linewidth=1.2 if joins else 0.0,
        elinewidth=1.0,
        capsize=2.5,
        label=system,
    )


def _baselines(axes: Axes, results: Results) -> str:
    """Draw the fits to which systems are compared.

    Returns:
        Sentence about a constant outside the picture, which shows how systems differ from each other.
    """
    figures = {fit: found[results.main] for fit, found in results.baselines.items() if results.main in found}
    for fit, figure in figures.items():
        if fit != CONSTANT:
            _draw_line(axes, fit, figure.mean)
    low, high = axes.get_ylim()
    if high - low < LEAST_HEIGHT:
        low, high = (low + high - LEAST_HEIGHT) / 2, (low + high + LEAST_HEIGHT) / 2
    outside = ""
    if (constant := figures.get(CONSTANT)) is not None:
        if low - (high - low) / 2 <= constant.mean <= high + (high - low) / 2:
            _draw_line(axes, CONSTANT, constant.mean)
            room = (high - low) / 20
            low, high = min(low, constant.mean - room), max(high, constant.mean + room)
        else:
            where = "below" if constant.mean < low else "above"
            outside = f" The constant lies {where} the picture, at {constant.mean:.3g}."
    axes.set_ylim(low, high)
    return outside


def _draw_line(axes: Axes, fit: str, height: float) -> None:
    colour, style = LINES[fit]
    axes.axhline(height, color=colour, linestyle=style, linewidth=1.0, label=fit)


def _set_ticks(axes: Axes, round_numbers: Sequence[float], to_text: Callable[[float], str]) -> None:
    """Set few ticks at round numbers; at equal distances if the axis is too narrow for two of them."""
    low, high = axes.get_xlim()
    ticks = [number for number in round_numbers if low < number < high]
    ticks = ticks[:: -(-len(ticks) // MOST_TICKS) or 1]
    if len(ticks) < 2:
        ticks = [low * (high / low) ** share for share in (0.2, 0.5, 0.8)]
    axes.set_xticks(ticks, [to_text(tick) for tick in ticks])
    axes.minorticks_off()


def _legend(figure: Figure) -> None:
    """Put the names below the plot, where they cover no point."""
    drawn = figure.axes[0]
    handles, labels = drawn.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, fontsize=FONT_SIZE - 1, frameon=False, labelcolor=INK
    )


def _note(results: Results, text: str) -> str:
    bars = " Bars are one standard deviation over repeats." if results.repeats > 1 else ""
    return f"{text}{bars}"
