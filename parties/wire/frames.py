"""Frames of the exchange stream, without I/O: ordered, exactly once, chunked, resumable.

    sender                                   receiver
    Hello (session, sender, outbox)  ->
                                     <-      Ack(received = n)
    frames n+1, n+2 ...              ->      accepted if the next one, ignored if seen, refused after a gap
                                     <-      Ack(received = n+1), once the message is whole ...

After a cut the sender repeats Hello. It keeps every frame until the frame is acknowledged. Only whole messages are
acknowledged: a part of a message is dropped with its stream, so that no peer makes us keep a message that never ends.

Neither side can lose its state without notice. A receiver that lost its state acknowledges less than before. A sender
that lost its state sends Hello with the name of another outbox. (Otherwise the new sender's first frames would count as
the old sender's, and be ignored.)
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from blindfit.algorithms.errors import LimitExceeded, LocalProtocolError, MalformedMessage
from blindfit.algorithms.texts import printable
from blindfit.parties.wire.limits import Limits
from blindfit.protos import exchange_pb2 as pb

MAX_STEP_CHARS = 64
ENTRY_BYTES = 256  # cost of an object in addition to its data: without it, empty messages would fill the memory


@dataclass(repr=False)
class Outbox:
    """Frames that one session still has to bring to one receiver."""

    session: str
    sender: str
    receiver: str
    limits: Limits
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    _sequence: int = 0
    _kept: deque[pb.Frame] = field(default_factory=deque)
    _kept_bytes: int = 0
    _has_ended: bool = False

    def put(self, step: str, data: bytes) -> None:
        """Add a message. Raise LimitExceeded or LocalProtocolError if nothing was added."""
        if self._has_ended:
            raise LocalProtocolError("nothing can be sent after the end", session=self.session, step=step)
        if len(data) > self.limits.max_typed_message_bytes:
            raise LimitExceeded(peer=self.receiver, step=step, limit=f"a message of {len(data)} bytes")
        size = self.limits.chunk_bytes
        for start in range(0, max(len(data), 1), size):
            chunk = pb.Chunk(data=data[start : start + size], last=start + size >= len(data))
            self._append(self._frame(step, chunk=chunk))

    def end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._append(self._frame("", end=pb.End()))

    def abort(self, code: int, step: str, lost: str = "") -> None:
        """Add the last frame; a second abort adds nothing."""
        if not self._has_ended:
            self._has_ended = True
            self._append(self._frame(step, abort=pb.Abort(code=code, step=step, lost=lost)))  # type: ignore[arg-type]

    def hello(self) -> pb.Frame:
        return pb.Frame(session=self.session, sender=self.sender, hello=pb.Hello(outbox=self.name))

    def acknowledge(self, received: int) -> None:
        """Drop acknowledged frames. Raise MalformedMessage for a number that goes back, or was never sent."""
        if received < self._first_kept - 1:
            self._refuse("goes back: the receiver has lost what it had received")
        if received > self._sequence:
            self._refuse("acknowledges what was never sent")
        while self._kept and self._kept[0].sequence <= received:
            self._kept_bytes -= _size(self._kept.popleft())

    def frame_after(self, sequence: int) -> pb.Frame | None:
        """Return the next frame to send, for a stream that has sent everything up to `sequence`."""
        index = max(sequence + 1 - self._first_kept, 0)
        return self._kept[index] if index < len(self._kept) else None

    @property
    def acknowledged(self) -> int:
        return self._first_kept - 1

    @property
    def is_full(self) -> bool:
        return self._kept_bytes > self.limits.window_bytes

    @property
    def is_empty(self) -> bool:
        return not self._kept

    @property
    def _first_kept(self) -> int:
        return self._kept[0].sequence if self._kept else self._sequence + 1

    def _frame(self, step: str, **body: pb.Chunk | pb.Abort | pb.End) -> pb.Frame:
        self._sequence += 1
        return pb.Frame(
            session=self.session,
            sender=self.sender,
            sequence=self._sequence,
            step=step,
            **body,  # type: ignore[arg-type]
        )

    def _append(self, frame: pb.Frame) -> None:
        self._kept.append(frame)
        self._kept_bytes += _size(frame)

    def _refuse(self, reason: str) -> None:
        raise MalformedMessage(culprit=self.receiver, field="received", reason=reason, session=self.session)


def _size(frame: pb.Frame) -> int:
    return len(frame.chunk.data) + ENTRY_BYTES


@dataclass(frozen=True, slots=True, repr=False)
class Arrived:
    """A whole message, or the sender's report that it has ended the session."""

    step: str
    data: bytes = b""
    abort_code: int | None = None
    abort_step: str = ""
    abort_lost: str = ""

    @property
    def size(self) -> int:
        return len(self.data) + ENTRY_BYTES


class Account:
    """Size of the messages that one peer makes this process hold, over all sessions."""

    def __init__(self, peer: str, most: int) -> None:
        self._peer, self._most, self.held = peer, most, 0

    def take(self, size: int, step: str) -> None:
        """Add a size. Raise LimitExceeded if nothing was added."""
        if self.held + size > self._most:
            whose = f"{self._most} bytes of unread messages of {self._peer}, over all sessions"
            raise LimitExceeded(peer=self._peer, step=step, limit=whose)
        self.held += size

    def free(self, size: int) -> None:
        self.held -= size


