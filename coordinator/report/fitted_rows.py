"""What a report says of the rows of one party that a model was fitted to, and of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blindfit.coordinator.report.page import Card
from blindfit.coordinator.report.wording import count


@dataclass(frozen=True, kw_only=True)
class FittedRows:
    trained: int
    held_out: int
    features: int
    dropped_columns: tuple[str, ...] = ()


def cards(rows: FittedRows) -> Iterator[Card]:
    yield Card("Rows trained on", count(rows.trained), f"{count(rows.held_out)} held out")
    dropped = len(rows.dropped_columns)
    yield Card("Features", count(rows.features), f"{count(dropped)} constant dropped" if dropped else "none dropped")


def summary(rows: FittedRows) -> tuple[str, str]:
    """A line of the terminal."""
    return "rows", f"{count(rows.trained)} trained on, {count(rows.held_out)} held out"


def dropped(rows: FittedRows, columns: str = "constant columns") -> list[tuple[str, str]]:
    """A line of the page's table, where there are any."""
    return [(f"{columns}, dropped", ", ".join(rows.dropped_columns))] if rows.dropped_columns else []
