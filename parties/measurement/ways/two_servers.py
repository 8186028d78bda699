"""Two measurement servers hold shares of the labels and read the rows. Neither is trusted with a label.

The servers of a session agree on the request before either charges. The active party may open its calls again after a
cut, or send another request in them. Each server sends the other each kind of message once in a session. So one session
charges each of them for at most one request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
import structlog

from blindfit.algorithms.errors import CannotAnswer, DataError, PolicyRefused
from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum, Tally, two_servers
from blindfit.algorithms.protocols.walr.two_servers import Agreement, Counted, ShareTally
from blindfit.parties.measurement.calls import Aggregate
from blindfit.parties.measurement.patience import begin_quietly, patient
from blindfit.parties.measurement.trust import SumJob
from blindfit.parties.measurement.ways import several_parties, way
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.state import State

log = structlog.get_logger(__name__)


class Meeting:
    def __init__(self, session: Session[Any], peer: str) -> None:
        self._session, self._peer = session, peer
        self._begun = asyncio.Event()
        self._told: dict[type, Any] = {}
        self._heard: dict[type, asyncio.Task[Any]] = {}

    def begin(self) -> None:
        """Start the session's exchange. Call it after the handshake of the members."""
        self._begun.set()

    async def end(self) -> None:
        """Wait for the remaining messages of the other server."""
        await asyncio.gather(*self._heard.values())

    def cancel(self) -> None:
        for task in self._heard.values():
            task.cancel()

    async def agree(self, mine: Agreement) -> None:
        """Agree with the other server on the request.

        Raises:
            PolicyRefused: the other server has another split, other ids, or another request.
            PeerTimeout, PeerAborted: the other server got no request, or has refused it.
        """
        theirs = await self._exchange(mine)
        if difference := two_servers.step_2_difference(mine, theirs):
            self._refuse(f"{self._session.job.protocol}.trust", f"{difference} (the other server is {self._peer})")

    async def compare(self, mine: Counted) -> None:
        """Raise CannotAnswer if other rows counted at the other server: that depends on its table of persons."""
        if await self._exchange(mine) != mine:
            log.warning("a request cannot be answered: other rows counted at the other server", server=self._peer)
            raise CannotAnswer(party=self._session.me.name)

    def tell(self, mine: Counted) -> None:
        """Send the counts of a stored answer. They cannot change, so this server does not wait, as it does in
        `compare`.
        """
        self._begin_exchange(mine)

    async def _exchange(self, mine: Any) -> Any:
        """Exchange messages. A call that the active party cuts off does not cancel the exchange for the next call."""
        return await asyncio.shield(self._begin_exchange(mine))

    def _begin_exchange(self, mine: Any) -> asyncio.Task[Any]:
        kind = type(mine)
        if self._told.setdefault(kind, mine) != mine:
            self._refuse("session", "it has asked for something else before: another request needs another session")
        if kind not in self._heard:
            self._heard[kind] = begin_quietly(self._tell_and_hear(mine))
        return self._heard[kind]

    async def _tell_and_hear(self, mine: Any) -> Any:
        channel, timeouts = self._session.channel, self._session.job.timeouts
        await self._wait_for_begin()
        await channel.send(self._peer, mine)
        # The other server may receive all rows while this server uses its stored answer: that takes longer than a step.
        patience_s = timeouts.session_s if isinstance(mine, Counted) else timeouts.step_s
        return await patient(lambda: channel.receive(self._peer, type(mine)), patience_s)

    async def _wait_for_begin(self) -> None:
        session = self._session
        await session.channel.wait_for(self._begun.wait(), self._peer, "handshake", session.job.timeouts.step_s)

    def _refuse(self, field: str, reason: str) -> NoReturn:
        raise PolicyRefused(party=self._session.me.name, field=field, reason=reason)


M = TypeVar("M", bound=Meeting)


def open_meeting(session: Session[Any], kind: Callable[[Session[Any], str], M]) -> M | None:
    """Return a new meeting; None if the session has no other server, or does not run."""
    servers = [m.name for m in session.members.values() if m.role == "measurement" and m != session.me]
    return kind(session, servers[0]) if session.state is State.RUNNING and len(servers) == 1 else None


