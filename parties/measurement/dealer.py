"""The key node of a job whose rows are hidden in shares: it deals masks, and sees nothing that they hide."""

from __future__ import annotations

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.walr import shared_rows
from blindfit.algorithms.protocols.walr.messages import MasksUsed
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.measurement.patience import patient
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.sessions import Member, Session
from blindfit.parties.sessions.system import Summary
from blindfit.parties.work.own_thread import in_own_thread


class MaskDealer:
    def __init__(self, party: Party) -> None:
        self._party = party

    def check(self, job: JobParameters, me: Member) -> None:  # noqa: ARG002 - whatever the job
        """A key node holds no rows."""
        if me.dataset:
            raise PolicyRefused(party=me.name, field="dataset", reason="a key node has none")

    async def run(self, session: Session[JobParameters]) -> Summary:
        active = session.with_role("active").name
        servers = sorted(member.name for member in session.members.values() if member.role == "measurement")
        session.report("deal masks", waiting_for=active)
        channel = session.channel
        plan = await patient(lambda: shared_rows.receive_plan(active, channel), session.job.timeouts.session_s)

        async def dealt(channel: Channel) -> None:
            await shared_rows.run_key_node(plan, active, servers, channel)

        await in_own_thread(channel, dealt)
        await patient(lambda: channel.receive(active, MasksUsed), session.job.timeouts.session_s)
        return {"rows.masked": plan.n_rows}
