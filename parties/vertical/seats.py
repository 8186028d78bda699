"""Who is who in a vertical session."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.parties.sessions.sessions import Session


@dataclass(frozen=True, slots=True)
class Seats:
    """Who is who in a vertical session; the chain begins at the active party and goes on by name."""

    me: str
    chain: tuple[str, ...]
    key_node: str

    @classmethod
    def of(cls, session: Session) -> Seats:
        passives = sorted(m.name for m in session.members.values() if m.role == "passive")
        chain = (session.with_role("active").name, *passives)
        return cls(session.me.name, chain, session.with_role("key-node").name)

    @property
    def passives(self) -> tuple[str, ...]:
        return self.chain[1:]

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in (*self.chain, self.key_node) if name != self.me)
