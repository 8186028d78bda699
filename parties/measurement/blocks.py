"""At a measurement server, where several parties of a job hold columns of the same people: their rows of one session,
and what their fit is to be made of.

The active party asks in a call of its own, which it may open again after a cut; the passive ones send their rows
through the session, once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage, PolicyRefused
from blindfit.algorithms.messages import parameters_digest
from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum, several_parties
from blindfit.algorithms.protocols.walr.messages import BlockWanted
from blindfit.algorithms.protocols.walr.several_parties import Block, BlockRows, BlocksTally
from blindfit.parties.sessions.sessions import Session


@dataclass(frozen=True, repr=False)
class ToFit:
    """A release as the server keeps it, and the rows that counted; None: it was fitted before."""

    request: AggregateOpen
    answer: NoisySum
    rows: BlocksTally | None


class Blocks:
    def __init__(self, session: Session[Any], holders: Sequence[str]) -> None:
        """Args:
        holders: the passive parties, in the order of their blocks.
        """
        self._session, self.holders = session, tuple(holders)
        self._begun = asyncio.Event()
        self._asked: tuple[str, bool] | None = None
        self._rows: list[asyncio.Task[BlockRows]] = []
        self.to_fit: ToFit | None = None

    @property
    def settings_sha256(self) -> str:
        """Of all that a fit depends on beside its release, of which norm bounds are a part: else a job would be refused
        where its quantile gives the same bounds as another's."""
        fields = self._session.job.digest_fields()
        chosen = {n: v for n, v in fields.items() if n.startswith("walr.") or n == "seed"}
        return parameters_digest({n: v for n, v in chosen.items() if not n.startswith("walr.norm_")}).hex()

    def snapshots(self, active: str) -> list[str]:
        """Of the rows of each holder in turn, the active party last."""
        return [self._session.snapshots.get(name, "") for name in (*self.holders, active)]

    def begin(self) -> None:
        """The session's members have shaken hands: nothing goes between them before that."""
        self._begun.set()

    def cancel(self) -> None:
        for task in self._rows:
            task.cancel()

    async def want(self, request: AggregateOpen, blocks: Sequence[Block], *, send_rows: bool) -> None:
        """Asks every holder for its rows, or tells it that they are not needed; once for a session.

        Raises:
            PolicyRefused: the session has asked for something else before.
        """
        session = self._session
        active = session.with_role("active").name
        await session.channel.wait_for(self._begun.wait(), active, "handshake", session.job.timeouts.step_s)
        if self._asked is not None:
            if self._asked[0] != request.request_id or (send_rows and not self._asked[1]):
                reason = "it has asked for something else before: another request needs another session"
                raise PolicyRefused(party=session.me.name, field="session", reason=reason)
            return
        self._asked = request.request_id, send_rows
        for block in blocks:
            await session.channel.send(block.holder, BlockWanted(int(send_rows)))
        if send_rows:
            self._rows = [asyncio.create_task(self._receive(block)) for block in blocks]
            for task in self._rows:
                task.add_done_callback(lambda task: task.cancelled() or task.exception())  # else asyncio logs

    async def _receive(self, block: Block) -> BlockRows:
        return await several_parties.receive_block(block, self._session.with_role("active").name, self._session.channel)

    async def rows(self) -> list[BlockRows]:
        """Once they are all here. Shielded: a call that the active party cuts off takes nothing away from the next.

        Raises:
            PolicyRefused: a holder sent what is no block; names it.
        """
        try:
            return [await asyncio.shield(task) for task in self._rows]
        except MalformedMessage as error:
            if error.culprit not in self.holders:
                raise
            raise PolicyRefused(party=self._session.me.name, field="parties", reason=error.message) from None

    def released(self) -> ToFit:
        """Raises LocalProtocolError: the session has had no answer."""
        if self.to_fit is None:
            raise LocalProtocolError("there is no release to fit", session=self._session.id)
        return self.to_fit


def blocks_of(session: Session[Any]) -> Blocks | None:
    """Those of this session; None where one party holds all columns, or it never ran."""
    holders = sorted(m.name for m in session.members.values() if m.role == "passive")
    if session.meeting is None and session.state == "RUNNING" and holders:
        session.meeting = Blocks(session, holders)
    return session.meeting if isinstance(session.meeting, Blocks) else None
