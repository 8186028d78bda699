"""Frames of the exchange stream, without I/O: ordered, exactly once, chunked, resumable.

    sender                                   receiver
    Hello (session, sender)          ->
                                     <-      Ack(received = n)
    frames n+1, n+2 ...              ->      accepted if the next one, ignored if seen, refused after a gap
                                     <-      Ack(received = n+1) ...

After a cut the sender says Hello again. It keeps every frame until it is acknowledged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from algorithms.errors import LimitExceeded, MalformedMessage
from parties.limits import Limits
from protos import exchange_pb2 as pb


@dataclass(repr=False)
class Outbox:
    """What one session still has to bring to one receiver."""

    session: str
    sender: str
    receiver: str
    limits: Limits
    _sequence: int = 0
    _kept: deque[pb.Frame] = field(default_factory=deque)
    _kept_bytes: int = 0

    def put(self, step: str, data: bytes) -> None:
        if len(data) > self.limits.max_typed_message_bytes:
            raise LimitExceeded(peer=self.receiver, step=step, limit=f"a message of {len(data)} bytes")
        size = self.limits.chunk_bytes
        for start in range(0, max(len(data), 1), size):
            chunk = pb.Chunk(data=data[start : start + size], last=start + size >= len(data))
            self._append(self._frame(step, chunk=chunk))

    def abort(self, code: int, step: str) -> None:
        self._append(self._frame(step, abort=pb.Abort(code=code, step=step)))  # type: ignore[arg-type]

    def hello(self) -> pb.Frame:
        return pb.Frame(session=self.session, sender=self.sender, hello=pb.Hello())

    def acknowledge(self, received: int) -> None:
        """Raises MalformedMessage: an acknowledgement of what was never sent, or that goes back."""
        if not self.first_kept - 1 <= received <= self._sequence:
            raise MalformedMessage(
                culprit=self.receiver,
                field="received",
                reason="acknowledges what it cannot",
                session=self.session,
            )
        while self._kept and self._kept[0].sequence <= received:
            self._kept_bytes -= self._kept.popleft().ByteSize()

    def frames_after(self, sequence: int) -> Iterator[pb.Frame]:
        return (frame for frame in list(self._kept) if frame.sequence > sequence)

    @property
    def first_kept(self) -> int:
        return self._kept[0].sequence if self._kept else self._sequence + 1

    @property
    def is_full(self) -> bool:
        return self._kept_bytes > self.limits.window_bytes

    @property
    def is_empty(self) -> bool:
        return not self._kept

    def _frame(self, step: str, **body: pb.Chunk | pb.Abort) -> pb.Frame:
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
        self._kept_bytes += frame.ByteSize()


@dataclass(frozen=True, slots=True, repr=False)
class Arrived:
    """A whole message, or the sender's word that it has ended the session."""

    step: str
    data: bytes = b""
    abort_code: int | None = None
    abort_step: str = ""


@dataclass(repr=False)
class Inbox:
    """What one session has received from one sender."""

    session: str
    sender: str
    limits: Limits
    received: int = 0
    messages: int = 0
    total_bytes: int = 0
    buffered_bytes: int = 0
    _step: str = ""
    _parts: list[bytes] = field(default_factory=list)
    _parts_bytes: int = 0
    _arrived: deque[Arrived] = field(default_factory=deque)

    def accept(self, frame: pb.Frame) -> None:
        """Raises:
        MalformedMessage: a gap, another session or sender, an empty frame, a step that changes within a message.
        LimitExceeded: a chunk or a message larger than the limit.
        """
        self._require(frame.session == self.session, "session", "is another session's")
        self._require(frame.sender == self.sender, "sender", "is not the certificate's name")
        body = frame.WhichOneof("body")
        if body == "hello":
            return
        self._require(body is not None, "body", "is missing")
        if 1 <= frame.sequence <= self.received:
            return  # sent again after a cut
        self._require(frame.sequence == self.received + 1, "sequence", "leaves a gap")
        if body == "abort":
            self._arrived.append(
                Arrived(frame.step, abort_code=frame.abort.code, abort_step=frame.abort.step[:64])
            )
        else:
            self._add_chunk(frame.step, frame.chunk)
        self.received = frame.sequence

    def _add_chunk(self, step: str, chunk: pb.Chunk) -> None:
        self._require(len(chunk.data) <= self.limits.chunk_bytes, "chunk", "is larger than the limit")
        self._require(0 < len(step) <= 64, "step", "has a wrong length")
        self._require(not self._parts or step == self._step, "step", "changes within a message")
        if self._parts_bytes + len(chunk.data) > self.limits.max_typed_message_bytes:
            raise LimitExceeded(peer=self.sender, step=step[:64], limit="size of a message")
        self._step = step
        self._parts.append(chunk.data)
        self._parts_bytes += len(chunk.data)
        if chunk.last:
            self._arrived.append(Arrived(step, b"".join(self._parts)))
            self.messages += 1
            self.total_bytes += self._parts_bytes
            self.buffered_bytes += self._parts_bytes
            self._parts, self._parts_bytes = [], 0

    def pop(self) -> Arrived | None:
        if not self._arrived:
            return None
        arrived = self._arrived.popleft()
        self.buffered_bytes -= len(arrived.data)
        return arrived

    def peek(self) -> Arrived | None:
        return self._arrived[0] if self._arrived else None

    @property
    def is_full(self) -> bool:
        return self.buffered_bytes > self.limits.window_bytes

    def _require(self, condition: bool, name: str, reason: str) -> None:
        if not condition:
            raise MalformedMessage(culprit=self.sender, field=name, reason=reason, session=self.session)
