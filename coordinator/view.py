"""The view of one system: its pre-flight, its report, its entries of a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from blindfit.parties.job.parameters import JobParameters

if TYPE_CHECKING:
    from pathlib import Path

    from blindfit.algorithms.privacy.ledger import LedgerEntry
    from blindfit.coordinator.job.job import Job
    from blindfit.coordinator.plan.asked import Asked, Plan
    from blindfit.coordinator.preflight.findings import Finding
    from blindfit.coordinator.preflight.parties import PartyHere
    from blindfit.coordinator.report.kind import Kind, Written
    from blindfit.coordinator.running.session import JobSession
    from blindfit.parties.store.answers import StoredLabels


J = TypeVar("J", bound=JobParameters)
Planner = Callable[["Job[J]", "PartyHere", "Asked", Callable[[int, int], None]], "Plan"]


def _not_its_own(_entry: LedgerEntry, _labels: StoredLabels | None) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class View(Generic[J]):
    """A system, as a coordinator shows it.

    Args:
        leaks: function that yields who learns what, from the job only.
        check_rows: function that yields findings about the data of the parties whose files are here and agree with the
            job.
        write: function that writes the report of a finished job from its session into a directory. It also receives
            the parties that ran here.
        figures_of: function that returns the figures of report.json, as a dataclass.
        report: part of the report that is special to this system; None if its report has no privacy statement.
        released: function that describes what a ledger's entry paid for; empty if another system wrote the entry.
        given_up: description of what a job gives up, by the flag that switches a defence off.
        plan: function that plans a job before epsilon is spent; None if the system has no plan.
        growth: function that returns the factor by which a training takes longer on so many times the rows; None if no
            code counts it.
    """

    leaks: Callable[[Job[J]], Iterable[Finding]]
    check_rows: Callable[[Job[J], Sequence[PartyHere]], Iterable[Finding]]
    write: Callable[[JobSession, Path, list[str]], Written]
    figures_of: Callable[[Mapping[str, Any]], Any]
    report: Kind[Any] | None = None
    released: Callable[[LedgerEntry, StoredLabels | None], str] = _not_its_own
    given_up: Mapping[str, str] = field(default_factory=dict)
    plan: Planner[J] | None = None
    growth: Callable[[Job[J], Sequence[PartyHere], int], float] | None = None
