"""The steps of a release in which the ways to trust measurement servers differ. Each way is a module here.

A way has two halves. `AtServer` is made for one call at a measurement server, `AtActiveParty` for one release at the
active party. They never share an object, so each has its own class. This module holds the default of each step: one
server reads the rows and returns a noisy sum of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, NoisySum, SentRows, Tally
from blindfit.parties.measurement.call import Call
from blindfit.parties.measurement.calls import Aggregate
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session


class AtServer:
    """One call at a measurement server. The methods stand in the order of their use."""

    shows_unknown_rows: ClassVar[bool] = True  # True if an answer may contain the number of unknown rows

    def __init__(self, call: Call) -> None:
        self.call, self.request = call, call.request

    def check(self) -> None:
        """Raise PolicyRefused if the request does not fit the dataset or the session."""

    def can_repeat(self) -> bool:
        """Return True if the stored answer of this request suffices; else the rows must come again."""
        return True

    async def before_rows(self, answer: NoisySum | None) -> None:
        """Raise another party's refusal of the request.

        Args:
            answer: the stored answer, if there is one.
        """

    def tally(self) -> Tally:
        return Tally(self.request, self.call.keep_bits)

    async def before_release(self, tally: Tally) -> None:
        """Raise another party's refusal of the rows, which have all come."""

    def keep(self, tally: Tally, answer: NoisySum) -> None:
        """Keep what the session needs after its release."""


class AtActiveParty:
    """One release at the active party. The methods stand in the order of their use."""

    def __init__(self, session: Session[Any], servers: Sequence[str]) -> None:
        self.session, self.servers = session, tuple(servers)

    @classmethod
    async def open(cls, party: Party, session: Session[Any], servers: Sequence[str]) -> AtActiveParty:  # noqa: ARG003
        return cls(session, servers)

    def open_request(self, request: AggregateOpen) -> AggregateOpen:
        """Return the request of this way. Raise RangeError if the sum could wrap around to another value."""
        return request

    async def begin(self, rows: ConsumerRows, request: AggregateOpen) -> None:
        """Do the work that comes before the rows."""

    def hide(self, rows: ConsumerRows, request: AggregateOpen) -> SentRows:  # noqa: ARG002
        return rows

    async def prove(self) -> None:
        """Prove what the servers cannot check themselves, after all rows were sent."""

    def open_answer(self, aggregate: Aggregate, request: AggregateOpen, *, server: str) -> Aggregate:  # noqa: ARG002
        """Check one server's answer and decrypt it. Raise MalformedMessage if no honest server sends such an answer."""
        return aggregate

    async def end(self) -> None:
        """Inform a party that waits for the answers that all of them have come."""

    def add_up(self, aggregates: Sequence[Aggregate], request: AggregateOpen) -> Aggregate:  # noqa: ARG002
        """Return the answer of all servers together."""
        return aggregates[0]

    def report(self, request: AggregateOpen) -> dict[str, Any]:  # noqa: ARG002
        """Return the entries that only this way adds to the report's privacy section."""
        return {}
