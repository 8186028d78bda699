"""The key node's part of a joint prediction: it compares blinded ids, and deals values if the model is in shares.

It keeps nothing: a prediction has seeds and a MAC key of its own, and they end with it.
"""

from __future__ import annotations

from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols import shared_scores
from blindfit.parties.predict.in_shares import parameters_of
from blindfit.parties.predict.settings import PredictJob
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.system import Summary
from blindfit.parties.vertical.alignment import match_ids
from blindfit.parties.vertical.seats import Seats, refuse_dataset
from blindfit.parties.work.own_thread import in_own_thread


class KeyNode:
    def __init__(self, party: Party) -> None:
        del party  # nothing of it is needed

    def check(self, job: PredictJob, me: Member) -> None:  # noqa: ARG002 - the interface of every role
        refuse_dataset(me)

    async def run(self, session: Session[PredictJob]) -> Summary:
        seats = Seats.of(session)
        rows = await match_ids(session, seats)
        told = await shared_scores.hear_at_key_node(seats.chain, session.channel)
        if told[seats.chain[0]].is_shared:
            parameters = parameters_of(told, seats, rows)

            async def dealt(channel: Channel) -> None:
                await shared_scores.run_key_node(
                    parameters, session.id, channel, report=lambda done: session.report("deal", done, rows, "rows")
                )

            await in_own_thread(session.channel, dealt)
        return {"rows.common": rows}
