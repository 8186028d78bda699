"""Labels with their texts, in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table
from rich.text import Text

WIDTH = 8  # of labels of paths, so that all reports look alike


def summary_table(lines: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    for label, value in lines:
        table.add_row(label, Text(value))
    return table


def places(found: Iterable[tuple[str, object]]) -> Iterator[Text]:
    """Yield a line for each path. A path is for copying: it is neither wrapped nor read as markup."""
    yield from lines_with_labels(found, WIDTH)


def lines_with_labels(lines: Iterable[tuple[str, object]], least: int = 0) -> Iterator[Text]:
    """Yield lines of a label and a text, which begins two spaces after the longest label; no line is wrapped.

    Args:
        least: smallest width of the labels.
    """
    said = list(lines)
    width = max([least, *(len(label) + 2 for label, _ in said)])
    for label, text in said:
        yield Text.assemble((label.ljust(width), "bold"), str(text), no_wrap=True, overflow="ignore")
