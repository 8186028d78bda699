"""The coordinator's checks and display of a job of the toy system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.view import View
from blindfit.parties.files.written import write_json
from tests.toy_system.seats import ToyJob


def leaks(job: Job[ToyJob]) -> Iterable[Finding]:
    yield Finding("note", "who learns what", f"nobody learns any of the {job.parameters.toy.rows} products")


def check_rows(job: Job[ToyJob], here: Sequence[PartyHere]) -> Iterable[Finding]:
    yield Finding("ok", "rows", f"{len([party for party in here if party.dataset_name])} holders are here")


@dataclass(frozen=True)
class Written:
    json_path: Path
    content: Mapping[str, Any]

    def summarise(self) -> Iterator[str]:
        yield f"{self.content['rows']} products, each in two shares"


def write(session: JobSession, out: Path, parties_here: list[str]) -> Written:
    (active,) = session.job.with_role("active")
    rows = int(str(session.summaries[active]["rows"]))
    written = Written(out / "report.json", {"session": session.id, "rows": rows, "parties_here": parties_here})
    write_json(written.json_path, dict(written.content))
    return written


def figures_of(content: Mapping[str, Any]) -> int:
    """Return the number of products."""
    return int(content["rows"])


VIEW = View(leaks=leaks, check_rows=check_rows, write=write, figures_of=figures_of)
