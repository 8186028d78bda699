"""A job's report in its folder, and in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from blindfit.coordinator.report.content import content_of
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.report.network import network_lines
from blindfit.coordinator.report.rehearsed import rehearsal_lines
from blindfit.coordinator.report.timeline import show_faults
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.terminal.summary_table import places, summary_table
from blindfit.parties.files.written import write_file, write_json


@dataclass(frozen=True)
class Written:
    """A report in its folder."""

    kind: Kind[Any] = field(repr=False)
    json_path: Path
    html_path: Path
    content: Mapping[str, Any] = field(repr=False)

    def summarise(self) -> Iterator[RenderableType]:
        """Yield the report in short."""
        kind = self.kind
        yield from show_faults(self.content)
        yield summary_table([*kind.summary(self.content), *network_lines(self.content)])
        yield from (Text.assemble(("! ", "bold yellow"), caution) for caution in kind.cautions(self.content))
        yield Text(kind.in_short(self.content), style="dim")
        yield from rehearsal_lines(self.content)
        yield from places(self._paths())

    def _paths(self) -> Iterator[tuple[str, object]]:
        yield "report", self.html_path
        yield "", self.json_path
        yield from self.kind.places(self.content)
        for place, owner in enumerate(self.kind.owners(self.content)):
            label = "" if place else "model"
            if owner in self.content["models"]:
                yield label, self.json_path.parent / owner / "model.json"
            else:
                yield label, f"kept by {owner}, with its own report"


def write(kind: Kind[Any], session: JobSession, out: Path, parties_here: list[str]) -> Written:
    """Write `out/report.json` and `out/report.html`.

    Args:
        parties_here: parties whose own directories are `out/<name>/`; without them the report has only facts that a
            coordinator may know.

    Raises:
        MalformedMessage, DataError: a party's summary or file cannot make a report; nothing is written.
    """
    content = content_of(kind, session, out, parties_here)
    page = kind.render(content)
    written = Written(kind, out / "report.json", out / "report.html", content)
    write_json(written.json_path, content)
    write_file(written.html_path, page.encode())
    return written
