"""The key node's part of a joint prediction: it compares blinded ids."""

from __future__ import annotations

from blindfit.parties.predict.settings import PredictJob
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.sessions import Member, Session
from blindfit.parties.sessions.system import Summary
from blindfit.parties.vertical.alignment import match_ids
from blindfit.parties.vertical.seats import Seats, refuse_dataset


class KeyNode:
    def __init__(self, party: Party) -> None:
        del party  # it needs nothing of it

    def check(self, job: PredictJob, me: Member) -> None:  # noqa: ARG002 - as every seat
        refuse_dataset(me)

    async def run(self, session: Session[PredictJob]) -> Summary:
        return {"rows.common": await match_ids(session, Seats.of(session))}
