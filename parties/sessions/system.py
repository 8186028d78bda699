"""A system, as a party process uses it: its job, its roles, and the work of each role.

Code that reads a job needs the table of systems, but not the systems' own modules, so nothing here imports them.
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
        """Refuse what can be refused before a session starts."""
        ...

    async def run(self, session: Session[J_contra]) -> Summary:
        """Do the party's part; return what the coordinator may see of it."""
        ...


@runtime_checkable
class ChecksMembers(Protocol):
    """A role that may refuse a job because of its other parties."""

    def check_members(self, asked: Proposed) -> None: ...


@dataclass(frozen=True)
class Role(Generic[J]):
    """Number of parties of a job that have a role, and the function that makes a party's part in it."""

    at_least: int
    at_most: int
    open: Callable[[Party], Seat[J]]


@dataclass(frozen=True)
class System(Generic[J]):
    """One system.

    Args:
        roles: roles, in the order in which an error in a job file lists them.
        tables: messages that its parties send each other, except the handshake.
        recorded: True if a party of a session keeps a transcript of these messages.
        models: function that returns a reader for the parties' model.json, by the file's `format`. `tables` is a
            function too, so that code that reads a job imports no protocol and no model.
        options: options of a party file that only this system uses, by role.
        policy: class of the table [policy.NAME], where NAME is the system's name.
        unsafe: flags by which its jobs can omit a defence.
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
        """Return what a job needs, such as "exactly one active and 1 to 16 passive"; "" if the roles are right."""
        wanted = self.roles.items()
        if set(roles) <= set(self.roles) and all(w.at_least <= roles.count(role) <= w.at_most for role, w in wanted):
            return ""
        return " and ".join(
            f"exactly one {role}" if w.at_least == w.at_most == 1 else f"{w.at_least} to {w.at_most} {role}"
            for role, w in wanted
        )
