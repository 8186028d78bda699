"""The page of an active party, for its own operator: after `blindfit submit` nobody else has its model."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from coordinator.report import html
from coordinator.report.content import content_of_party
from parties.models import write_file


def render_party(directory: Path, console: Console) -> None:
    """Makes report.html from the report.json and the model.json that an active party wrote into its directory.

    Raises:
        DataError: names the file and what is wrong with it.
    """
    path = directory / "report.html"
    write_file(path, html.render(content_of_party(directory)).encode())
    console.print(Text.assemble(("report  ", "bold"), str(path)), soft_wrap=True)
