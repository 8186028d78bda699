"""Tables that are never cut: an id without its end, or a date without its day, misleads anyone who copies it."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table

WIDEST = 10_000  # characters; our tables are narrower
DATE = "(UTC)"  # heading of a column of dates; dates break last


class WholeTable(Table):
    """A table whose cells break in a terminal, between words if possible; elsewhere it is as wide as it needs to be.

    Print it with crop=False.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = Measurement.get(console, options.update(width=WIDEST), self).maximum
        if width > options.max_width and console.is_terminal:
            _fit(console, self, width - options.max_width)
            width = options.max_width
        yield from super().__rich_console__(console, options.update(width=max(width, options.max_width)))


def _fit(console: Console, table: Table, too_much: int) -> None:
    """Take the width from columns that can break between words; if no column can, from the widest."""
    options = console.options.update(width=WIDEST)
    words, widths = [], []
    for column in table.columns:
        cells = [Measurement.get(console, options, cell) for cell in (column.header, *column.cells)]
        words.append(max(cell.minimum for cell in cells))
        widths.append(max(cell.maximum for cell in cells))
    dates = [DATE in str(column.header) for column in table.columns]
    for _ in range(too_much):
        ranked = [
            (width > word, not date and width > 3, width - word if width > word else width)
            for width, word, date in zip(widths, words, dates, strict=True)
        ]
        widths[ranked.index(max(ranked))] -= 1
    for column, width in zip(table.columns, widths, strict=True):
        column.width, column.overflow = max(width, 1), "fold"
