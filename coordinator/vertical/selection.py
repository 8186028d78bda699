"""The report of a job with a grid: the table of grid points, the chosen point with the reason, and a chart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.vertical.selection import Selection, SelectionFigure, is_loss
from blindfit.coordinator.report.kind import Report
from blindfit.coordinator.report.plots import INK, LINE, MUTED, NEGATIVE, POSITIVE, Plot, figure_of, svg_of
from blindfit.coordinator.report.reading import fullest, read
from blindfit.coordinator.terminal.wording import figure, quantity
from blindfit.coordinator.vertical.roles import Roles
from blindfit.parties.job.select import SelectingParameters
from blindfit.parties.vertical.report import SelectionFigures

NAMES = {"log_loss": "log loss", "accuracy": "accuracy", "auc": "AUC", "mse": "mean squared error"}
MOST_DRAWN = 30  # grid points that the chart draws


def name_the_grid(advice: str, job: SelectingParameters, system: str) -> str:
    """Return advice about the system's options with the grid's lists in place of the options that the grid varies."""
    varied = [] if job.select is None else list(job.select.grid.combine()[0])
    for option in varied:
        advice = re.sub(rf"\b{system}\.{option}\b", f"select.grid.{option}", advice)
    return advice


@dataclass(frozen=True)
class GridPoint:
    """One line of the table; `figure` and `error` are None if only the active party knows them."""

    options: str
    figure: float | None
    error: float | None
    is_chosen: bool


@dataclass(frozen=True)
class Selected:
    """The grid of a job, and its outcome.

    Attributes:
        by: name of the figure that decided, as in the job.
        chosen: index of the chosen point, from 0.
    """

    folds: int
    by: SelectionFigure
    points: tuple[GridPoint, ...]
    chosen: int

    @property
    def figure_name(self) -> str:
        return NAMES[self.by]

    @property
    def knows_figures(self) -> bool:
        return self.points[self.chosen].figure is not None

    @property
    def best(self) -> GridPoint:
        return self.points[self.chosen]

    @property
    def why(self) -> str:
        """Return the reason why the point was chosen."""
        which = "lowest" if is_loss(self.by) else "highest"
        ties = sum(point.figure == self.best.figure for point in self.points)
        first = ", the first of several equal points" if self.knows_figures and ties > 1 else ""
        return f"{self.best.options} has the {which} {self.figure_name}{first}"

    @property
    def in_short(self) -> str:
        best = self.best
        worth = "" if best.figure is None or best.error is None else f" {figure(best.figure)} ± {figure(best.error)}"
        return (
            f"{best.options}, by {self.figure_name}{worth} in {self.folds} folds; "
            f"{quantity(len(self.points), 'grid point')}"
        )

    @property
    def plot(self) -> Plot | None:
        """Draw each point's figure with its standard error; None if figures are not known, or points are too many."""
        if not self.knows_figures or len(self.points) > MOST_DRAWN:
            return None
        drawn, axes = figure_of(height_inches=0.9 + 0.25 * len(self.points))
        for place, point in enumerate(self.points):
            colour = POSITIVE if point.is_chosen else NEGATIVE
            value, error = point.figure or 0.0, point.error or 0.0
            axes.hlines(place, value - error, value + error, color=colour, linewidth=1.6)
            axes.plot([value], [place], color=colour, marker="o", markersize=5)
        axes.set_yticks(range(len(self.points)), [point.options for point in self.points], parse_math=False)
        axes.invert_yaxis()
        axes.grid(axis="x", color=LINE, linewidth=0.7)
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.set_xlabel(self.figure_name, color=MUTED)
        note = (
            f"The {self.figure_name} of each grid point over {self.folds} folds. A line reaches one standard error to "
            "each side."
        )
        return Plot("Grid points", note, svg_of(drawn))


def find_selection(report: Report, roles: Roles, job: SelectingParameters) -> Selected | None:
    """Return the outcome of a job's grid, as the active party reports it, or another party without the figures.

    Raises:
        DataError: names the party and the figure that is missing or wrong.
    """
    if job.selection is None:
        return None
    for party in roles.chain:
        if summary := fullest(report, party):
            return _check(read(SelectionFigures, summary, party, "selection"), job.selection, party)
    return None


def _check(told: SelectionFigures, asked: Selection, party: str) -> Selected:
    """Raise DataError: the table does not have the job's grid points."""
    n = len(asked.points)
    lengths = {len(numbers) for numbers in (told.figures, told.errors) if numbers is not None}
    if told.chosen >= n or lengths - {n}:
        raise DataError(f"the report of {party}: selection does not have the {n} grid points of the job")
    figures, errors = told.figures or (None,) * n, told.errors or (None,) * n
    points = tuple(
        GridPoint(point.describe(), figures[place], errors[place], place == told.chosen)
        for place, point in enumerate(asked.points)
    )
    return Selected(asked.folds, asked.by, points, told.chosen)


def lines(selected: Selected | None) -> Iterator[tuple[str, str]]:
    """Yield the terminal's line about the chosen point."""
    if selected is not None:
        yield "chosen", selected.in_short


def describe_opening(selected: Selected | None, active: str) -> Iterator[str]:
    """Yield what folds and grid opened, for the privacy statement."""
    if selected is None:
        return
    yield (
        f"{active} learnt, and no other party: the {selected.figure_name} of each of "
        f"{quantity(len(selected.points), 'grid point')} over {selected.folds} folds, rounded to a quarter of its "
        f"standard error or less. {active} named the best point to all parties, and this report has the figures."
    )
