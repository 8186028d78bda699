"""Names and roles of the parties in a vertical session."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.algorithms.errors import PolicyRefused
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session


@dataclass(frozen=True, slots=True)
class Seats:
    """Names of the parties in a vertical session; the chain begins at the active party, and the others follow by
    name.
    """

    me: str
    chain: tuple[str, ...]
    key_node: str

    @classmethod
    def of(cls, session: Session[JobParameters]) -> Seats:
        passives = sorted(m.name for m in session.members.values() if m.role == "passive")
        chain = (session.with_role("active").name, *passives)
        return cls(session.me.name, chain, session.with_role("key-node").name)

    @property
    def passives(self) -> tuple[str, ...]:
        return self.chain[1:]

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in (*self.chain, self.key_node) if name != self.me)


def refuse_dataset(key_node: Member) -> None:
    """Raise PolicyRefused if a key node has a dataset: it holds no rows."""
    if key_node.dataset:
        raise PolicyRefused(party=key_node.name, field="dataset", reason="a key node has no dataset")
