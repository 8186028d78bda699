"""The gRPC channel between the parties of a session: ordered, exactly once, resumable; frames.py has the rules.

For each session and ordered pair there is one stream, opened by the sender. Back-pressure is HTTP/2's: a receiver whose
inbox is full stops reading, and a sender whose outbox is full waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc

from algorithms.errors import (
    BlindfitError,
    LocalProtocolError,
    MalformedMessage,
    PeerAborted,
    PeerTimeout,
    PeerUnreachable,
    ProtocolError,
    SessionUnknown,
    TransportError,
    UnexpectedStep,
)
from parties import codec, error_codes
from parties.channel import aborted_by
from parties.frames import Inbox, Outbox
from parties.limits import Limits
from protos import errors_pb2, exchange_pb2_grpc
from protos import exchange_pb2 as pb

M = TypeVar("M")
OpenPeer = Callable[[str, str], Awaitable[grpc.aio.Channel]]  # (peer, address) -> an authenticated channel


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Deadlines of a session, in seconds."""

    step_s: float = 120.0  # the longest a peer may take for one step
    reconnect_s: float = 30.0  # how long a cut may last


# --- sending ---------------------------------------------------------------------------------------


class Link:
    """Brings one outbox to its receiver; opens the stream again after a cut."""

    def __init__(self, outbox: Outbox, address: str, open_peer: OpenPeer, timeouts: Timeouts) -> None:
        self._outbox, self._address = outbox, address
        self._open_peer, self._timeouts = open_peer, timeouts
        self._changed = asyncio.Event()
        self._failure: BlindfitError | None = None
        self._step = "connect"
        self._task = asyncio.create_task(self._run(), name=f"link to {outbox.receiver}")

    async def send(self, step: str, data: bytes) -> None:
        self._step = step
        await self._wait_until(lambda: not self._outbox.is_full, step)
        self._outbox.put(step, data)
        self._changed.set()

    async def flush(self, timeout_s: float) -> None:
        await self._wait_until(lambda: self._outbox.is_empty, self._step, timeout_s)

    def abort(self, code: int, step: str) -> None:
        self._outbox.abort(code, step)
        self._changed.set()

    async def close(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _wait_until(self, ready: Callable[[], bool], step: str, timeout_s: float | None = None) -> None:
        timeout_s = self._timeouts.step_s if timeout_s is None else timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                while not ready():
                    self._raise_failure()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise PeerTimeout(peer=self._outbox.receiver, step=step, timeout_s=timeout_s) from None
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _run(self) -> None:
        try:
            await self._keep_open()
        except BlindfitError as error:
            self._failure = error
            self._changed.set()

    async def _keep_open(self) -> None:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._timeouts.reconnect_s
        wait_s = 0.05
        while True:
            before = self._outbox.first_kept
            try:
                await self._stream()
            except _Cut as cut:
                if self._outbox.first_kept > before:  # it moved: the clock of the cut starts anew
                    give_up, wait_s = loop.time() + self._timeouts.reconnect_s, 0.05
                if loop.time() > give_up:
                    raise cut.error from None
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, 2.0)

    async def _stream(self) -> None:
        """One stream from Hello to its cut."""
        try:
            channel = await self._open_peer(self._outbox.receiver, self._address)
        except PeerUnreachable as error:
            raise _Cut(error) from None
        call = exchange_pb2_grpc.ExchangeStub(channel).Open()  # type: ignore[no-untyped-call]
        try:
            await call.write(self._outbox.hello())
            position = await self._read_ack(call)
            await self._pump(call, position)
        except grpc.aio.AioRpcError as error:
            self._raise_typed(error)
        except asyncio.InvalidStateError:
            raise _Cut(self._unreachable("the stream was cut")) from None
        finally:
            call.cancel()
            await channel.close()

    async def _pump(self, call: grpc.aio.StreamStreamCall, position: int) -> None:  # type: ignore[type-arg]
        acks = asyncio.create_task(self._read_acks(call))
        try:
            while True:
                while frames := list(self._outbox.frames_after(position)):
                    for frame in frames:
                        await call.write(frame)
                        position = frame.sequence
                self._changed.clear()
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait({acks, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if acks.done():
                    acks.result()
        finally:
            acks.cancel()
            with contextlib.suppress(asyncio.CancelledError, grpc.aio.AioRpcError, _Cut, BlindfitError):
                await acks

    async def _read_acks(self, call: grpc.aio.StreamStreamCall) -> None:  # type: ignore[type-arg]
        while True:
            await self._read_ack(call)

    async def _read_ack(self, call: grpc.aio.StreamStreamCall) -> int:  # type: ignore[type-arg]
        ack: Any = await call.read()
        if ack is grpc.aio.EOF:
            code = await call.code()
            if code is grpc.StatusCode.OK:
                raise _Cut(self._unreachable("it closed the stream"))
            raise grpc.aio.AioRpcError(
                code, await call.initial_metadata(), await call.trailing_metadata(), await call.details()
            )
        self._outbox.acknowledge(ack.received)
        self._changed.set()
        return int(ack.received)

    def _raise_typed(self, call_error: grpc.aio.AioRpcError) -> None:
        error = error_codes.error_of_call(
            call_error, peer=self._outbox.receiver, address=self._address, step=self._step
        )
        # The peer may not have heard of the session yet, or be starting again.
        retry = isinstance(error, PeerUnreachable) or _is_session_unknown(error)
        raise _Cut(error) if retry else error

    def _unreachable(self, reason: str) -> PeerUnreachable:
        return PeerUnreachable(
            peer=self._outbox.receiver, address=self._address, step=self._step, reason=reason
        )


class _Cut(Exception):
    """The stream ended in a way that a new one may mend."""

    def __init__(self, error: BlindfitError) -> None:
        super().__init__()
        self.error = error


def _is_session_unknown(error: BlindfitError) -> bool:
    return isinstance(error, PeerAborted) and error.code == "SESSION_UNKNOWN"


# --- receiving -------------------------------------------------------------------------------------


@dataclass(repr=False)
class _Arrivals:
    inbox: Inbox
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    failure: BlindfitError | None = None
    stream: asyncio.Task[object] | None = None  # the newest stream; an older one that still hangs is dropped


class ExchangeChannel:
    """A session's channel: what a protocol sees."""

    def __init__(
        self,
        session: str,
        name: str,
        peers: Mapping[str, str],
        open_peer: OpenPeer,
        limits: Limits,
        timeouts: Timeouts,
        on_waiting: Callable[[str, str], None] = lambda _peer, _step: None,
    ) -> None:
        self.session, self.name, self.peers = session, name, dict(peers)
        self._open_peer, self._limits, self._timeouts = open_peer, limits, timeouts
        self._links: dict[str, Link] = {}
        self._arrivals = {peer: _Arrivals(Inbox(session, peer, limits)) for peer in peers}
        self.on_waiting = on_waiting
        self._received: set[str] = set()

    async def send(self, to: str, message: object) -> None:
        await self._link(to).send(type(message).__name__, codec.encode(message))

    async def receive(self, sender: str, kind: type[M]) -> M:
        arrivals = self._arrivals_of(sender)
        step = kind.__name__
        self.on_waiting(sender, step)
        try:
            async with asyncio.timeout(self._timeouts.step_s):
                while (arrived := arrivals.inbox.pop()) is None:
                    if arrivals.failure is not None:
                        raise arrivals.failure
                    arrivals.changed.clear()
                    await arrivals.changed.wait()
        except TimeoutError:
            raise PeerTimeout(peer=sender, step=step, timeout_s=self._timeouts.step_s) from None
        finally:
            self.on_waiting("", step)
        arrivals.changed.set()  # a reader that waits for room may go on
        if arrived.abort_code is not None:
            raise aborted_by(sender, arrived.abort_code, arrived.abort_step, self.session)
        if arrived.step != step:
            got = arrived.step if arrived.step.isidentifier() else "something unnamed"
            raise UnexpectedStep(culprit=sender, expected=step, got=got, session=self.session, step=step)
        return codec.decode(arrived.data, kind, culprit=sender, session=self.session)

    async def wait_for(self, done: Awaitable[object], peer: str, step: str, timeout_s: float) -> None:
        """Waits for something that a peer does outside this stream; its abort or its cut ends the wait."""
        arrivals = self._arrivals_of(peer)
        task = asyncio.ensure_future(done)
        try:
            async with asyncio.timeout(timeout_s):
                while not task.done():
                    self._raise_ended(arrivals)
                    arrivals.changed.clear()
                    changed = asyncio.ensure_future(arrivals.changed.wait())
                    await asyncio.wait({task, changed}, return_when=asyncio.FIRST_COMPLETED)
                    changed.cancel()
        except TimeoutError:
            raise PeerTimeout(peer=peer, step=step, timeout_s=timeout_s) from None
        finally:
            task.cancel()

    def _raise_ended(self, arrivals: _Arrivals) -> None:
        arrived = arrivals.inbox.peek()
        if arrived is not None and arrived.abort_code is not None:
            raise aborted_by(arrivals.inbox.sender, arrived.abort_code, arrived.abort_step, self.session)
        if arrivals.failure is not None:
            raise arrivals.failure

    async def close(self, error: BaseException | None = None) -> None:
        """Brings what is still on its way, or tells every peer that the session has failed."""
        if error is not None:
            self._abort(error)
        for link in self._links.values():
            with contextlib.suppress(TransportError, ProtocolError):
                await link.flush(2.0 if error else self._timeouts.step_s)
            await link.close()

    def _abort(self, error: BaseException) -> None:
        if isinstance(error, PeerAborted):
            code: int = errors_pb2.PEER_ABORTED
        else:
            code = error_codes.detail_of(error).code
        for peer in self.peers:
            self._link(peer).abort(code, str(getattr(error, "step", ""))[:64])

    def _link(self, to: str) -> Link:
        if to not in self.peers:
            raise LocalProtocolError(f"{to} is not in this session", session=self.session)
        if to not in self._links:
            outbox = Outbox(self.session, self.name, to, self._limits)
            self._links[to] = Link(outbox, self.peers[to], self._open_peer, self._timeouts)
        return self._links[to]

    def _arrivals_of(self, sender: str) -> _Arrivals:
        if sender not in self._arrivals:
            raise LocalProtocolError(f"{sender} is not in this session", session=self.session)
        return self._arrivals[sender]

    # what the servicer calls

    async def accept(
        self, sender: str, frames: AsyncIterator[pb.Frame], first: pb.Frame
    ) -> AsyncIterator[pb.Ack]:
        arrivals = self._arrivals[sender]
        if arrivals.stream is not None and not arrivals.stream.done():
            arrivals.stream.cancel()
        arrivals.stream = asyncio.current_task()
        try:
            arrivals.inbox.accept(first)
            yield pb.Ack(received=arrivals.inbox.received)
            async for frame in frames:
                arrivals.inbox.accept(frame)
                arrivals.changed.set()
                yield pb.Ack(received=arrivals.inbox.received)
                await self._wait_for_room(arrivals)
        except BlindfitError as error:
            arrivals.failure = error
            arrivals.changed.set()
            raise
        finally:
            asyncio.get_running_loop().call_later(
                self._timeouts.reconnect_s, self._give_up_unless_back, sender, arrivals.stream
            )

    def _give_up_unless_back(self, sender: str, stream: asyncio.Task[object] | None) -> None:
        """The sender's stream was cut and no newer one came: whoever waits need not wait for the deadline."""
        arrivals = self._arrivals[sender]
        if arrivals.stream is stream and arrivals.failure is None:
            arrivals.failure = PeerUnreachable(
                peer=sender, address=self.peers[sender], step="exchange", reason="its stream was cut"
            )
            arrivals.changed.set()

    async def _wait_for_room(self, arrivals: _Arrivals) -> None:
        while arrivals.inbox.is_full:
            arrivals.changed.clear()
            await arrivals.changed.wait()


class ExchangeServicer(exchange_pb2_grpc.ExchangeServicer):
    """Routes each stream to its session; the guard around it has already named the caller."""

    def __init__(
        self, session_of: Callable[[str], ExchangeChannel | None], caller_of: Callable[[], str]
    ) -> None:
        self._session_of, self._caller_of = session_of, caller_of

    async def Open(  # noqa: N802
        self, request_iterator: AsyncIterator[pb.Frame], context: Any
    ) -> AsyncIterator[pb.Ack]:
        sender = self._caller_of()
        frames = aiter(request_iterator)
        try:
            async with asyncio.timeout(10):
                first = await anext(frames)
        except (StopAsyncIteration, TimeoutError):
            raise MalformedMessage(culprit=sender, field="body", reason="no Hello came") from None
        if first.WhichOneof("body") != "hello":
            raise MalformedMessage(culprit=sender, field="body", reason="the first frame is not a Hello")
        channel = self._session_of(first.session)
        if channel is None or sender not in channel.peers:
            # One answer for both: who is not in a session does not learn that it exists.
            raise SessionUnknown("no such session")
        async for ack in channel.accept(sender, frames, first):
            yield ack
