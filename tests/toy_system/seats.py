"""Two parties and a key node in a job of the toy system: a product of two columns in secret shares."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from blindfit.algorithms.randomness import system_uniform
from blindfit.parties.files.written import encode_json
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
    """Number of rows that are multiplied."""


class ToyJob(JobParameters):
    protocol: Literal["toy"] = "toy"
    """System that computes the job."""
    toy: ToySettings = ToySettings()


# --- roles -------------------------------------------------------------------------------------------


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
        self._party.write(session.id, "report.json", encode_json(content))
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
