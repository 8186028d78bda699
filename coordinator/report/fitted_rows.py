"""The part of a report about the rows of one party that a model was fitted to, and about their columns."""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.coordinator.report.page import Card
from blindfit.coordinator.terminal.wording import count
from blindfit.parties.training.report import FittedRows


def cards(rows: FittedRows) -> Iterator[Card]:
    yield Card("Rows trained on", rows.about + count(rows.trained), f"{rows.about}{count(rows.held_out)} held out")
    yield Card("Features", count(rows.features), _constant(rows))


def summary(rows: FittedRows) -> tuple[str, str]:
    """Return the terminal's line about rows."""
    return "rows", f"{rows.about}{count(rows.trained)} trained on, {count(rows.held_out)} held out"


def _constant(rows: FittedRows) -> str:
    if rows.dropped_columns is None:
        return "the party's own report lists them"
    return f"{count(len(rows.dropped_columns))} constant dropped" if rows.dropped_columns else "none dropped"


def list_dropped(rows: FittedRows, columns: str = "constant columns") -> list[tuple[str, str]]:
    """Return a line of the page's table if columns were dropped."""
    return [(f"{columns}, dropped", ", ".join(rows.dropped_columns))] if rows.dropped_columns else []
