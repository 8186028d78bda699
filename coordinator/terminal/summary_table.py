"""Labels with their texts, in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table
from rich.text import Text


def summary_table(lines: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    for label, value in lines:
        table.add_row(label, Text(value))
    return table


def places(found: Iterable[tuple[str, object]]) -> Iterator[Text]:
    """Yield a line for each path: a path is for copying, so it is neither wrapped nor read as markup."""
    for label, path in found:
        yield Text.assemble((f"{label:<8}", "bold"), str(path), no_wrap=True, overflow="ignore")
