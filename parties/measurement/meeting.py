"""Where the two measurement servers of a session tell each other what they must agree on before either charges.

The consumer may open its calls again after a cut, or ask for something else in them; the servers tell each other each
thing once for a session, so that one session charges each of them for one question at most.
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from blindfit.algorithms.errors import CannotAnswer, PolicyRefused
from blindfit.algorithms.protocols.walr import two_servers
from blindfit.algorithms.protocols.walr.two_servers import Agreement, Counted
from blindfit.parties.measurement.patience import patient
from blindfit.parties.measurement.row_proof import RowProof
from blindfit.parties.sessions.sessions import Session

log = structlog.get_logger(__name__)


class Meeting:
    """Of one session, at one of its two servers."""

    def __init__(self, session: Session[Any], peer: str) -> None:
        self._session, self._peer = session, peer
        self._begun = asyncio.Event()
        self._told: dict[type, Any] = {}
        self._heard: dict[type, asyncio.Task[Any]] = {}
        self.rows = RowProof(session, peer) if session.job.shares_rows else None

    def begin(self) -> None:
        """The session's members have shaken hands: what goes between servers does not come before that."""
        self._begun.set()
        if self.rows:
            self.rows.begin()

    async def end(self) -> None:
        """Waits for what the other server still has to say."""
        await asyncio.gather(*self._heard.values())
        if self.rows:
            await self.rows.end()

    def cancel(self) -> None:
        for task in self._heard.values():
            task.cancel()
        if self.rows:
            self.rows.cancel()

    async def agree(self, mine: Agreement) -> None:
        """Once masks were dealt, where rows come in shares: one thing after the other.

        Raises:
            PolicyRefused: the other server has another split, other ids, or was asked for something else.
            PeerTimeout, PeerAborted: it was not asked, or has refused.
        """
        if self.rows:
            await self._has_begun()
            await self.rows.dealt()
        theirs = await self._exchange(mine)
        if difference := two_servers.step_2_difference(mine, theirs):
            self._refuse(f"{self._session.job.protocol}.trust", f"{difference} (the other server is {self._peer})")

    async def counted(self, mine: Counted) -> None:
        """Raises CannotAnswer: other rows counted at the other server, which depends on its table of persons."""
        if await self._exchange(mine) != mine:
            log.warning("a request cannot be answered: other rows counted at the other server", server=self._peer)
            raise CannotAnswer(party=self._session.me.name)

    def counted_before(self, mine: Counted) -> None:
        """As `counted`, of an answer that is remembered: nothing of it can change, so nobody waits."""
        self._begin_exchange(mine)

    async def _exchange(self, mine: Any) -> Any:
        """Shielded: a call that the consumer cuts off takes no message away from the next one."""
        return await asyncio.shield(self._begin_exchange(mine))

    def _begin_exchange(self, mine: Any) -> asyncio.Task[Any]:
        kind = type(mine)
        if self._told.setdefault(kind, mine) != mine:
            self._refuse("session", "it has asked for something else before: another request needs another session")
        if kind not in self._heard:
            self._heard[kind] = asyncio.create_task(self._tell_and_hear(mine))
            self._heard[kind].add_done_callback(lambda task: task.cancelled() or task.exception())  # else asyncio logs
        return self._heard[kind]

    async def _tell_and_hear(self, mine: Any) -> Any:
        channel, timeouts = self._session.channel, self._session.job.timeouts
        await self._has_begun()
        await channel.send(self._peer, mine)
        return await self._hear(type(mine), timeouts.session_s if isinstance(mine, Counted) else timeouts.step_s)

    async def _has_begun(self) -> None:
        session = self._session
        await session.channel.wait_for(self._begun.wait(), self._peer, "handshake", session.job.timeouts.step_s)

    async def _hear(self, kind: type, patience_s: float) -> Any:
        """The other server may get all rows while this one remembers its answer: they take longer than a step."""
        return await patient(lambda: self._session.channel.receive(self._peer, kind), patience_s)

    def _refuse(self, field: str, reason: str) -> None:
        raise PolicyRefused(party=self._session.me.name, field=field, reason=reason)


def meeting_of(session: Session[Any]) -> Meeting | None:
    """The one of this session; None where it has no other server, or never ran."""
    servers = [m.name for m in session.members.values() if m.role == "measurement" and m != session.me]
    if session.meeting is None and session.state == "RUNNING" and len(servers) == 1:
        session.meeting = Meeting(session, servers[0])
    meeting: Meeting | None = session.meeting
    return meeting
