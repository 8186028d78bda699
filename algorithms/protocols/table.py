"""A protocol's table as data: an arrow for each message class that goes from one role to another.

A message that no table of a session lists never leaves a party: channels look (class, sender's role, receiver's role)
up before they send, and refuse a message without a line in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from blindfit.algorithms.errors import LocalProtocolError, UnexpectedStep

Roles = tuple[str, ...]
Listed = frozenset[tuple[type, str, str]]  # message class, sender's role, receiver's role

ACTIVE: Roles = ("active",)
PASSIVE: Roles = ("passive",)
MEASUREMENT: Roles = ("measurement",)
KEY: Roles = ("key-node",)
DATA = ACTIVE + PASSIVE
VERTICAL = DATA + KEY
ALL = VERTICAL + MEASUREMENT

CIPHERTEXTS = "nothing: ciphertexts"  # all that parties other than the key node can read in them


class HowOften(StrEnum):
    """Number of messages of an arrow that one sender sends to one receiver in a run of the protocol.

    Not every pair of the arrow's roles exchanges messages: a chain's party sends only to the next one.
    """

    ONCE = "once"
    EPOCH = "each epoch"
    BATCH = "each batch of each epoch"
    CHUNKS = "in chunks"  # one or more: the number follows from the sizes of the content
    ROUNDS = "each round"  # of openings, or of checks: the number follows from the computation

    def messages(self, *, epochs: int, batches: int) -> int | None:
        """Return the number for a training of so many epochs and batches; None if it follows from sizes."""
        return {
            HowOften.ONCE: 1,
            HowOften.EPOCH: epochs,
            HowOften.BATCH: epochs * batches,
        }.get(self)


ONCE, EPOCH, BATCH, CHUNKS, ROUNDS = HowOften


@dataclass(frozen=True)
class Arrow:
    """A message class that goes from one role to another.

    Attributes:
        step: number of the step in the protocol's docstring.
        opened: facts that the receiver reads from the message.
        only_with: condition under which such messages are sent; empty: always.
    """

    step: str
    senders: Roles
    receivers: Roles
    message: type
    how_often: HowOften
    opened: str
    only_with: str = ""


@dataclass(frozen=True, init=False)
class Table:
    """Every message of a protocol, in the order of its steps."""

    name: str
    arrows: tuple[Arrow, ...]

    def __init__(self, name: str, *arrows: Arrow) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "arrows", arrows)

    def label(self, arrows: Iterable[Arrow]) -> str:
        """Return their steps, such as "align 3, 4"; only the protocol's name if all its messages are of one step."""
        if len({arrow.step for arrow in self.arrows}) == 1:
            return self.name
        return f"{self.name} {', '.join(dict.fromkeys(arrow.step for arrow in arrows))}"


def list_arrows(tables: Iterable[Table]) -> Listed:
    return frozenset(
        (arrow.message, sender, receiver)
        for table in tables
        for arrow in table.arrows
        for sender in arrow.senders
        for receiver in arrow.receivers
    )


@dataclass(frozen=True)
class Gate:
    """One party's side of a session: the messages that it may send and receive, by party.

    Args:
        role: the party's own role.
        roles: name of another party -> its role.
    """

    role: str
    roles: Mapping[str, str]
    listed: Listed
    session: str = ""

    def check_sent(self, message: object, to: str) -> None:
        """Raise LocalProtocolError if no table has the message, which must then not leave."""
        self._require(type(message), self.role, self._role_of(to))

    def check_asked(self, kind: type, sender: str) -> None:
        """Raise LocalProtocolError if this party waits for a message that no table lets the sender send."""
        self._require(kind, self._role_of(sender), self.role)

    def arrivals_from(self, sender: str) -> Callable[[str], None]:
        """Return a check of each message name of a sender; it raises UnexpectedStep if no table lists the name."""
        ends = (self._role_of(sender), self.role)
        names = frozenset(kind.__name__ for kind, *roles in self.listed if tuple(roles) == ends)

        def check(name: str) -> None:
            if name not in names:
                expected = "a message of the protocol's table"
                raise UnexpectedStep(culprit=sender, expected=expected, got=name, session=self.session, step=name)

        return check

    def _require(self, kind: type, sender: str, receiver: str) -> None:
        if (kind, sender, receiver) not in self.listed:
            raise LocalProtocolError(
                f"{kind.__name__} does not go from a party that is {sender} to one that is {receiver}: "
                "no table of this session lists it",
                session=self.session,
                step=kind.__name__,
            )

    def _role_of(self, party: str) -> str:
        if party not in self.roles:
            raise LocalProtocolError(f"{party} is not in this session", session=self.session)
        return self.roles[party]
