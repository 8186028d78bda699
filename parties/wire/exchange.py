"""The gRPC channel between the parties of a session: ordered, exactly once, resumable; frames.py has the rules.

The sender opens one stream for each session and ordered pair. Back-pressure is HTTP/2's: a receiver whose inbox is full
stops reading, and a sender whose outbox is full waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from blindfit.algorithms.errors import (
    BlindfitError,
    LocalProtocolError,
    MalformedMessage,
    PeerAborted,
    PeerTimeout,
    SessionUnknown,
    TransportError,
    UnexpectedStep,
    forget_frames,
    root_party,
)
from blindfit.algorithms.protocols.table import Gate, Listed
from blindfit.parties.wire import codec, error_codes
from blindfit.parties.wire.arrivals import Arrivals
from blindfit.parties.wire.channel import make_aborted
from blindfit.parties.wire.frames import Account, Arrived, Inbox, Outbox
from blindfit.parties.wire.limits import Limits
from blindfit.parties.wire.link import Link, OpenPeer, Timeouts
from blindfit.parties.wire.waits import Waits
from blindfit.protos import errors_pb2, exchange_pb2_grpc
from blindfit.protos import exchange_pb2 as pb

log = structlog.get_logger(__name__)

M = TypeVar("M")

ABORT_S = 2.0  # time in which a failed session tries to inform its peers
END_S = 2.0  # time in which a completed session tries to inform its peers
LOST_ANOTHER = frozenset({"PEER_UNREACHABLE", "PEER_TIMEOUT", "PEER_ABORTED", "CUT_OFF"})  # the peer lost another party
HELLO_S = 10.0  # longest time that a new stream may take for its Hello


@dataclass(frozen=True, slots=True, repr=False)
class Encoded:
    """A message's class and its bytes."""

    step: str
    data: bytes


