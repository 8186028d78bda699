"""The two roles of WALR, each as one function over a channel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import (
    Channel,
)
from blindfit.algorithms.protocols.walr.messages import AggregateOpen, Bits, NoisySum, Opened, RowsEnd, RowsKept
from blindfit.algorithms.protocols.walr.request import ConsumerRows, step_2_check
from blindfit.algorithms.protocols.walr.tally import Tally, Terms, answer_of, step_5_draft, step_6_check
from blindfit.algorithms.randomness import UniformInt

R = TypeVar("R")


# --- roles -----------------------------------------------------------------------------------------


class SentRows(Protocol):
    """Rows in the form that goes to a server."""

    def batches(self) -> Iterator[Any]:
        """Yield messages with `ids`."""
        ...


class InBackground(Protocol):
    """A way to do work off the event loop."""

    def __call__(self, work: Callable[[], R], /) -> Awaitable[R]: ...


async def run_active(
    rows: SentRows,
    request: AggregateOpen,
    server: str,
    channel: Channel,
    in_background: InBackground,
    on_rows: Callable[[int], None] = lambda _: None,
) -> tuple[NoisySum, Bits]:
    """Return the answer and which rows counted."""
    await channel.send(server, request)
    opened = await channel.receive(server, Opened)
    if opened.send_rows:
        batches = rows.batches()
        while (batch := await in_background(lambda: next(batches, None))) is not None:
            await channel.send(server, batch)
            on_rows(len(batch.ids))
        await channel.send(server, RowsEnd())
    answer = await channel.receive(server, NoisySum)
    step_6_check(answer, request, server=server)
    if answer.rows_kept == request.n_rows:
        return answer, np.ones(request.n_rows, np.bool_)
    if request.blocks:  # the rows that others have are not revealed
        return answer, np.zeros(0, np.bool_)
    return answer, await receive_kept(answer, request, server, channel)


async def receive_kept(answer: NoisySum, request: AggregateOpen, server: str, channel: Channel) -> Bits:
    packed = bytearray()
    size = -(-request.n_rows // 8)
    while len(packed) < size:
        piece = (await channel.receive(server, RowsKept)).bits
        if not 0 < len(piece) <= size - len(packed):
            raise MalformedMessage(culprit=server, field="bits", reason="has a wrong length", step="RowsKept")
        packed += piece
    kept = np.unpackbits(np.frombuffer(packed, np.uint8), count=request.n_rows).astype(np.bool_)
    if int(kept.sum()) != answer.rows_kept:
        raise MalformedMessage(culprit=server, field="bits", reason="do not add up to rows_kept", step="RowsKept")
    return kept


class Desk(Protocol):
    """Operations of the measurement server: policy, ledger, labels, and a place for the kept bits."""

    def admit(self, request: AggregateOpen) -> NoisySum | None:
        """Raise if the request is refused; return the stored answer of the same request."""

    async def before_rows(self, request: AggregateOpen, answer: NoisySum | None) -> None:
        """Raise if another server objects; `answer` is the stored answer, if there is one."""

    def tally(self, request: AggregateOpen) -> Tally: ...

    def join(self, ids: Sequence[str]) -> tuple[npt.NDArray[Any], Bits]:
        """Join ids to labels, with the same work for all ids; `release` reports what is wrong with them."""
        ...

    def keep_bits(self, bits: bytes) -> object: ...

    def pieces_to_keep(self) -> Iterator[bytes]:
        """Yield bits of the rows that counted in the answer. They are stored with it, so that both stay together."""
        ...

    async def before_release(self, tally: Tally) -> None:
        """Raise if another server objects, after all rows have come."""

    def release(self, tally: Tally) -> NoisySum:
        """Raise if the rows are refused; draw, charge and store in one transaction.

        The same request gets the stored answer.
        """

    def redact(self, answer: NoisySum) -> NoisySum:
        """Cut an answer to the active party's part."""
        ...

    def in_background(self, work: Callable[[], R]) -> Awaitable[R]:
        """Do work off the event loop: hashing, the database, the noise."""
        ...


async def run_measurement_server(consumer: str, channel: Channel, desk: Desk) -> NoisySum:
    request = await channel.receive(consumer, AggregateOpen)
    step_2_check(request, consumer=consumer)
    answer = await desk.in_background(lambda: desk.admit(request))
    await desk.before_rows(request, answer)
    await channel.send(consumer, Opened(int(answer is None)))
    if answer is None:
        tally = await receive_rows(request, consumer, channel, desk)
        await desk.before_release(tally)
        answer = await desk.in_background(lambda: desk.release(tally))
    await channel.send(consumer, desk.redact(answer))
    if answer.rows_kept < request.n_rows and not request.blocks:
        pieces = desk.pieces_to_keep()
        while piece := await desk.in_background(lambda: next(pieces, b"")):
            await channel.send(consumer, RowsKept(piece))
    return answer


async def receive_rows(request: AggregateOpen, consumer: str, channel: Channel, desk: Desk) -> Tally:
    tally = await desk.in_background(lambda: desk.tally(request))
    while tally.rows < request.n_rows:
        batch = await channel.receive(consumer, tally.batch_kind)
        await desk.in_background(partial(tally.add, batch, desk.join, consumer=consumer))
    await channel.receive(consumer, RowsEnd)
    tally.finish(consumer=consumer)
    return tally


# --- the specification: both roles in one process, no channel ---------------------------------------


def run_locally(rows: ConsumerRows, request: AggregateOpen, labels: Mapping[str, int], uniform: UniformInt) -> NoisySum:
    """Compute what the two roles compute, with one label for each row, unit = row, and no ledger."""
    step_2_check(request, consumer="active")
    tally = Tally(request, lambda _: None)

    def join(ids: Sequence[str]) -> tuple[npt.NDArray[np.uint8], Bits]:
        return np.array([labels[i] for i in ids], np.uint8), np.ones(len(ids), np.bool_)

    for batch in rows.batches():
        tally.add(batch, join, consumer="active")
    tally.finish(consumer="active")
    draft = step_5_draft(tally, uniform, neighbours="row")
    return answer_of(draft, unit="row", terms=Terms())
