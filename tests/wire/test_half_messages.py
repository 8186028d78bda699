"""Half a message's bytes count as long as they are held, and no longer, however its sender or its session ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import LimitExceeded, MalformedMessage
from blindfit.parties.wire.frames import ENTRY_BYTES, Account, Inbox
from blindfit.parties.wire.limits import Limits
from blindfit.protos import exchange_pb2 as pb
from tests.each_case import each_case

LIMITS = Limits(max_message_bytes=64, chunk_bytes=8, window_bytes=2000, max_typed_message_bytes=100, peer_bytes=2000)
STEPS = ("part", "whole", "abort", "end", "cut", "pop", "clear")


class Sender:
    """One session's frames, and what this party holds of them."""

    def __init__(self, session: str, account: Account) -> None:
        self.inbox = Inbox(session, "p0", LIMITS, account)
        self.cut()

    def cut(self) -> None:
        """End the stream, and begin another one."""
        self.inbox.drop_part()
        self.inbox.accept(pb.Frame(session=self.inbox.session, sender="p0", hello=pb.Hello(outbox="x")))

    def send(self, step: str = "Parcel", **body: Any) -> None:
        inbox = self.inbox
        frame = pb.Frame(session=inbox.session, sender="p0", sequence=inbox.received + 1, step=step, **body)
        inbox.accept(frame)

    def part(self, size: int = 8) -> None:
        self.send(chunk=pb.Chunk(data=b"x" * size))

    def whole(self) -> None:
        self.send(chunk=pb.Chunk(data=b"x" * 3, last=True))

    def abort(self) -> None:
        self.send("", abort=pb.Abort(code=1))

    def end(self) -> None:
        self.send("", end=pb.End())

    def pop(self) -> None:
        self.inbox.pop()

    def clear(self) -> None:
        self.inbox.clear()


def held(sender: Sender) -> int:
    """Count by what the inbox has, not by what it has counted."""
    return sum(len(arrived.data) + ENTRY_BYTES for arrived in sender.inbox._arrived) + len(sender.inbox._part)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(STEPS)), max_size=40))
def test_the_account_holds_what_the_sessions_hold(history: list[tuple[int, str]]) -> None:
    account = Account("p0", LIMITS.peer_bytes)
    senders = [Sender(name, account) for name in ("a", "b")]
    for which, step in history:
        try:
            getattr(senders[which], step)()
        except (MalformedMessage, LimitExceeded):
            senders[which].cut()
        assert account.held == sum(held(sender) for sender in senders) == sum(s.inbox.held_bytes for s in senders)
    for sender in senders:
        sender.clear()
    assert account.held == 0


def test_an_abort_lets_go_of_half_a_message() -> None:
    account = Account("p0", LIMITS.peer_bytes)
    sender = Sender("a", account)
    sender.whole()
    for _ in range(3):
        sender.part()
    sender.abort()
    assert account.held == 3 + ENTRY_BYTES + ENTRY_BYTES
    assert (sender.inbox.unread, sender.inbox.acknowledged) == ("Parcel", 5)
    sender.pop()
    assert sender.inbox.unread == ""
    sender.pop()
    assert account.held == 0


def test_an_abort_arrives_though_half_a_message_has_filled_the_account() -> None:
    account = Account("p0", LIMITS.peer_bytes)
    account.take(LIMITS.peer_bytes - ENTRY_BYTES, "another session")
    sender = Sender("a", account)
    sender.part()
    sender.abort()
    assert sender.inbox.abort is not None
    assert account.held == LIMITS.peer_bytes


@each_case("ends", ["cut", "clear"])
def test_half_a_message_is_let_go_and_can_be_sent_again(ends: str) -> None:
    account = Account("p0", LIMITS.peer_bytes)
    sender = Sender("a", account)
    sender.part()
    getattr(sender, ends)()
    assert account.held == 0
    assert sender.inbox.received == sender.inbox.acknowledged == 0
    with pytest.raises(MalformedMessage, match="leaves a gap"):
        sender.inbox.accept(pb.Frame(session="a", sender="p0", sequence=2, step="Parcel", chunk=pb.Chunk(data=b"x")))
