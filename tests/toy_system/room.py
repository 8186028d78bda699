"""A system that is in no release: a product of two columns, secret-shared, between three processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from blindfit.algorithms.randomness import system_uniform
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.files.written import encoded_json, write_json
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.system import Summary
from blindfit.parties.tables import Settings
from blindfit.parties.training.rows import check_features, read_rows
from tests import toy


class ToySettings(Settings):
    rows: int = Field(4, ge=1, le=64)


class ToyJob(JobParameters):
    protocol: Literal["toy"] = "toy"
    toy: ToySettings = ToySettings()


# --- seats -------------------------------------------------------------------------------------------


class Holder:
    def __init__(self, party: Party) -> None:
        self._party = party

    def check(self, job: ToyJob, me: Member) -> None:
        check_features(self._party.snapshots.source(me.dataset), "a holder")

    async def run(self, session: Session[ToyJob]) -> Summary:
        source = session.published.source()
        rows = read_rows(source, labels=False, report=session.report)
        own = toy.vector(rows.features[: session.job.toy.rows, 0].astype(int).tolist())
        nothing = np.zeros_like(own)
        is_active = session.me.role == "active"
        peer = session.with_role("passive" if is_active else "active").name
        x, y = (own, nothing) if is_active else (nothing, own)
        share = await toy.run_party(int(not is_active), peer, x, y, session.channel)
        content = {"session": session.id, "share": [str(value) for value in share.tolist()]}
        self._party.write(session.id, "report.json", encoded_json(content))
        return {"rows": len(share)}


class Dealer:
    def __init__(self, party: Party) -> None:
        pass

    def check(self, job: ToyJob, me: Member) -> None:
        pass

    async def run(self, session: Session[ToyJob]) -> Summary:
        holders = session.with_role("active").name, session.with_role("passive").name
        await toy.run_dealer(session.job.toy.rows, holders, system_uniform, session.channel)
        return {}


# --- what a coordinator shows ------------------------------------------------------------------------


def leaks(job: Job[ToyJob]) -> Iterable[Finding]:
    yield Finding("note", "who learns what", f"nobody learns any of the {job.parameters.toy.rows} products")


def check_rows(job: Job[ToyJob], here: Sequence[PartyHere]) -> Iterable[Finding]:
    yield Finding("ok", "rows", f"{len([party for party in here if party.dataset_name])} holders are here")


@dataclass(frozen=True)
class Written:
    json_path: Path
    content: Mapping[str, Any]

    def shown(self) -> Iterator[str]:
        yield f"{self.content['rows']} products, each in two shares"


def write(session: JobSession, out: Path, parties_here: list[str]) -> Written:
    (active,) = session.job.with_role("active")
    rows = int(str(session.summaries[active]["rows"]))
    written = Written(out / "report.json", {"session": session.id, "rows": rows, "parties_here": parties_here})
    write_json(written.json_path, dict(written.content))
    return written
