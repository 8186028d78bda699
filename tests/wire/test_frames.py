"""Frames without a network: each message arrives once and in order, even if frames are cut, repeated or doubled."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from blindfit.algorithms.errors import BlindfitError, LimitExceeded, LocalProtocolError, MalformedMessage
from blindfit.parties.wire.frames import ENTRY_BYTES, MAX_STEP_CHARS, Account, Inbox, Outbox
from blindfit.parties.wire.limits import Limits
from blindfit.protos import exchange_pb2 as pb
from tests.each_case import each_case

LIMITS = Limits(max_message_bytes=64, chunk_bytes=8, window_bytes=2000, max_typed_message_bytes=100)


def new_inbox(account: Account | None = None) -> Inbox:
    return Inbox("s", "p0", LIMITS, account or Account("p0", LIMITS.peer_bytes))


class Exchange(RuleBasedStateMachine):
    """A network of frames and acknowledgements that come late, come twice (after a cut), or never come."""

    @initialize()
    def begin(self) -> None:
        self.outbox, self.inbox = Outbox("s", "p0", "p1", LIMITS), new_inbox()
        self.put: list[bytes] = []
        self.got: list[bytes] = []
        self.open = False
        self.connect()

    def connect(self) -> None:
        self.inbox.drop_part()  # with its stream
        self.inbox.accept(self.outbox.hello())
        self.outbox.acknowledge(self.inbox.acknowledged)
        self.sent = self.inbox.acknowledged
        self.forth: list[pb.Frame] = []
        self.back: list[int] = []

    @rule(data=st.binary(max_size=40))
    def send(self, data: bytes) -> None:
        self.outbox.put("Letter", data)
        self.put.append(data)

    @rule(n=st.integers(1, 6))
    def write(self, n: int) -> None:
        for _ in range(n):
            if (frame := self.outbox.frame_after(self.sent)) is not None:
                assert frame.sequence == self.sent + 1
                self.forth.append(frame)
                self.sent = frame.sequence

    @rule(n=st.integers(1, 6), twice=st.booleans())
    def arrive(self, n: int, twice: bool) -> None:
        for _ in range(min(n, len(self.forth))):
            frame = self.forth.pop(0)
            for _ in range(1 + twice):
                self.inbox.accept(frame)
                self.back.append(self.inbox.acknowledged)

    @rule(n=st.integers(1, 6))
    def acknowledge(self, n: int) -> None:
        for _ in range(min(n, len(self.back))):
            self.outbox.acknowledge(self.back.pop(0))

    @rule()
    def cut(self) -> None:
        self.connect()

    @rule()
    def receive(self) -> None:
        if (arrived := self.inbox.pop()) is not None:
            assert arrived.step == "Letter"
            self.got.append(arrived.data)

    @precondition(lambda self: self.put)
    @rule()
    def deliver_the_rest(self) -> None:
        while (frame := self.outbox.frame_after(self.sent)) is not None:
            self.forth.append(frame)
            self.sent = frame.sequence
        self.arrive(len(self.forth), twice=False)
        self.acknowledge(len(self.back))
        while not self.inbox.is_empty:
            self.receive()
        assert self.got == self.put
        assert self.outbox.is_empty

    @invariant()
    def in_order_and_once(self) -> None:
        assert self.got == self.put[: len(self.got)]
        held = sum(a.size for a in self.inbox._arrived) + len(self.inbox._part)
        assert self.inbox.held_bytes == self.inbox.account.held == held
        assert self.outbox._kept_bytes == sum(len(f.chunk.data) + ENTRY_BYTES for f in self.outbox._kept)


Exchange.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSchedules = Exchange.TestCase


def test_a_message_that_was_cut_in_its_middle_is_sent_again_from_its_start() -> None:
    """The sender keeps no message that was acknowledged. A part of a message is never acknowledged: it ends with its
    stream.
    """
    outbox, inbox = Outbox("s", "p0", "p1", LIMITS), new_inbox()
    inbox.accept(outbox.hello())
    data = bytes(range(3 * LIMITS.chunk_bytes))
    outbox.put("Letter", data)
    first = outbox.frame_after(0)
    assert first is not None
    inbox.accept(first)
    assert inbox.acknowledged == 0
    outbox.acknowledge(inbox.acknowledged)
    inbox.drop_part()
    inbox.accept(outbox.hello())
    for sequence in range(3):
        frame = outbox.frame_after(sequence)
        assert frame is not None
        inbox.accept(frame)
    arrived = inbox.pop()
    assert arrived is not None
    assert arrived.data == data


def test_unread_is_a_message_or_a_part_of_one_and_no_farewell() -> None:
    outbox, inbox = Outbox("s", "p0", "p1", LIMITS), new_inbox()
    outbox.put("First", b"x" * (LIMITS.chunk_bytes + 1))
    outbox.abort(1, "")
    inbox.accept(outbox.hello())
    seen = [inbox.unread]
    for sequence in range(3):
        frame = outbox.frame_after(sequence)
        assert frame is not None
        inbox.accept(frame)
        seen.append(inbox.unread)
    inbox.pop()
    assert [*seen, inbox.unread] == ["", "First", "First", "First", ""]


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=100))
def test_a_message_in_chunks_is_whole_again(data: bytes) -> None:
    outbox, inbox = Outbox("s", "p0", "p1", LIMITS), new_inbox()
    outbox.put("Letter", data)
    inbox.accept(outbox.hello())
    frames = list(outbox._kept)
    assert all(len(frame.chunk.data) <= 8 for frame in frames)
    for frame in frames:
        assert inbox.pop() is None
        inbox.accept(frame)
    assert inbox.pop().data == data


# --- what is refused ------------------------------------------------------------------------------------


def frame(**fields: object) -> pb.Frame:
    plain = {"session": "s", "sender": "p0", "sequence": 2, "step": "Letter"}
    chunk = {} if {"abort", "hello", "end", "body"} & fields.keys() else {"chunk": pb.Chunk(data=b"x", last=True)}
    fields.pop("body", None)
    return pb.Frame(**{**plain, **chunk, **fields})


def begun() -> Inbox:
    """Return an inbox after one message and half of the next."""
    inbox = new_inbox()
    inbox.accept(pb.Frame(session="s", sender="p0", hello=pb.Hello(outbox="outbox")))
    inbox.accept(frame(sequence=1, chunk=pb.Chunk(data=b"x" * 8)))
    return inbox


@each_case(
    ("bad", "field", "reason"),
    [
        (frame(session="t"), "session", "is another session's"),
        (frame(sender="p1"), "sender", "is not the certificate's name"),
        (frame(sequence=3), "sequence", "leaves a gap"),
        (frame(sequence=0), "sequence", "leaves a gap"),
        (frame(sequence=2**64 - 1), "sequence", "leaves a gap"),
        (frame(body=None), "body", "is missing"),
        (frame(end=pb.End()), "body", "ends within a message"),
        (frame(step="Another"), "step", "changes within a message"),
        (frame(step=""), "step", "is not a message's name"),
        (frame(step="x" * 65), "step", "is not a message's name"),
        (frame(step="a\nb"), "step", "is not a message's name"),
        (frame(step="Lettér"), "step", "is not a message's name"),
        (frame(chunk=pb.Chunk()), "chunk", "is empty"),
        (frame(hello=pb.Hello(outbox="other")), "outbox", "is another one: the sender has lost what it sent before"),
        (frame(hello=pb.Hello()), "outbox", "has a wrong length"),
    ],
)
def test_a_frame_that_breaks_a_rule_is_refused_and_changes_nothing(bad: pb.Frame, field: str, reason: str) -> None:
    inbox = begun()
    with pytest.raises(MalformedMessage) as caught:
        inbox.accept(bad)
    error = caught.value
    assert (error.culprit, error.session, error.field, error.reason) == ("p0", "s", field, reason)
    inbox.accept(frame())
    assert (inbox.received, inbox.pop().data) == (2, b"x" * 9)


@pytest.mark.parametrize(
    ("size", "limit"), [(9, "size of a chunk"), (8, "size of a message")], ids=["chunk", "message"]
)
def test_a_frame_past_a_limit_is_refused(size: int, limit: str) -> None:
    inbox = begun()

    def accept_all() -> None:
        for sequence in range(2, 100):
            inbox.accept(frame(sequence=sequence, chunk=pb.Chunk(data=b"x" * size)))

    with pytest.raises(LimitExceeded) as caught:
        accept_all()
    assert (caught.value.peer, caught.value.step, caught.value.limit) == ("p0", "Letter", limit)
    assert inbox.received <= 12


def test_a_message_may_have_the_longest_name() -> None:
    inbox = new_inbox()
    inbox.accept(pb.Frame(session="s", sender="p0", hello=pb.Hello(outbox="outbox")))
    inbox.accept(frame(sequence=1, step="x" * MAX_STEP_CHARS))
    assert inbox.received == 1


def test_nothing_comes_before_a_hello_or_after_an_abort() -> None:
    inbox = new_inbox()
    with pytest.raises(MalformedMessage, match="body: comes before a Hello"):
        inbox.accept(frame(sequence=1))
    inbox = begun()
    inbox.accept(frame(abort=pb.Abort(code=4, step="x\x00y" * 50)))
    assert inbox.abort.abort_code == 4
    assert inbox.abort.abort_step == ("x\ufffdy" * 50)[: len(inbox.abort.abort_step)]
    inbox.accept(frame(abort=pb.Abort(code=4)))  # the same one, sent again
    with pytest.raises(MalformedMessage, match="body: comes after an abort"):
        inbox.accept(frame(sequence=3))


def test_nothing_comes_after_the_end() -> None:
    inbox = begun()
    inbox.accept(frame())
    inbox.accept(frame(sequence=3, end=pb.End()))
    assert inbox.has_ended
    inbox.accept(frame(sequence=3, end=pb.End()))  # the same one, sent again
    for more in ({}, {"end": pb.End()}, {"abort": pb.Abort(code=4)}):
        with pytest.raises(MalformedMessage, match="body: comes after the end"):
            inbox.accept(frame(sequence=4, **more))
    assert inbox.acknowledged == 3


def test_empty_messages_fill_the_inbox_and_the_outbox_too() -> None:
    inbox, outbox = new_inbox(), Outbox("s", "p0", "p1", LIMITS)
    inbox.accept(outbox.hello())
    for sequence in range(1, 10):
        outbox.put("Letter", b"")
        inbox.accept(frame(sequence=sequence, chunk=pb.Chunk(last=True)))
    assert inbox.is_full
    assert outbox.is_full
    outbox.acknowledge(9)
    while inbox.pop():
        pass
    assert not inbox.is_full
    assert not outbox.is_full


@each_case(("received", "reason"), [(1, "goes back"), (4, "never sent"), (2**64 - 1, "never sent")])
def test_an_acknowledgement_that_cannot_be_changes_nothing(received: int, reason: str) -> None:
    outbox = Outbox("s", "p0", "p1", LIMITS)
    for _ in range(3):
        outbox.put("Letter", b"x")
    outbox.acknowledge(2)
    with pytest.raises(MalformedMessage, match=reason) as caught:
        outbox.acknowledge(received)
    assert (caught.value.culprit, caught.value.field) == ("p1", "received")
    assert outbox.acknowledged == 2
    assert outbox.frame_after(0).sequence == 3


@pytest.mark.parametrize(
    "put",
    [
        lambda outbox: outbox.put("Letter", b"x" * 101),
        lambda outbox: (outbox.abort(1, ""), outbox.put("L", b"")),
        lambda outbox: (outbox.end(), outbox.abort(1, ""), outbox.put("L", b"")),
    ],
)
def test_what_may_not_leave_is_not_put(put: Callable[[Outbox], object]) -> None:
    outbox = Outbox("s", "p0", "p1", LIMITS)
    with pytest.raises((LimitExceeded, LocalProtocolError)) as caught:
        put(outbox)
    assert isinstance(caught.value, BlindfitError)
    assert [f.WhichOneof("body") for f in outbox._kept] in ([], ["abort"], ["end"])
