"""One measurement server is trusted with the labels, and reads the rows of several parties that hold columns.

The active party makes a call of its own, and may open it again after a cut. The passive parties send their rows through
the session, once. The server fits, and sends each party the weights of its own columns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.errors import (
    BlindfitError,
    CannotAnswer,
    DuplicateId,
    LocalProtocolError,
    MalformedMessage,
    PolicyRefused,
    TooFewRows,
    UnknownId,
)
from blindfit.algorithms.messages import parameters_digest
from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum, Tally, several_parties
from blindfit.algorithms.protocols.walr.blocks import Block, blocks_of
from blindfit.algorithms.protocols.walr.messages import BlockWanted
from blindfit.algorithms.protocols.walr.several_parties import BlockRows, BlocksTally
from blindfit.parties.account.account import Account
from blindfit.parties.measurement.call import Call
from blindfit.parties.measurement.patience import begin_quietly
from blindfit.parties.measurement.uploads import log_unanswered
from blindfit.parties.measurement.ways import way
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.state import State


@dataclass(frozen=True, repr=False)
class ToFit:
    """A release as the server keeps it, and the rows that counted; None if it was fitted before."""

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
        """Digest of all settings, except the release, that a fit depends on.

        Norm bounds are part of the release. They are left out here: a job whose quantile gives the same bounds as
        another's must not be refused.
        """
        fields = self._session.job.digest_fields()
        chosen = {n: v for n, v in fields.items() if n.startswith("walr.") or n == "seed"}
        return parameters_digest({n: v for n, v in chosen.items() if not n.startswith("walr.norm_")}).hex()

    def begin(self) -> None:
        """Start the session's exchange. Call it after the handshake of the members."""
        self._begun.set()

    def cancel(self) -> None:
        for task in self._rows:
            task.cancel()

    async def want(self, request: AggregateOpen, blocks: Sequence[Block], *, send_rows: bool) -> None:
        """Ask every passive party for its rows, or inform it that they are not needed; once for a session.

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
            self._rows = [begin_quietly(self._receive(block)) for block in blocks]

    async def _receive(self, block: Block) -> BlockRows:
        return await several_parties.receive_block(block, self._session.with_role("active").name, self._session.channel)

    async def rows(self) -> list[BlockRows]:
        """Return the rows of all passive parties. A call that the active party cuts off does not cancel the wait of the
        next call.

        Raises:
            PolicyRefused: a passive party sent something that is not a block; the error names the party.
        """
        try:
            return [await asyncio.shield(task) for task in self._rows]
        except MalformedMessage as error:
            if error.culprit not in self.holders:
                raise
            raise PolicyRefused(party=self._session.me.name, field="parties", reason=error.message) from None

    def require_release(self) -> ToFit:
        """Return the release to fit. Raise LocalProtocolError if the session has had no answer."""
        if self.to_fit is None:
            raise LocalProtocolError("there is no release to fit", session=self._session.id)
        return self.to_fit


def open_blocks(session: Session[Any]) -> Blocks | None:
    """Return new blocks; None if one party holds all columns, or the session does not run.

    `session.once` calls this.
    """
    holders = sorted(m.name for m in session.members.values() if m.role == "passive")
    return Blocks(session, holders) if session.state is State.RUNNING and holders else None


def check_blocks(call: Call) -> tuple[Block, ...]:
    """Return the blocks of a request. Raise PolicyRefused if the job has other holders of columns."""
    blocks, session = blocks_of(call.request, culprit=call.consumer), call.session
    held = session.once(open_blocks) if session else None
    if (held.holders if held else ()) != tuple(block.holder for block in blocks):
        call.refuse("blocks", "the job has other holders of columns")
    return blocks


def refuse_blocks(call: Call) -> None:
    """Raise PolicyRefused if the request or the job has blocks, which only a trusted server sums."""
    if check_blocks(call):
        call.refuse("blocks", "only a trusted server sums several parties' columns")


class AtServer(way.AtServer):
    """The passive parties send their rows through the session, and each gets the weights of its own columns."""

    shows_unknown_rows = False  # their number would also depend on the rows that the parties have in common
    blocks: tuple[Block, ...]

    def check(self) -> None:
        self.blocks, dataset = check_blocks(self.call), self.call.dataset
        if strangers := [b.holder for b in self.blocks if b.holder not in dataset.settings.passive_parties]:
            self.call.refuse("dataset", f"{strangers[0]} is not one of its passive parties, which may get weights")
        if reason := several_parties.step_5_too_few_rows(self.request, self.blocks):
            self.call.refuse("rows", reason)
        self.call.check_snapshot()

    def _find_blocks(self) -> Blocks:
        session = self.call.session
        held = session.once(open_blocks) if session else None
        if held is None:
            self.call.refuse("session", "it has ended")
        return held

    def can_repeat(self) -> bool:
        """Return True if a fit of this release is stored. A second, different fit would reveal more about its
        columns.
        """
        stored = self.call.service.store.reader().block_fit(self.call.consumer, self.request.request_id)
        if stored and stored[0] != self._find_blocks().settings_sha256:
            reason = "this release was fitted with other settings: set privacy.release to another name for another draw"
            self.call.refuse("walr", reason)
        return stored is not None

    async def before_rows(self, answer: NoisySum | None) -> None:
        held = self._find_blocks()
        await held.want(self.request, self.blocks, send_rows=answer is None)
        if answer is not None:
            held.to_fit = ToFit(self.request, answer, None)

    def tally(self) -> Tally:
        return BlocksTally(self.request, self.call.keep_bits, blocks=self.blocks)

    async def before_release(self, tally: Tally) -> None:
        others = await self._find_blocks().rows()
        await self.call.in_background(lambda: self._join_blocks(several_parties.require_tally(tally), others))

    def _join_blocks(self, tally: BlocksTally, others: Sequence[BlockRows]) -> None:
        call = self.call
        call.upload.begin()
        try:
            tally.join_blocks(others, call.join)
            call.join_state().check()
            call.service.check_kept(tally.rows_kept)
        except (DuplicateId, UnknownId, TooFewRows) as error:  # a place or a number of rows that the parties share
            log_unanswered(error, call.consumer)
            raise CannotAnswer(party=call.service.name) from None
        told = several_parties.bits_told_of(tally.n_columns, tally.rows_kept)
        owners = (*self._find_blocks().holders, call.consumer)
        self._count_told_bits(dict(zip(owners, told, strict=True)), tally.rows_kept)
        tally.sum_blocks()

    def _count_told_bits(self, bits: Mapping[str, int], rows_kept: int) -> None:
        """Count the bits of weights that depend on each party's columns, before the weights are sent.

        Raises:
            PolicyRefused: these and the weights that were sent before could reveal the rows.
        """
        call = self.call
        account = Account(call.service.policy, call.dataset.settings)

        def refuse() -> BlindfitError:
            return PolicyRefused(party=call.service.name, field="parties", reason=several_parties.TOO_MANY_BITS)

        with call.service.store.transaction() as transaction:
            for owner, more in bits.items():
                read = call.dataset.snapshot, self.request.session
                asked = self.request.request_id
                entry = account.entry("columns", owner, [call.consumer], "weights", asked, more, read)
                account.enter_below(transaction, entry, several_parties.max_bits(rows_kept), refuse)

    def keep(self, tally: Tally, answer: NoisySum) -> None:
        self._find_blocks().to_fit = ToFit(self.request, answer, several_parties.require_tally(tally))


class AtActiveParty(way.AtActiveParty):
    """The active party asks for the sum over the columns of all parties, and sends only its own columns."""

    def __init__(self, session: Session[Any], servers: Sequence[str], blocks: Sequence[Block]) -> None:
        super().__init__(session, servers)
        self._blocks = blocks

    def open_request(self, request: AggregateOpen) -> AggregateOpen:
        return several_parties.step_4_open(request, self._blocks)
