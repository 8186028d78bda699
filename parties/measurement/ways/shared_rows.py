"""Two measurement servers hold shares of the labels and get shares of the rows; a key node deals the masks.

The masks of a session serve one proof that rows are short, and one sum.
"""

from __future__ import annotations

import asyncio
from typing import Any

from blindfit.algorithms.errors import LocalProtocolError, PolicyRefused
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, Tally, dealt_masks, shared_rows
from blindfit.algorithms.protocols.walr.dealt_masks import Dealt
from blindfit.algorithms.protocols.walr.messages import MasksUsed
from blindfit.algorithms.protocols.walr.shared_rows import SharedRows, SharedRowsTally
from blindfit.algorithms.protocols.walr.two_servers import Agreement
from blindfit.algorithms.sharing.field import Elements
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.measurement.patience import begin_quietly, patient
from blindfit.parties.measurement.ways import two_servers
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.system import Summary
from blindfit.parties.work.own_thread import in_own_thread

# --- a measurement server --------------------------------------------------------------------------------


class Meeting(two_servers.Meeting):
    """The meeting of two servers; it holds the masks that were dealt to this server for the session."""

    def __init__(self, session: Session[Any], peer: str) -> None:
        super().__init__(session, peer)
        self._place = sorted((session.me.name, peer)).index(session.me.name)
        self._active, self._key_node = (session.with_role(role).name for role in ("active", "key-node"))
        self._dealing: asyncio.Task[Dealt] | None = None
        self._is_used = False

    def begin(self) -> None:
        super().begin()
        self._dealing = begin_quietly(self._receive())

    async def end(self) -> None:
        """Wait for the other server and the masks; raise also the error of the dealing."""
        await super().end()
        if self._dealing:
            await self._dealing

    def cancel(self) -> None:
        super().cancel()
        if self._dealing:
            self._dealing.cancel()

    async def _receive(self) -> Dealt:
        channel, timeouts = self._session.channel, self._session.job.timeouts
        plan = await patient(lambda: dealt_masks.receive_plan(self._active, channel), timeouts.session_s)
        return await dealt_masks.receive_dealt(plan, self._place, self._active, self._key_node, channel)

    async def agree(self, mine: Agreement) -> None:
        """Agree after the masks are dealt, so that the two exchanges follow each other."""
        await self._wait_for_begin()
        if self._dealing:
            await asyncio.shield(self._dealing)
        await super().agree(mine)

    async def add_up(self, tally: Tally) -> None:
        """Check that the rows are short, and add them up. A mask that serves twice would reveal the difference of two
        hidden values.

        Raises:
            PolicyRefused: the masks of this session were used.
            MalformedMessage: a row is longer than the norm bound.
        """
        hidden = shared_rows.require_tally(tally)
        if self._dealing is None or self._is_used:
            self._refuse("session", "its masks were used, and the call was cut: run the job again")
        self._is_used = True
        dealt = await asyncio.shield(self._dealing)
        hidden.take_sums(await in_own_thread(self._session.channel, lambda channel: self._sum(channel, dealt, hidden)))

    async def _sum(self, channel: Channel, dealt: Dealt, tally: SharedRowsTally) -> Elements:
        session = self._session
        server = shared_rows.Server(session.me.name, self._peer, self._active, dealt, session.id, channel)
        return await server.sum_of(tally)


def meet(session: Session[Any]) -> Meeting | None:
    """Open the meeting of servers that get shares of rows. Called by `session.once`."""
    return two_servers.open_meeting(session, Meeting)


class AtServer(two_servers.AtServer):
    def check(self) -> None:
        super().check()
        dealt_masks.plan_of(self.request, culprit=self.call.consumer)

    def meeting(self) -> Meeting:
        return self.meeting_of(meet)

    def find_session_of_answer(self) -> str:
        """Return the session of the stored answer: both shares of a sum come from the masks of one session."""
        stored = self.call.service.store.reader().answer(self.call.consumer, self.request.request_id)
        return stored.session if stored else ""

    def tally(self) -> Tally:
        return SharedRowsTally(self.request, self.call.keep_bits)

    async def before_release(self, tally: Tally) -> None:
        await super().before_release(tally)
        await self.meeting().add_up(tally)


# --- the active party ------------------------------------------------------------------------------------


class AtActiveParty(two_servers.AtActiveParty):
    _shared: SharedRows | None = None

    def open_request(self, request: AggregateOpen) -> AggregateOpen:
        """Return the request. Raise RangeError if the rows are too long, or too wide."""
        asked = shared_rows.step_1_open(super().open_request(request))
        dealt_masks.plan_of(asked)
        return asked

    async def begin(self, rows: ConsumerRows, request: AggregateOpen) -> None:
        """Ask the key node to deal masks for these rows."""
        plan, channel = dealt_masks.plan_of(request), self.session.channel
        key_node = self.session.with_role("key-node").name
        self.session.report("wait for masks", waiting_for=key_node)
        await dealt_masks.ask_for_masks(plan, (key_node, *self.servers), channel)
        self._shared = SharedRows(rows, plan, await dealt_masks.receive_seed(key_node, channel))

    def hide(self, rows: ConsumerRows, request: AggregateOpen) -> SharedRows:  # noqa: ARG002 - hides the rows of `begin`
        if self._shared is None:
            raise LocalProtocolError("masks are dealt before rows are sent")
        return self._shared

    async def prove(self) -> None:
        """Prove that the rows are short, when the servers ask."""

        async def prove(channel: Channel) -> None:
            if self._shared:
                await shared_rows.run_active(self._shared, self.servers, channel)

        await in_own_thread(self.session.channel, prove)

    async def end(self) -> None:
        await self.session.channel.send(self.session.with_role("key-node").name, MasksUsed())


# --- the key node ----------------------------------------------------------------------------------------


class MaskDealer:
    """The key node, which deals masks and sees nothing that they hide."""

    def __init__(self, party: Party) -> None:
        self._party = party

    def check(self, job: JobParameters, me: Member) -> None:  # noqa: ARG002 - the same for every job
        """Refuse a dataset of a key node."""
        if me.dataset:
            raise PolicyRefused(party=me.name, field="dataset", reason="a key node has no dataset")

    async def run(self, session: Session[JobParameters]) -> Summary:
        active = session.with_role("active").name
        servers = sorted(member.name for member in session.members.values() if member.role == "measurement")
        session.report("deal masks", waiting_for=active)
        channel = session.channel
        plan = await patient(lambda: dealt_masks.receive_plan(active, channel), session.job.timeouts.session_s)

        async def deal(channel: Channel) -> None:
            await dealt_masks.run_key_node(plan, active, servers, channel)

        await in_own_thread(channel, deal)
        await patient(lambda: channel.receive(active, MasksUsed), session.job.timeouts.session_s)
        return {"rows.masked": plan.n_rows}
