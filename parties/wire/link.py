"""The sending half of the exchange: one stream for each session and receiver, opened again after a cut."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import structlog

from blindfit.algorithms.errors import (
    BlindfitError,
    LocalProtocolError,
    MalformedMessage,
    PeerAborted,
    PeerUnauthenticated,
    PeerUnreachable,
    TransportError,
    where,
)
from blindfit.parties.wire import error_codes
from blindfit.parties.wire.frames import Outbox
from blindfit.parties.wire.together import failures_of
from blindfit.parties.wire.waits import Waits
from blindfit.protos import exchange_pb2_grpc

log = structlog.get_logger(__name__)
M = TypeVar("M")
OpenPeer = Callable[[str, str], Awaitable[grpc.aio.Channel]]  # (peer, address) -> an authenticated channel

FIRST_WAIT_S = 0.05  # wait before the second attempt to connect; it doubles
LONGEST_WAIT_S = 2.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Deadlines of a session, in seconds."""

    step_s: float = 120.0  # longest time that a peer may take for one step
    reconnect_s: float = 30.0  # longest time that a cut may last


class Signal:
    """Wake every task that waits for a change, and lose no change.

    (An asyncio.Event would lose some: one waiter's clear() can come between another's set() and the waiter that needs
    it.)
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], None] = {}  # in the order in which they came

    def notify(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():  # a cancelled waiter is still in the list
                waiter.set_result(None)
        self._waiting.clear()

    async def until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            waiter = asyncio.get_running_loop().create_future()
            self._waiting[waiter] = None
            try:
                await waiter
            finally:
                self._waiting.pop(waiter, None)


class Link:
    """Brings one outbox to its receiver; opens the stream again after a cut.

    Args:
        on_failure: function that is called when nothing more can be brought.
        waits: record of the session's waits, to which this link adds its own.
    """

    def __init__(
        self,
        outbox: Outbox,
        address: str,
        open_peer: OpenPeer,
        timeouts: Timeouts,
        on_failure: Callable[[BlindfitError], None],
        waits: Waits | None = None,
    ) -> None:
        self._outbox, self._address, self._waits = outbox, address, waits or Waits()
        self._open_peer, self._timeouts, self._on_failure = open_peer, timeouts, on_failure
        self._changed = Signal()
        self._failure: BlindfitError | None = None
        self._step = "connect"
        self._sent = 0  # last frame that was sent on the open stream
        self._is_open = self._was_open = False
        self._task = asyncio.create_task(self._keep_open(), name=f"link to {outbox.receiver}")
        self._task.add_done_callback(self._on_end)

    async def send(self, step: str, data: bytes) -> None:
        self._step = step
        await self._until(lambda: not self._outbox.is_full, self._timeouts.step_s)
        if self._failure is not None:
            raise self._failure
        self._outbox.put(step, data)
        self._changed.notify()

    async def flush(self, timeout_s: float) -> None:
        """Wait until the receiver has everything."""
        await self._until(lambda: self._outbox.is_empty, timeout_s)
        if self._failure is not None and not self._outbox.is_empty:
            raise self._failure

    async def end(self) -> None:
        """Wait until the receiver knows of the end, if it is still there."""
        if self._is_open:
            self._outbox.end()
            self._changed.notify()
            await self._changed.until(lambda: self._outbox.is_empty or not self._is_open)

    def abort(self, code: int, step: str, lost: str) -> None:
        self._outbox.abort(code, step, lost)
        self._changed.notify()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _until(self, ready: Callable[[], bool], timeout_s: float) -> None:
        if self._failure is not None or ready():
            return
        changed, receiver = self._changed, self._outbox.receiver
        await self._waits.until(
            lambda: changed.until(lambda: self._failure is not None or ready()), receiver, self._step, timeout_s
        )

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._is_open = False
        error = None if task.cancelled() else task.exception()
        if isinstance(error, BlindfitError):
            self._failure = error
        elif error is not None:
            log.error("link broke", error=type(error).__name__, where=where(error))
            self._failure = TransportError(
                f"the link to {self._outbox.receiver} broke", peer=self._outbox.receiver, step=self._step
            )
        else:
            self._failure = LocalProtocolError("the session is closed", session=self._outbox.session)
        self._changed.notify()
        if error is not None:
            self._on_failure(self._failure)

    async def _keep_open(self) -> None:
        """Open stream after stream, until one fails for good or a cut lasts too long."""
        now, stood_s = asyncio.get_running_loop().time, self._waits.pulse.stood_s
        cut, wait_s = now(), FIRST_WAIT_S
        error: BlindfitError | None = None
        while True:
            before = self._outbox.acknowledged
            error = await self._stream_until_cut(cut + self._timeouts.reconnect_s + stood_s(cut), error)
            if self._is_open:
                cut = now()
                self._is_open = False
                self._changed.notify()
            if self._outbox.acknowledged > before:
                wait_s = FIRST_WAIT_S
            if now() + wait_s >= cut + self._timeouts.reconnect_s + stood_s(cut):
                raise error
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    async def _stream_until_cut(self, give_up: float, before: BlindfitError | None) -> BlindfitError:
        """Run a stream until a cut.

        Args:
            before: reason for the end of the last stream, which explains more than that the time was over.

        Returns:
            The reason for the end of the stream, if another stream may continue from there.

        Raises:
            BlindfitError: another stream would not help.
        """
        error: BlindfitError
        try:
            async with asyncio.timeout_at(give_up) as opening:
                await self._stream(opening)
            error = self._unreachable("it closed the stream")
        except grpc.aio.AioRpcError as call_error:
            error = error_codes.error_of_call(
                call_error, peer=self._outbox.receiver, address=self._address, step=self._step
            )
            if not _may_mend(error, self._was_open):
                raise error from None
        except PeerUnreachable as unreachable:
            error = unreachable
        except PeerUnauthenticated as refused:
            if not self._was_open:
                raise
            error = refused  # the peer accepted us before, so a handshake that was cut off only looks like a refusal
        except (TimeoutError, asyncio.InvalidStateError):
            if self._is_open:
                return self._unreachable("the stream was cut")
            error = before or self._unreachable("no answer")
        return error

    async def _stream(self, opening: asyncio.Timeout) -> None:
        """Run one stream, from Hello until the receiver closes it."""
        channel = await self._open_peer(self._outbox.receiver, self._address)
        try:
            call: Any = exchange_pb2_grpc.ExchangeStub(channel).Open()  # type: ignore[no-untyped-call]
            try:
                await call.write(self._outbox.hello())
                if await self._read_ack(call):
                    opening.reschedule(None)
                    self._is_open = self._was_open = True
                    await _together(self._read_acks(call), self._write_frames(call))
            finally:
                call.cancel()
        finally:
            await channel.close()

    async def _write_frames(self, call: Any) -> None:
        # A write to a call that has ended fails with grpc.aio's own status; the reader of the call knows why it ended.
        with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
            while True:
                frame = self._outbox.frame_after(self._sent)
                if frame is None:
                    await self._changed.until(lambda: self._outbox.frame_after(self._sent) is not None)
                else:
                    await call.write(frame)
                    self._sent = frame.sequence

    async def _read_acks(self, call: Any) -> None:
        while await self._read_ack(call):
            pass
        raise self._unreachable("it closed the stream")

    async def _read_ack(self, call: Any) -> bool:
        """Read an acknowledgement; return True if the stream continues."""
        ack = await call.read()
        if ack is grpc.aio.EOF:
            return False
        if ack is None:  # grpc.aio returns None for bytes that do not parse
            raise MalformedMessage(culprit=self._outbox.receiver, field="ack", reason="is not a protobuf message")
        if self._is_open and ack.received == self._outbox.acknowledged:
            raise MalformedMessage(  # the receiver could repeat it without end
                culprit=self._outbox.receiver, field="received", reason="acknowledges nothing new"
            )
        self._outbox.acknowledge(ack.received)
        if not self._is_open:
            self._sent = ack.received  # the first acknowledgement: the place at which this stream begins
        self._changed.notify()
        return True

    def _unreachable(self, reason: str) -> PeerUnreachable:
        return PeerUnreachable(peer=self._outbox.receiver, address=self._address, step=self._step, reason=reason)


def _may_mend(error: BlindfitError, was_open: bool) -> bool:
    """Return True if a new stream may get further: after a cut, or if the peer does not know the session yet."""
    if isinstance(error, PeerAborted):
        return error.code == "SESSION_UNKNOWN" and not was_open
    return isinstance(error, PeerUnreachable)


async def _together(*works: Coroutine[Any, Any, None]) -> None:
    """Run all until one fails, and cancel the others. Raise the failure; of several, the first work's."""
    for failure in await failures_of([asyncio.create_task(work) for work in works]):
        raise failure
