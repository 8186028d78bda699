"""Messages that arrive from one peer of a session, over one stream at a time, and the reason why no more arrive."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, AsyncIterator

from blindfit.algorithms.errors import BlindfitError, PeerUnreachable, SessionUnknown
from blindfit.parties.wire.acknowledgements import Acknowledgements
from blindfit.parties.wire.frames import Inbox
from blindfit.parties.wire.limits import Limits
from blindfit.parties.wire.link import Signal, Timeouts
from blindfit.parties.wire.waits import Waits
from blindfit.protos import exchange_pb2 as pb


class Arrivals:
    def __init__(self, inbox: Inbox, address: str, limits: Limits, timeouts: Timeouts, waits: Waits) -> None:
        """Args:
        address: address of the peer.
        """
        self.inbox, self._address, self._limits, self._timeouts, self._waits = inbox, address, limits, timeouts, waits
        self.changed = Signal()
        self.failure: BlindfitError | None = None
        self.clock: asyncio.TimerHandle | None = None  # runs while no stream is open
        self.is_closed = False  # True if this party reads no more
        self._is_started = False
        self._stream: asyncio.Task[None] | None = None  # reads the newest stream; ends when another stream replaces it
        self._acks = Acknowledgements()  # for the newest stream
        self.step = "exchange"  # step that this party waits for

    @property
    def has_ended(self) -> bool:
        return self.inbox.abort is not None or self.failure is not None

    def start(self) -> None:
        self._is_started = True
        self.changed.notify()

    def fail(self, error: BlindfitError) -> None:
        """Record a failure; only the first counts. Messages that arrived before it can still be received."""
        self.failure = self.failure or error
        self.changed.notify()

    def cut(self) -> PeerUnreachable:
        reason = "its stream was cut"
        return PeerUnreachable(peer=self.inbox.sender, address=self._address, step=self.step, reason=reason)

    def let_go(self, error: BlindfitError) -> None:
        self._stop_clock()
        self._acks.now()
        self.inbox.clear()
        self.fail(error)

    # --- the receiver

    async def wait(self, step: str) -> None:
        """Return when a message or a failure is there. Raise PeerTimeout if neither comes in time."""
        self.step = step

        def may_go_on() -> bool:
            return not self.inbox.is_empty or self.failure is not None

        if not may_go_on():
            came = self.changed.until
            await self._waits.until(lambda: came(may_go_on), self.inbox.sender, step, self._timeouts.step_s)

    # --- the peer's streams

    async def accept(self, frames: AsyncIterator[pb.Frame], hello: pb.Frame) -> AsyncGenerator[pb.Ack]:
        # A task of its own: a handler that is cancelled would leave its caller without an answer.
        reading = asyncio.create_task(self._read(frames, hello))
        acks = self._begin(reading)
        try:
            said: int | None = None
            async for _ in acks:
                if said != self.inbox.acknowledged:
                    said = self.inbox.acknowledged
                    yield pb.Ack(received=said)
            if not reading.cancelled():
                reading.result()
        except BlindfitError as error:
            # A copy: the error that is raised refers to every frame of the stack, and so to the messages that they
            # received.
            self.fail(copy.copy(error))
            raise
        finally:
            reading.cancel()
            if self._stream is reading:
                self._stream = None
                self.inbox.drop_part()
                self._start_clock()

    def _begin(self, stream: asyncio.Task[None]) -> Acknowledgements:
        """Start a new stream, and end the older one, which may wait on a dead connection."""
        if self._stream is not None:
            self._stream.cancel()
            self.inbox.drop_part()
        self._stream, self._acks = stream, Acknowledgements()
        stream.add_done_callback(self._acks.end)
        self._stop_clock()
        self.changed.notify()
        return self._acks

    async def _read(self, frames: AsyncIterator[pb.Frame], hello: pb.Frame) -> None:
        self._accept_frame(hello)
        self._acks.now()
        async for frame in frames:
            self._accept_frame(frame)
            if self.inbox.has_ended:  # the peer waits for this acknowledgement before it closes
                self._acks.now()
            else:
                self._acks.soon()
            await self.changed.until(lambda: not self._is_full())

    def _is_full(self) -> bool:
        return self.inbox.is_full if self._is_started else self.inbox.held_bytes > self._limits.unstarted_bytes

    def _accept_frame(self, frame: pb.Frame) -> None:
        if self.is_closed and frame.WhichOneof("body") == "chunk":
            raise SessionUnknown("the session is over")  # nobody will read it, so it is not acknowledged
        self.inbox.accept(frame)
        if self.is_closed:
            self.inbox.clear()
        self.changed.notify()

    # --- while no stream is open

    def _start_clock(self, after_s: float | None = None) -> None:
        if not self.is_closed:
            loop = asyncio.get_running_loop()
            after_s = self._timeouts.reconnect_s if after_s is None else after_s
            self.clock = loop.call_later(after_s, self._give_up, loop.time())

    def _stop_clock(self) -> None:
        if self.clock is not None:
            self.clock.cancel()
            self.clock = None

    def _give_up(self, began: float) -> None:
        """Fail without waiting for the deadline, because the stream was cut and no newer stream came."""
        if stood_s := self._waits.pulse.stood_s(began):
            self._start_clock(min(stood_s, self._timeouts.reconnect_s))
        elif self.inbox.abort is None:
            self.fail(self.cut())
