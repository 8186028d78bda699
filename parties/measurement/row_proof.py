"""At a measurement server whose consumer hides its rows in shares: what was dealt to it for a session, and the one
proof and sum that these masks serve."""

from __future__ import annotations

import asyncio
from typing import Any

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.walr import Tally, shared_rows
from blindfit.algorithms.protocols.walr.shared_rows import Dealt, SharedRowsTally
from blindfit.algorithms.sharing.field import Elements
from blindfit.parties.measurement.patience import patient
from blindfit.parties.sessions.sessions import Session
from blindfit.parties.work.own_thread import in_own_thread


class RowProof:
    """
    Args:
        peer: the other server.
    """

    def __init__(self, session: Session[Any], peer: str) -> None:
        self._session, self._peer = session, peer
        self._place = sorted((session.me.name, peer)).index(session.me.name)
        self._active, self._key_node = (session.with_role(role).name for role in ("active", "key-node"))
        self._dealing: asyncio.Task[Dealt] | None = None
        self._is_used = False

    def begin(self) -> None:
        """The session's members have shaken hands."""
        self._dealing = asyncio.create_task(self._receive())
        self._dealing.add_done_callback(lambda task: task.cancelled() or task.exception())  # else asyncio logs

    async def end(self) -> None:
        """Raises what was wrong with the dealing."""
        if self._dealing:
            await self._dealing

    def cancel(self) -> None:
        if self._dealing:
            self._dealing.cancel()

    async def _receive(self) -> Dealt:
        channel = self._session.channel
        plan = await patient(
            lambda: shared_rows.receive_plan(self._active, channel), self._session.job.timeouts.session_s
        )
        return await shared_rows.receive_dealt(plan, self._place, self._active, self._key_node, channel)

    async def dealt(self) -> None:
        """Once all masks are here."""
        if self._dealing:
            await asyncio.shield(self._dealing)

    async def add_up(self, tally: Tally) -> None:
        """A mask that served twice would show the difference of what it hid.

        Raises:
            PolicyRefused: the masks of this session were used.
            MalformedMessage: a row is longer than the norm bound.
        """
        hidden = shared_rows.require_tally(tally)
        if self._dealing is None or self._is_used:
            reason = "its masks were used, and the call was cut: run the job again"
            raise PolicyRefused(party=self._session.me.name, field="session", reason=reason)
        self._is_used = True
        dealt = await asyncio.shield(self._dealing)
        hidden.summed(await in_own_thread(self._session.channel, lambda channel: self._sum(channel, dealt, hidden)))

    async def _sum(self, channel: Channel, dealt: Dealt, tally: SharedRowsTally) -> Elements:
        session = self._session
        server = shared_rows.Server(session.me.name, self._peer, self._active, dealt, session.id, channel)
        return await server.sum_of(tally)
