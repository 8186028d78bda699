"""A protocol's table as data: an arrow for each message class that goes from one role to another.

What no table of a session lists never leaves a party: channels look (class, sender's role, receiver's role) up before
they send, and refuse what comes without a line of its own.
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

CIPHERTEXTS = "nothing: ciphertexts"  # what anybody but the key node reads of them


class HowOften(StrEnum):
    """How many messages of an arrow one sender brings to one receiver, where it brings any, in a run of the protocol.

    Not every pair of the arrow's roles has any: a chain's party sends to the next one alone.
    """

    ONCE = "once"
    EPOCH = "each epoch"
    BATCH = "each batch of each epoch"
    CHUNKS = "in chunks"  # one or more: as many as the sizes of what is sent ask for
    ROUNDS = "each round"  # of openings, or of checks: as many as what is computed asks for

    def messages(self, *, epochs: int, batches: int) -> int | None:
        """The number, for a training of so many epochs with so many batches each; None where it follows from sizes."""
        return {
            HowOften.ONCE: 1,
            HowOften.EPOCH: epochs,
            HowOften.BATCH: epochs * batches,
        }.get(self)


ONCE, EPOCH, BATCH, CHUNKS, ROUNDS = HowOften


@dataclass(frozen=True)
class Arrow:
    """
    Attributes:
        step: as the protocol's docstring numbers it.
        opened: what the receiver reads of the message.
        only_with: what must be, or else no such message is sent; empty: nothing.
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
        """Return their steps, as "align 3, 4"; a protocol whose messages are all of one step goes by its name."""
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
    """One party's side of a session: what it may send to whom, and what may come from whom.

    Args:
        role: its own.
        roles: of the others, by name.
    """

    role: str
    roles: Mapping[str, str]
    listed: Listed
    session: str = ""

    def check_sent(self, message: object, to: str) -> None:
        """Raise LocalProtocolError: no table has the message, so it must not leave."""
        self._require(type(message), self.role, self._role_of(to))

    def check_asked(self, kind: type, sender: str) -> None:
        """Raise LocalProtocolError: this party waits for what no table lets it be sent."""
        self._require(kind, self._role_of(sender), self.role)

    def arrivals_from(self, sender: str) -> Callable[[str], None]:
        """Take the name of each message that the sender has sent; raises UnexpectedStep where no table lists it."""
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
