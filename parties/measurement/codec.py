"""Conversion of WALR's messages to and from protos/measurement.proto, and two channels that carry a protocol over a
call.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NoReturn, TypeVar

import grpc
import numpy as np

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage, RangeError, UnexpectedStep
from blindfit.algorithms.paillier.ciphertexts import ReceivedCiphertext
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.table import Gate, Table, list_arrows
from blindfit.algorithms.protocols.walr import (
    AggregateOpen,
    NoisySum,
    Opened,
    RowsEnd,
    RowsKept,
    WeightRows,
    encrypted_rows,
    shared_rows,
)
from blindfit.algorithms.protocols.walr.encrypted_rows import EncryptedRows
from blindfit.algorithms.protocols.walr.messages import MaskedRows
from blindfit.algorithms.sharing import field
from blindfit.parties.wire import error_codes
from blindfit.parties.wire.waits import Waits
from blindfit.protos import measurement_pb2 as pb

M = TypeVar("M")

STATUS_POLLS, STATUS_POLL_S = 100, 0.02

_WIDTHS = {16: "<i2", 32: "<i4"}  # types of the integers in rows, by bits
_BODIES: dict[type, str] = {
    AggregateOpen: "open",
    WeightRows: "rows",
    RowsEnd: "end",
    EncryptedRows: "encrypted",
    MaskedRows: "masked",
    Opened: "opened",
    NoisySum: "answer",
    RowsKept: "kept",
}
_SIGNED = ("receipt", "receipt_signature")
_TERMS = ("min_rows", "max_epsilon", "max_delta", "budget_epsilon", "budget_delta")
_ANSWER_FIELDS = (
    "noise_std",
    "sensitivity",
    "event",
    "unit",
    "neighbours",
    "rows_kept",
    "rows_scaled",
    *_TERMS,
    "entry",
    "ciphertexts",
    "rows_unknown",
)


# --- messages --------------------------------------------------------------------------------------


def request_to_pb(message: object) -> pb.AggregateRequest:
    if isinstance(message, WeightRows):
        return pb.AggregateRequest(rows=_rows_to_pb(message))
    if isinstance(message, EncryptedRows):
        width_bytes, octets = message.rows.to_wire()  # type: ignore[union-attr]  # outgoing rows are always fresh
        return pb.AggregateRequest(encrypted=pb.EncryptedRows(ids=message.ids, width_bytes=width_bytes, rows=octets))
    if isinstance(message, MaskedRows):
        values = np.ascontiguousarray(message.values, "<u8").tobytes()
        return pb.AggregateRequest(masked=pb.MaskedRows(ids=message.ids, values=values))
    if isinstance(message, AggregateOpen):
        return pb.AggregateRequest(open=pb.AggregateOpen(**with_receipt(message, fields_of(AggregateOpen))))
    if isinstance(message, RowsEnd):
        return pb.AggregateRequest(end=pb.RowsEnd())
    raise LocalProtocolError(f"{type(message).__name__} does not go to a measurement server")


def _rows_to_pb(message: WeightRows) -> pb.WeightRows:
    bits = 8 * message.weights.itemsize
    if message.weights.dtype.kind != "i" or bits not in _WIDTHS:
        raise LocalProtocolError(f"rows of {message.weights.dtype} do not go to a measurement server")
    weights = np.ascontiguousarray(message.weights, _WIDTHS[bits]).tobytes()
    return pb.WeightRows(ids=message.ids, weights=weights, bits=bits)


def response_to_pb(message: object) -> pb.AggregateResponse:
    if isinstance(message, Opened):
        return pb.AggregateResponse(opened=pb.Opened(send_rows=bool(message.send_rows)))
    if isinstance(message, NoisySum):
        return pb.AggregateResponse(answer=answer_to_pb(message))
    if isinstance(message, RowsKept):
        return pb.AggregateResponse(kept=pb.RowsKept(bits=message.bits))
    raise LocalProtocolError(f"{type(message).__name__} does not come from a measurement server")


def answer_to_pb(message: NoisySum) -> pb.NoisySum:
    return pb.NoisySum(sums=[int(s) for s in message.sums], **with_receipt(message, _ANSWER_FIELDS))


def fields_of(message: type[Any], *besides: str) -> tuple[str, ...]:
    """Return the names of a message's fields, without its signed receipt and the fields in `besides`."""
    return tuple(field.name for field in fields(message) if field.name not in (*_SIGNED, *besides))