class Accounts:
    """Sizes of the messages that every peer makes this process hold."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._accounts: dict[str, Account] = {}

    def of(self, peer: str) -> Account:
        return self._accounts.setdefault(peer, Account(peer, self._limits.peer_bytes))


class ExchangeChannel:
    """A session's channel, in the form that a protocol uses.

    Args:
        peers: name and address of every other party of the session.
        roles: role of every party of the session, this party included.
        listed: messages that the tables of the session's protocols allow between them.
        account_of: function that returns a peer's account over all sessions; by default the session has its own
            accounts.
        on_waiting: function that gets the party and the step that this party waits for; an empty name when it
            continues.
        waits: record of the parties that this party waits for.
    """

    def __init__(
        self,
        session: str,
        name: str,
        peers: Mapping[str, str],
        roles: Mapping[str, str],
        listed: Listed,
        open_peer: OpenPeer,
        limits: Limits,
        timeouts: Timeouts,
        on_waiting: Callable[[str, str], None] = lambda _peer, _step: None,
        account_of: Callable[[str], Account] | None = None,
        waits: Waits | None = None,
    ) -> None:
        self.session, self.name, self.peers = session, name, dict(peers)
        self._gate = Gate(roles[name], roles, listed, session)
        self._open_peer, self._limits, self._timeouts = open_peer, limits, timeouts
        self._links: dict[str, Link] = {}
        account_of = account_of or Accounts(limits).of
        self.waits = waits or Waits()
        self._arrivals = {
            peer: Arrivals(
                Inbox(session, peer, limits, account_of(peer), self._gate.arrivals_from(peer)),
                address,
                limits,
                timeouts,
                self.waits,
            )
            for peer, address in peers.items()
        }
        self._is_closed = False
        self.on_waiting = on_waiting
        self.on_received: Callable[[str, str, bytes], None] = lambda _sender, _kind, _data: None
        self.bytes_sent = self.messages_sent = 0  # for messages, without the additions of frames and TLS

    def start(self) -> None:
        """Start reading. Messages that came before wait in their streams."""
        for arrivals in self._arrivals.values():
            arrivals.start()

    async def send(self, to: str, message: object) -> None:
        """Return when the message is on its way; a later call raises a failure to bring it.

        Raises:
            TransportError, ProtocolError: the link has failed.
            LocalProtocolError: no table lists the message; it was not sent.
        """
        await self.bring(to, self.encode(to, message))

    def encode(self, to: str, message: object) -> Encoded:
        """Return the encoding of a message; any thread may call this. Raise LocalProtocolError as `send` does."""
        self._gate.check_sent(message, to)
        return Encoded(type(message).__name__, codec.encode(message))

    async def bring(self, to: str, message: Encoded) -> None:
        """Send an encoded message."""
        await self._link(to).send(message.step, message.data)
        self.bytes_sent += len(message.data)
        self.messages_sent += 1

    async def receive(self, sender: str, kind: type[M]) -> M:
        """Return the next message of a sender.

        Raises:
            PeerAborted, PeerTimeout, PeerUnreachable: no more messages come, or not in time.
            MalformedMessage, UnexpectedStep, LimitExceeded: another message came.
        """
        arrivals, step = self._arrivals_of(sender), kind.__name__
        self._gate.check_asked(kind, sender)
        # Also for a message that is here already: the coordinator, which gets the report, must not learn that.
        self.on_waiting(sender, step)
        try:
            await arrivals.wait(step)
        finally:
            self.on_waiting("", step)
        arrived = arrivals.inbox.pop()
        arrivals.changed.notify()  # a reader that waits for space may continue
        if arrived is None or arrived.abort_code is not None:
            raise self._end_of(sender)
        if arrived.step != step:
            raise UnexpectedStep(culprit=sender, expected=step, got=arrived.step, session=self.session, step=step)
        message = codec.decode(arrived.data, kind, culprit=sender, session=self.session)
        self.on_received(sender, step, arrived.data)
        return message

    async def wait_for(self, done: Awaitable[object], peer: str, step: str, timeout_s: float) -> None:
        """Wait for something that a peer does outside this stream; its abort or its cut ends the wait."""
        arrivals = self._arrivals_of(peer)
        arrivals.step = step
        task = asyncio.ensure_future(done)
        task.add_done_callback(lambda _: arrivals.changed.notify())

        def is_over() -> bool:
            return task.done() or arrivals.has_ended

        try:
            await self.waits.until(lambda: arrivals.changed.until(is_over), peer, step, timeout_s)
        finally:
            was_done = task.done()
            task.cancel()
        if not was_done:
            raise self._end_of(peer)
        task.result()

    def _end_of(self, peer: str) -> BlindfitError:
        """Return the reason why no more messages come. Every call returns the same reason."""
        arrivals = self._arrivals[peer]
        abort: Arrived | None = arrivals.inbox.abort
        if abort is not None and abort.abort_code is not None:
            lost = abort.abort_lost if abort.abort_lost in (*self.peers, self.name) else ""
            said = make_aborted(peer, abort.abort_code, abort.abort_step, self.session, lost)
            arrivals.fail(self._find_lost_behind(said) or said)
        return arrivals.failure or LocalProtocolError("the session is closed", session=self.session)

    def _find_lost_behind(self, said: PeerAborted) -> BlindfitError | None:
        """Return the failure of the stream of another party, if the peer ended the session because it lost that party,
        and the party's stream is cut here too.
        """
        if said.code in LOST_ANOTHER:
            for peer in sorted(self._arrivals, key=lambda name: name != said.lost):
                arrivals = self._arrivals[peer]
                if arrivals.inbox.abort is not None or arrivals.inbox.has_ended:
                    continue  # it reported its abort, or had finished
                if isinstance(arrivals.failure, TransportError):
                    return arrivals.failure
                if arrivals.clock is not None:
                    return arrivals.cut()
        return None

    async def close(self, error: BaseException | None = None) -> None:
        """Bring all messages that are still on their way, or inform every peer that the session has failed.

        If this raises or is cancelled before that, `close(error)` must follow.

        Raises:
            TransportError, ProtocolError: a peer did not receive everything, so the session has failed after all.
            UnexpectedStep: a peer sent a message that was not read.
        """
        if self._is_closed:
            return
        if error is None:
            await self._flush(self._timeouts.step_s)
            self.require_all_read()
        self._read_no_more()
        try:
            if error is None:
                await self._end()
            else:
                self._abort(error)
                with contextlib.suppress(BlindfitError):
                    await self._flush(ABORT_S)
        finally:
            await self._let_go()

    async def _end(self) -> None:
        """Inform the peers that are still there."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await asyncio.gather(*(link.end() for link in self._links.values()))

    async def discard(self) -> None:
        """End a channel that was never used. No peer is informed, and nothing is kept."""
        self._read_no_more()
        await self._let_go()

    def _read_no_more(self) -> None:
        self._is_closed = True
        for arrivals in self._arrivals.values():
            arrivals.is_closed = True

    async def _flush(self, timeout_s: float) -> None:
        flushes = [link.flush(timeout_s) for link in self._links.values()]
        results = await asyncio.gather(*flushes, return_exceptions=True)
        for result in results:
            if result is not None:
                raise result

    def require_all_read(self, but: type | None = None) -> None:
        """Check that all messages were read. An abort does not count: a peer that fails after it sent everything has no
        effect on this party.

        Args:
            but: a message that may have come early.

        Raises:
            UnexpectedStep: another message came, which this party has not read or may not read.
        """
        for peer, arrivals in self._arrivals.items():
            if isinstance(arrivals.failure, UnexpectedStep):
                raise arrivals.failure  # the message was refused at its arrival
            got = arrivals.inbox.unread
            if got and (but is None or got != but.__name__):
                raise UnexpectedStep(
                    culprit=peer, expected="the end of the session", got=got, session=self.session, step=got
                )

    async def _let_go(self) -> None:
        for arrivals in self._arrivals.values():
            arrivals.let_go(LocalProtocolError("the session is closed", session=self.session))
        if self._links:
            await asyncio.wait([asyncio.create_task(link.close()) for link in self._links.values()])
            self._links.clear()  # with the messages that they could not bring
        # An ended session is remembered for a while, without its messages and its failure's frames.
        self.on_received, self.on_waiting = _hears_no_more, _waits_no_more
        for arrivals in self._arrivals.values():
            if arrivals.failure is not None:
                forget_frames(arrivals.failure)

    def _abort(self, error: BaseException) -> None:
        step, lost = getattr(error, "step", "")[:64], self._find_lost(error)
        for peer in self.peers:
            self._open_link(peer).abort(_abort_code(error), step, lost)

    def _find_lost(self, error: BaseException) -> str:
        """Return the party of the session that this party blames for its own end; "" if it blames no party."""
        if isinstance(error, PeerAborted) and error.code == "CANCELLED":
            return ""  # no party is lost: the party that cancelled informs all others
        root = root_party(error) if isinstance(error, BlindfitError) else ""
        return root if root in (*self.peers, self.name) else ""

    def _link(self, to: str) -> Link:
        self._require_open(to)
        return self._open_link(to)

    def _open_link(self, to: str) -> Link:
        if to not in self._links:
            outbox = Outbox(self.session, self.name, to, self._limits)
            fail = self._arrivals[to].fail  # a peer that cannot be informed will not answer either
            self._links[to] = Link(outbox, self.peers[to], self._open_peer, self._timeouts, fail, self.waits)
        return self._links[to]

    def _arrivals_of(self, sender: str) -> Arrivals:
        self._require_open(sender)
        return self._arrivals[sender]

    def _require_open(self, peer: str) -> None:
        if peer not in self.peers:
            raise LocalProtocolError(f"{peer} is not in this session", session=self.session)
        if self._is_closed:
            raise LocalProtocolError("the session is closed", session=self.session)

    def accept(self, sender: str, frames: AsyncIterator[pb.Frame], hello: pb.Frame) -> AsyncGenerator[pb.Ack]:
        """Return one stream of a sender, which replaces an older one. The servicer calls this."""
        return self._arrivals[sender].accept(frames, hello)


