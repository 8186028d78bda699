"""What a system is to a party process: its job, who takes part, and what each of them does.

Whoever reads a job needs the table of systems and not the rooms behind it, so nothing here imports them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from blindfit.parties.job.parameters import JobParameters

if TYPE_CHECKING:
    from blindfit.algorithms.messages import ParameterValue
    from blindfit.algorithms.protocols.table import Table
    from blindfit.algorithms.statistics.models import Model
    from blindfit.parties.sessions.party import Party
    from blindfit.parties.sessions.proposal import Member, Proposed
    from blindfit.parties.sessions.session import Session
    from blindfit.parties.settings import SystemPolicy

J = TypeVar("J", bound=JobParameters)
J_contra = TypeVar("J_contra", bound=JobParameters, contravariant=True)
Summary = dict[str, "ParameterValue"]
ModelReader = Callable[[Mapping[str, Any]], "Model"]
"""Function that makes a model of the content of a model.json, or raises DataError."""


class Seat(Protocol[J_contra]):
    """One role of one system at this party."""

    def check(self, job: J_contra, me: Member) -> None:
        """What can be refused before a session starts."""
        ...

    async def run(self, session: Session[J_contra]) -> Summary:
        """Return the party's part; returns what the coordinator may see of it."""
        ...


@runtime_checkable
class ChecksMembers(Protocol):
    """A seat that may refuse a job because of its other parties."""

    def check_members(self, asked: Proposed) -> None: ...


@dataclass(frozen=True)
class Role(Generic[J]):
    """How many parties of a job have it, and how one of them takes its seat."""

    at_least: int
    at_most: int
    open: Callable[[Party], Seat[J]]


@dataclass(frozen=True)
class System(Generic[J]):
    """
    Args:
        roles: in the order in which a mistake in a job file lists them.
        tables: what its parties send each other, but for the handshake.
        recorded: whether a party of a session keeps a transcript of that.
        models: how to read what its parties write as model.json, by the file's `format`.
            Both are functions: whoever reads a job imports no protocol and no model.
        options: by role, the options of a party file that a party with this role uses for this system, and not for
            every system.
        policy: the class of the table [policy.NAME], where NAME is the system's name.
        unsafe: flags by which its jobs do without a defence.
    """

    job: type[J]
    roles: Mapping[str, Role[J]]
    tables: Callable[[], Sequence[Table]] = tuple
    recorded: bool = True
    models: Callable[[], Mapping[str, ModelReader]] = dict
    options: Mapping[str, frozenset[str]] = field(default_factory=dict)
    policy: type[SystemPolicy] | None = None
    unsafe: frozenset[str] = frozenset()

    def wrong_roles(self, roles: Sequence[str]) -> str:
        """Return what a job needs, as in "exactly one active and 1 to 16 passive"; "" if these are as many of each."""
        wanted = self.roles.items()
        if set(roles) <= set(self.roles) and all(w.at_least <= roles.count(role) <= w.at_most for role, w in wanted):
            return ""
        return " and ".join(
            f"exactly one {role}" if w.at_least == w.at_most == 1 else f"{w.at_least} to {w.at_most} {role}"
            for role, w in wanted
        )
