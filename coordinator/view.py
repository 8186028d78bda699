"""How a coordinator shows one system: its pre-flight, its report, its entries of a ledger."""

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
    """
    Args:
        leaks: who learns what, from the job alone.
        check_rows: what the data say, of the parties whose files are here and whose settings go with the job.
        write: the report of a job that is done, from its session, into a directory; and which parties ran here.
        figures_of: the figures of its report.json, as a dataclass.
        report: what a report of it adds to all others, where parties have pages of their own.
        released: what an entry of a ledger paid for, in words; empty where another system wrote it.
        given_up: by flag of a job that does without a defence, what that gives up.
        plan: what an epsilon would buy, where that can be told before it is spent.
        growth: how many times as long a training takes on so many times the rows; None where no code counts it.
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
