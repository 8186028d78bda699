"""The tables of benchmarks.walr.utility, for a terminal and for a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.kit.pages import put_between

Figures = Mapping[str, Any]
BEGIN, END = "<!-- figures of benchmarks.walr.utility -->", "<!-- end of the figures -->"


def show(name: str, figures: Figures, console: Console) -> None:
    title = f"{described(name, figures)}; medians of {figures['seeds']} draws"
    table = Table("", *heads(figures), title=title)
    for arm, rows in figures["arms"].items():
        table.add_row(arm, *(number(row["median"]) for row in rows))
        table.add_row("  5% to 95%", *(f"{number(row['low'])}\n{number(row['high'])}" for row in rows))
    console.print(table)


def heads(figures: Figures) -> list[str]:
    rows = next(iter(figures["arms"].values()))
    return [f"{row['epsilon']:g}" for row in rows]


def described(name: str, figures: Figures) -> str:
    return (
        f"{name}: {figures['rows']['train']:,} training rows, {figures['columns']} columns, base rate "
        f"{figures['base_rate']:.1%}; without privacy {figures['without_privacy']:.4f}"
    )


def number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}" if value < 2 else f"{value:.3g}"


def put_into(page: str, data: Mapping[str, Figures]) -> str:
    """Return the page with the tables between its two marks."""
    lines = [line for name, figures in data.items() for line in markdown(name, figures)]
    return put_between(page, BEGIN, END, "\n".join(lines) + "\n")


def markdown(name: str, figures: Figures) -> Iterator[str]:
    """Yield a table of medians; bold are the best of each epsilon, and all within its 5% to 95% range."""
    yield f"\n**{described(name, figures)}**; {figures['seeds']} draws:\n"
    yield f"| epsilon | {' | '.join(heads(figures))} |"
    yield "|---" * (len(heads(figures)) + 1) + "|"
    best = [
        min(rows, key=lambda row: row["median"] or float("inf")) for rows in zip(*figures["arms"].values(), strict=True)
    ]
    for arm, rows in figures["arms"].items():
        cells = [shown(row, least) for row, least in zip(rows, best, strict=True)]
        yield f"| {arm} | {' | '.join(cells)} |"


def shown(row: Figures, best: Figures) -> str:
    median = row["median"]
    good = median is not None and median <= best["high"]
    return f"**{number(median)}**" if good else number(median)
