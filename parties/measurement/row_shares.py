"""At a consumer that hides its rows in shares: the masks that a key node deals for a session, and the proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, shared_rows
from blindfit.algorithms.protocols.walr.messages import MasksUsed
from blindfit.algorithms.protocols.walr.shared_rows import SharedRows
from blindfit.parties.measurement.client import Aggregate
from blindfit.parties.sessions.sessions import Session
from blindfit.parties.work.own_thread import in_own_thread


@dataclass(repr=False)
class RowShares:
    session: Session[Any]
    servers: tuple[str, ...]
    _shared: SharedRows | None = None

    def request(self, request: AggregateOpen) -> AggregateOpen:
        """The same, for rows that are hidden. Raises RangeError: they are too long, or too wide."""
        asked = shared_rows.step_1_open(request)
        shared_rows.plan_of(asked)
        return asked

    async def begin(self, rows: ConsumerRows, request: AggregateOpen) -> None:
        """Has masks dealt for these rows."""
        plan, channel = shared_rows.plan_of(request), self.session.channel
        key_node = self.session.with_role("key-node").name
        self.session.report("wait for masks", waiting_for=key_node)
        await shared_rows.ask_for_masks(plan, (key_node, *self.servers), channel)
        self._shared = SharedRows(rows, plan, await shared_rows.receive_seed(key_node, channel))

    def hidden(self, rows: ConsumerRows, request: AggregateOpen) -> SharedRows:  # noqa: ARG002 - those of `begin`
        if self._shared is None:
            raise LocalProtocolError("masks are dealt before rows are sent")
        return self._shared

    async def prove(self) -> None:
        """That they are short, when the servers ask."""

        async def proved(channel: Channel) -> None:
            if self._shared:
                await shared_rows.run_active(self._shared, self.servers, channel)

        await in_own_thread(self.session.channel, proved)

    async def end(self) -> None:
        """Both have answered."""
        await self.session.channel.send(self.session.with_role("key-node").name, MasksUsed())

    def opened(self, aggregate: Aggregate, request: AggregateOpen, *, server: str) -> Aggregate:  # noqa: ARG002 - in the clear
        return aggregate
