"""The timeline of a study of faults, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from blindfit.coordinator.terminal.whole_table import WholeTable

STYLES = {"fault": "bold yellow", "job": "bold", "step": "dim", "said": ""}


def show_faults(report: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield the timeline of a report, if its job had faults."""
    if "faults" in report:
        yield from show_study(report["faults"])


def show_study(study: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield the timeline as a table, and a line for each fault that never happened.

    Args:
        study: document of a study.
    """
    table = WholeTable("Time", "Party", "Event", box=None, pad_edge=False, header_style="bold")
    table.columns[0].justify = "right"
    for entry in study["timeline"]:
        style = STYLES.get(entry["kind"], "")
        party = Text(entry["party"] or "job", style=style)
        table.add_row(f"{entry['at_s']:.2f} s", party, Text(entry["text"], style=style))
    yield table
    yield from (Text.assemble(("! ", "bold yellow"), line) for line in study["never"])