def meet(session: Session[Any]) -> Meeting | None:
    """Open the meeting of servers that read the rows. Called by `session.once`."""
    return open_meeting(session, Meeting)


class AtServer(way.AtServer):
    """One call at a server of shares. It repeats an answer only for the newest split, the only one that the other
    server knows.
    """

    def check(self) -> None:
        two_servers.step_2_check(self.request, consumer=self.call.consumer)
        if self.request.key:
            self.call.refuse("key", "its labels are shares: servers of shares sum rows that they can read")
        self.call.check_snapshot()
        several_parties.refuse_blocks(self.call)

    def meeting(self) -> Meeting:
        return self.meeting_of(meet)

    def meeting_of(self, meet: Callable[[Session[Any]], M | None]) -> M:
        session = self.call.session
        if session and isinstance(session.job, SumJob) and session.job.shares_rows != bool(self.request.in_shares):
            self.call.refuse("in_shares", "the job declares otherwise")
        meeting = session.once(meet) if session else None
        if meeting is None:
            reason = "its labels are shares: only a job of two measurement servers may ask for a sum of them"
            self.call.refuse("session", reason)
        return meeting

    async def before_rows(self, answer: NoisySum | None) -> None:
        call, index, meeting = self.call, self.call.dataset.index, self.meeting()
        ids_sha256 = await call.in_background(index.ids_sha256)
        answered_in = await call.in_background(self.find_session_of_answer) if answer is not None else ""
        await meeting.agree(two_servers.step_2_agreement(self.request, index.split_id, ids_sha256, answered_in))
        if answer is not None:
            meeting.tell(await call.in_background(lambda: self._count_stored(answer)))

    def find_session_of_answer(self) -> str:
        """Return the session in which the stored answer was given, if that matters; else ""."""
        return ""

    def _count_stored(self, answer: NoisySum) -> Counted:
        n_rows = self.request.n_rows
        if answer.rows_kept == n_rows:
            return two_servers.step_4_counted(np.packbits(np.ones(n_rows, np.bool_)).tobytes())
        return two_servers.step_4_counted(b"".join(self.call.pieces_to_keep()))

    def tally(self) -> Tally:
        return ShareTally(self.request, self.call.keep_bits)

    async def before_release(self, tally: Tally) -> None:
        meeting = self.meeting()
        await meeting.compare(await self.call.in_background(lambda: self._count(tally)))

    def _count(self, tally: Tally) -> Counted:
        """Return the count. From here on, only another charge that comes between could refuse this one."""
        self.call.check_ready(tally)
        return two_servers.step_4_counted(b"".join(self.call.read_bits()))


class AtActiveParty(way.AtActiveParty):
    def open_request(self, request: AggregateOpen) -> AggregateOpen:
        two_servers.step_1_check(request)
        return request

    def open_answer(self, aggregate: Aggregate, request: AggregateOpen, *, server: str) -> Aggregate:
        two_servers.step_6_check(aggregate.answer, request, server=server)
        return aggregate

    def add_up(self, aggregates: Sequence[Aggregate], request: AggregateOpen) -> Aggregate:
        """Return the sum of the answers. Raise DataError if the answers do not belong together."""
        answer = two_servers.step_6_add([a.answer for a in aggregates], request, servers=self.servers)
        first, second = aggregates
        if (first.kept != second.kept).any():
            raise DataError(f"different rows counted at {' and '.join(self.servers)}", hint="ask their operators")
        sent = first.bytes_sent + second.bytes_sent, first.messages_sent + second.messages_sent
        return Aggregate(answer, first.kept, *sent)

    def report(self, request: AggregateOpen) -> dict[str, Any]:
        """Return the epsilon of both servers: both answered the same request, so only the active party sees twice the
        variance.
        """
        return {"trust": self.session.job.trust, "epsilon_of_both": two_servers.epsilon_of_both(request)}