def _hears_no_more(_sender: str, _kind: str, _data: bytes) -> None: ...


def _waits_no_more(_peer: str, _step: str) -> None: ...


def _abort_code(error: BaseException) -> int:
    if isinstance(error, PeerAborted) and error.code == "CANCELLED":
        return errors_pb2.CANCELLED
    return error_codes.code_of(error)


class ExchangeServicer(exchange_pb2_grpc.ExchangeServicer):
    """The service that routes each stream to its session; the guard around it has already identified the caller."""

    def __init__(self, session_of: Callable[[str], ExchangeChannel | None], caller_of: Callable[[], str]) -> None:
        self._session_of, self._caller_of = session_of, caller_of

    async def Open(  # noqa: N802
        self,
        request_iterator: AsyncIterator[pb.Frame],
        context: Any,  # noqa: ARG002
    ) -> AsyncIterator[pb.Ack]:
        sender = self._caller_of()
        frames = aiter(request_iterator)
        try:
            async with asyncio.timeout(HELLO_S):
                first = await anext(frames)
        except TimeoutError:
            raise PeerTimeout(peer=sender, step="Hello", timeout_s=HELLO_S) from None
        except StopAsyncIteration:
            raise MalformedMessage(culprit=sender, field="body", reason="no Hello came") from None
        if first.WhichOneof("body") != "hello":
            raise MalformedMessage(culprit=sender, field="body", reason="the first frame is not a Hello")
        channel = self._session_of(first.session)
        if channel is None or sender not in channel.peers:
            # The answer is the same for both: a party outside a session does not learn that it exists.
            raise SessionUnknown("no such session")
        async with contextlib.aclosing(channel.accept(sender, frames, first)) as acks:
            async for ack in acks:
                yield ack