def with_receipt(message: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the named fields of a message and its signed receipt, as protobuf takes them."""
    receipt = pb.SignedReceipt(statement=message.receipt, signature=message.receipt_signature)
    return {**{name: getattr(message, name) for name in names}, "receipt": receipt}


def read_with_receipt(message: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the named fields of a protobuf message and its signed receipt, as our messages take them."""
    receipt = {"receipt": message.receipt.statement, "receipt_signature": message.receipt.signature}
    return {**{name: getattr(message, name) for name in names}, **receipt}


@dataclass(frozen=True)
class Messages:
    """The messages of one call.

    Args:
        bodies: field of the envelope that holds a message, by class.
        decoders: function (protobuf message, culprit) that returns a message, by class.
        answer: class of the message that is the server's answer. After it the call counts as answered, even if the call
            fails.
        tables: protocol tables: sender, receiver and message of each step.
    """

    bodies: Mapping[type, str]
    decoders: Mapping[type, Callable[[Any, str], Any]]
    request_to_pb: Callable[[object], Any]
    response_to_pb: Callable[[object], Any]
    answer: type
    tables: tuple[Table, ...]

    def gate(self, role: str, roles: Mapping[str, str]) -> Gate:
        return Gate(role, roles, list_arrows(self.tables))

    def from_pb(self, envelope: Any, kind: type[M], *, culprit: str) -> M:
        """Raises:
        UnexpectedStep: the envelope holds another message.
        MalformedMessage: a number is not finite, or bytes have a wrong length.
        """
        body = envelope.WhichOneof("body")
        if body != self.bodies[kind]:
            got = next((other.__name__ for other, name in self.bodies.items() if name == body), "nothing")
            raise UnexpectedStep(culprit=culprit, expected=kind.__name__, got=got, step=kind.__name__)
        message: Any = self.decoders[kind](getattr(envelope, body), culprit)
        return message  # type: ignore[no-any-return]


def message_from_pb(envelope: Any, kind: type[M], *, culprit: str) -> M:
    return AGGREGATE.from_pb(envelope, kind, culprit=culprit)


def _open_from_pb(message: pb.AggregateOpen, culprit: str) -> AggregateOpen:
    require_finite(message, ("epsilon", "delta"), "AggregateOpen", culprit)
    return AggregateOpen(**read_with_receipt(message, fields_of(AggregateOpen)))


def _rows_from_pb(message: pb.WeightRows, culprit: str) -> WeightRows:
    n, bits = len(message.ids), message.bits or 32
    if bits not in _WIDTHS:
        raise MalformedMessage(culprit=culprit, field="bits", reason="are neither 16 nor 32", step="WeightRows")
    if n == 0 or len(message.weights) % (bits // 8 * n):
        raise MalformedMessage(
            culprit=culprit,
            field="weights",
            reason="are not n_columns integers for each id",
            step="WeightRows",
        )
    weights = np.frombuffer(message.weights, _WIDTHS[bits]).astype(f"i{bits // 8}", copy=False).reshape(n, -1)
    return WeightRows(tuple(message.ids), weights)


def _read_masked_rows(message: pb.MaskedRows, culprit: str) -> MaskedRows:
    values = np.frombuffer(message.values[: len(message.values) // 8 * 8], "<u8").astype(np.uint64, copy=False)
    if len(message.values) % 8 or not values.size or int(values.max()) >= field.P:
        reason = "are not elements of the field"
        raise MalformedMessage(culprit=culprit, field="values", reason=reason, step="MaskedRows")
    return MaskedRows(tuple(message.ids), values)


def answer_from_pb(message: pb.NoisySum, culprit: str) -> NoisySum:
    require_finite(message, ("noise_std", "sensitivity", *_TERMS[1:]), "NoisySum", culprit)
    return NoisySum(sums=np.array(message.sums, np.int64), **read_with_receipt(message, _ANSWER_FIELDS))


def require_finite(message: Any, names: tuple[str, ...], step: str, culprit: str) -> None:
    for name in names:
        if not math.isfinite(getattr(message, name)):
            raise MalformedMessage(culprit=culprit, field=name, reason="is not finite", step=step)


_DECODERS: dict[type, Any] = {
    AggregateOpen: _open_from_pb,
    WeightRows: _rows_from_pb,
    MaskedRows: _read_masked_rows,
    EncryptedRows: lambda message, _culprit: EncryptedRows(
        tuple(message.ids), ReceivedCiphertext(message.width_bytes, message.rows)
    ),
    RowsEnd: lambda _message, _culprit: RowsEnd(),
    Opened: lambda message, _culprit: Opened(int(message.send_rows)),
    NoisySum: answer_from_pb,
    RowsKept: lambda message, _culprit: RowsKept(message.bits),
}
_TABLES = (walr.TABLE, encrypted_rows.TABLE, shared_rows.TABLE)
AGGREGATE = Messages(_BODIES, _DECODERS, request_to_pb, response_to_pb, NoisySum, _TABLES)


# --- channels --------------------------------------------------------------------------------------


class ServerSide:
    """The measurement server's channel to the active party of a call.

    The next message is read while the server works on the current one.
    """

    def __init__(
        self,
        consumer: str,
        requests: AsyncIterator[Any],
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
        step_timeout_s: float,
        messages: Messages = AGGREGATE,
        waits: Waits | None = None,
    ) -> None:
        self._consumer, self._requests, self._context = consumer, aiter(requests), context
        self._step_timeout_s, self._messages, self._waits = step_timeout_s, messages, waits or Waits()
        self._gate = messages.gate("measurement", {consumer: "active"})
        self._read: asyncio.Task[Any] | None = None
        self.answered = False

    async def send(self, to: str, message: object) -> None:
        self._gate.check_sent(message, to)
        writing = asyncio.ensure_future(self._context.write(self._messages.response_to_pb(message)))
        await _until_done(self._waits, writing, to, type(message).__name__, self._step_timeout_s)
        self.answered = self.answered or isinstance(message, self._messages.answer)

    async def receive(self, sender: str, kind: type[M]) -> M:
        self._gate.check_asked(kind, sender)
        read, self._read = self._read or self._next(), None
        request = await _until_done(self._waits, read, sender, kind.__name__, self._step_timeout_s)
        if request is None:
            raise UnexpectedStep(
                culprit=sender, expected=kind.__name__, got="the end of the stream", step=kind.__name__
            )
        self._read = self._next()
        return self._messages.from_pb(request, kind, culprit=sender)

    def _next(self) -> asyncio.Task[Any]:
        """Return a task that reads the next request; None at the end of the stream."""
        task = asyncio.ensure_future(_value_or_none(self._requests))
        task.add_done_callback(lambda read: read.cancelled() or read.exception())  # else asyncio logs a useless error
        return task

    def close(self) -> None:
        if self._read is not None:
            self._read.cancel()


async def _until_done(waits: Waits, task: asyncio.Future[M], peer: str, step: str, timeout_s: float) -> M:
    """Return the task's result. If the result does not come in time, cancel the task and raise PeerTimeout."""
    try:
        return await waits.until(lambda: asyncio.shield(task), peer, step, timeout_s)
    finally:
        task.cancel()


async def _value_or_none(values: AsyncIterator[Any]) -> Any:
    return await anext(values, None)


class ClientSide:
    """The active party's channel to the measurement server, over one open call.

    A read is always in progress: without a read, gRPC does not notice why a server ended a call during a write.
    """

    def __init__(
        self,
        server: str,
        address: str,
        call: Any,
        step_timeout_s: float,
        max_message_bytes: int,
        messages: Messages = AGGREGATE,
        waits: Waits | None = None,
    ) -> None:
        self._waits = waits or Waits()
        self._messages, self._gate = messages, messages.gate("active", {server: "measurement"})
        self._server, self._address, self._call = server, address, call
        self._step_timeout_s, self._max_message_bytes = step_timeout_s, max_message_bytes
        self._read: asyncio.Future[Any] | None = None
        self._status: tuple[grpc.StatusCode, grpc.aio.Metadata, str] | None = None
        call.add_done_callback(self._note_status)
        self.bytes_sent = self.messages_sent = 0

    async def send(self, to: str, message: object) -> None:
        self._gate.check_sent(message, to)
        request = self._messages.request_to_pb(message)
        size = request.ByteSize()
        if size > self._max_message_bytes:
            raise RangeError(f"a batch of {size} bytes does not fit in a message of {self._max_message_bytes}")
        self.bytes_sent += size
        self.messages_sent += 1
        step = type(message).__name__
        self._reading()
        try:
            await _until_done(
                self._waits, asyncio.ensure_future(self._call.write(request)), to, step, self._step_timeout_s
            )
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
            await self._raise_status(step)

    async def receive(self, sender: str, kind: type[M]) -> M:
        self._gate.check_asked(kind, sender)
        step = kind.__name__
        try:
            response = await self._waits.until(
                lambda: asyncio.shield(self._reading()), sender, step, self._step_timeout_s
            )
        except grpc.aio.AioRpcError:
            response = grpc.aio.EOF
        self._read = None
        if response is grpc.aio.EOF:
            await self._raise_status(step)
        return self._messages.from_pb(response, kind, culprit=sender)

    async def finish(self) -> None:
        """Let the server end the call, so that it knows that everything arrived."""
        with contextlib.suppress(TimeoutError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
            async with asyncio.timeout(self._step_timeout_s):
                await self._call.done_writing()
                await asyncio.shield(self._reading())

    def close(self) -> None:
        self._call.cancel()
        if self._read is not None:
            self._read.cancel()

    def _reading(self) -> asyncio.Future[Any]:
        if self._read is None:
            self._read = asyncio.ensure_future(self._call.read())
            # Without the callback, gRPC would log the error.
            self._read.add_done_callback(lambda read: read.cancelled() or read.exception())
        return self._read

    def _note_status(self, call: Any) -> None:
        """Record the status of an ended call. gRPC calls this at the end, before a failing write can put its own status
        there.
        """
        self._status = (
            _value_now(call.code()),
            _value_now(call.trailing_metadata()),
            _value_now(call.details()),
        )

    async def _raise_status(self, step: str) -> NoReturn:
        """Raise the error that the status of the ended call describes.

        A write to an ended call fails with its own status, INTERNAL without any detail, just before or after the true
        status comes.
        """
        code, metadata, said = self._status or (grpc.StatusCode.INTERNAL, None, "")
        for _ in range(STATUS_POLLS):
            if code is not grpc.StatusCode.INTERNAL or metadata:
                break
            await asyncio.sleep(STATUS_POLL_S)
            code, metadata = await self._call.code(), await self._call.trailing_metadata()
            said = await self._call.details()
        if code is grpc.StatusCode.OK:
            raise UnexpectedStep(culprit=self._server, expected=step, got="the end of the stream", step=step)
        error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), metadata or grpc.aio.Metadata(), said)
        raise error_codes.error_of_call(error, peer=self._server, address=self._address, step=step)


def _value_now(value: Coroutine[Any, Any, M]) -> M:
    """Return the result of a coroutine that does not wait."""
    try:
        value.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise LocalProtocolError("gRPC reports the end of a call, but not its status")
