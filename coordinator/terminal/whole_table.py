"""Tables of which nothing is cut: an id without its end, or a date without its day, misleads whoever copies it."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

WIDEST = 10_000  # characters; more than any of our tables has
DATE = "(UTC)"  # in the heading of a column of dates, which break last


def print_whole(console: Console, table: Table) -> None:
    """As wide as the table is where nobody looks at a terminal; there, cells are broken, between words if they can."""
    width = Measurement.get(console, console.options.update(width=WIDEST), table).maximum
    own = console.width
    if width > own and console.is_terminal:
        _fit(console, table, width - own)
        width = own
    console.width = max(width, own)
    console.print(table)
    console.width = own


def _fit(console: Console, table: Table, too_much: int) -> None:
    """Takes the width from the columns that can give it between words; when none can, from the widest."""
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