@dataclass(repr=False)
class Inbox:
    """Messages that one session has received from one sender."""

    session: str
    sender: str
    limits: Limits
    account: Account  # account of the sender
    check_name: Callable[[str], None] = lambda _name: None  # check of a message's name; raises if it may not come
    received: int = 0  # frames on the open stream
    acknowledged: int = 0  # number of the last frame of the last whole message
    abort: Arrived | None = None  # known at once, before the messages that still wait
    has_ended: bool = False  # True if the sender ended without an error
    _outbox: str = ""  # name of the sender's outbox
    _step: str = ""
    _part: bytearray = field(default_factory=bytearray)
    _arrived: deque[Arrived] = field(default_factory=deque)
    _arrived_bytes: int = 0

    def accept(self, frame: pb.Frame) -> None:
        """Accept a frame.

        Raises:
            MalformedMessage: a gap, another session, sender or outbox, an empty frame, or a step that is missing or
                changes within a message.
            UnexpectedStep: a message that may not come.
            LimitExceeded: a chunk or a message larger than the limit, or the sender's account is full.
        """
        self._require(frame.session == self.session, "session", "is another session's")
        self._require(frame.sender == self.sender, "sender", "is not the certificate's name")
        body = frame.WhichOneof("body")
        if body == "hello":
            self._accept_hello(frame.hello.outbox)
            return
        self._require(body is not None, "body", "is missing")
        self._require(self._outbox != "", "body", "comes before a Hello")
        if 1 <= frame.sequence <= self.received:
            return  # a repeat after a cut
        self._require(frame.sequence == self.received + 1, "sequence", "leaves a gap")
        self._require(self.abort is None, "body", "comes after an abort")
        self._require(not self.has_ended, "body", "comes after the end")
        if body == "abort":
            self.drop_part()  # first: the report that no more will come needs space
            self.account.take(ENTRY_BYTES, "")
            step, lost = (printable(text[:MAX_STEP_CHARS]) for text in (frame.abort.step, frame.abort.lost))
            self.abort = Arrived("", abort_code=frame.abort.code, abort_step=step, abort_lost=lost)
            self._add(self.abort)
        elif body == "end":
            self._require(not self._part, "body", "ends within a message")
            self.has_ended = True
        else:
            self._add_chunk(frame.step, frame.chunk)
        self.received = frame.sequence
        if not self._part:
            self.acknowledged = frame.sequence

    def _accept_hello(self, outbox: str) -> None:
        self._require(0 < len(outbox) <= MAX_STEP_CHARS, "outbox", "has a wrong length")
        self._require(self._outbox in ("", outbox), "outbox", "is another one: the sender has lost what it sent before")
        self._outbox = outbox

    def _add_chunk(self, step: str, chunk: pb.Chunk) -> None:
        self._require(_is_name(step), "step", "is not a message's name")
        self.check_name(step)
        self._require(not self._part or step == self._step, "step", "changes within a message")
        self._require(chunk.last or len(chunk.data) > 0, "chunk", "is empty")
        if len(chunk.data) > self.limits.chunk_bytes:
            raise LimitExceeded(peer=self.sender, step=step, limit="size of a chunk")
        if len(self._part) + len(chunk.data) > self.limits.max_typed_message_bytes:
            raise LimitExceeded(peer=self.sender, step=step, limit="size of a message")
        self.account.take(len(chunk.data) + (ENTRY_BYTES if chunk.last else 0), step)
        self._step = step
        self._part += chunk.data
        if chunk.last:
            self._add(Arrived(step, bytes(self._part)))
            self._part = bytearray()

    def _add(self, arrived: Arrived) -> None:
        """Add a message whose size is counted already."""
        self._arrived.append(arrived)
        self._arrived_bytes += arrived.size

    def pop(self) -> Arrived | None:
        if not self._arrived:
            return None
        arrived = self._arrived.popleft()
        self._arrived_bytes -= arrived.size
        self.account.free(arrived.size)
        return arrived

    def drop_part(self) -> None:
        """Drop the part of a message whose stream has ended: the sender brings the message again."""
        self.account.free(len(self._part))
        self._part = bytearray()
        self.received = self.acknowledged

    def clear(self) -> None:
        """Drop everything that nobody will read any more."""
        while self.pop() is not None:
            pass
        self.drop_part()

    @property
    def unread(self) -> str:
        """Name of a message that came, perhaps not yet whole, and was not read; empty if there is no such message."""
        names = [arrived.step for arrived in self._arrived if arrived.abort_code is None]
        return names[0] if names else self._step if self._part else ""

    @property
    def is_empty(self) -> bool:
        return not self._arrived

    @property
    def held_bytes(self) -> int:
        return self._arrived_bytes + len(self._part)

    @property
    def is_full(self) -> bool:
        """True if the inbox takes no more. The next message to be read always comes whole, in any size."""
        return not self.is_empty and self.held_bytes > self.limits.window_bytes

    def _require(self, condition: bool, name: str, reason: str) -> None:
        if not condition:
            raise MalformedMessage(culprit=self.sender, field=name, reason=reason, session=self.session)


def _is_name(step: str) -> bool:
    return len(step) <= MAX_STEP_CHARS and step.isascii() and step.isidentifier()
