"""The table of systems, as a coordinator shows them: pre-flight, report, ledger. Each is one entry.

An entry is imported when a job of its system is met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from blindfit.parties.job.parameters import JobParameters

if TYPE_CHECKING:
    from pathlib import Path

    from blindfit.algorithms.privacy.ledger import LedgerEntry
    from blindfit.coordinator.job import Job
    from blindfit.coordinator.plan.asked import Asked, Plan
    from blindfit.coordinator.preflight.findings import Finding
    from blindfit.coordinator.preflight.parties import PartyHere
    from blindfit.coordinator.report.kind import Kind, Written
    from blindfit.coordinator.session import JobSession
    from blindfit.parties.store.answers import StoredLabels

J = TypeVar("J", bound=JobParameters)


Planner = Callable[["Job[J]", "Path", "PartyHere", "Asked", Callable[[int, int], None]], "Plan"]


def _not_its_own(_entry: LedgerEntry, _labels: StoredLabels | None) -> str:
    return ""


@dataclass(frozen=True)
class View(Generic[J]):
    """
    Args:
        leaks: who learns what, from the job alone.
        check_rows: what the data say, of the parties whose files are here and whose settings go with the job.
        write: the report of a job that is done, from its session, into a directory; and which parties ran here.
        report: what a report of it adds to all others, where parties have pages of their own.
        released: what an entry of a ledger paid for, in words; empty where another system wrote it.
        given_up: by flag of a job that does without a defence, what that gives up.
        plan: what an epsilon would buy, where that can be told before it is spent.
    """

    leaks: Callable[[Job[J]], Iterable[Finding]]
    check_rows: Callable[[Job[J], Sequence[PartyHere]], Iterable[Finding]]
    write: Callable[[JobSession, Path, list[str]], Written]
    report: Kind[Any] | None = None
    released: Callable[[LedgerEntry, StoredLabels | None], str] = _not_its_own
    given_up: Mapping[str, str] = field(default_factory=dict)
    plan: Planner[J] | None = None


def _walr() -> View[Any]:
    from blindfit.coordinator import report
    from blindfit.coordinator.plan.walr import plan
    from blindfit.coordinator.preflight import walr as preflight
    from blindfit.coordinator.report.walr import KIND
    from blindfit.coordinator.report.walr.hidden_rows import GIVEN_UP
    from blindfit.coordinator.report.walr.statement import released

    return View(preflight.leaks, preflight.check_rows, report.write, KIND, released, GIVEN_UP, plan)


def _label_dp() -> View[Any]:
    from blindfit.coordinator import report
    from blindfit.coordinator.plan.label_dp import plan
    from blindfit.coordinator.preflight import label_dp as preflight
    from blindfit.coordinator.report.label_regression import KIND
    from blindfit.coordinator.report.label_regression.statement import released

    return View(preflight.leaks, preflight.check_rows, report.write, KIND, released, plan=plan)


def _dp_lr() -> View[Any]:
    from blindfit.coordinator import report
    from blindfit.coordinator.preflight import dp_lr as preflight
    from blindfit.coordinator.report.dp_lr import KIND
    from blindfit.coordinator.report.dp_lr.statement import released

    return View(preflight.leaks, preflight.check_rows, report.write, KIND, released)


def _taylor() -> View[Any]:
    from blindfit.coordinator import report
    from blindfit.coordinator.preflight.taylor import checks as preflight
    from blindfit.coordinator.report.vertical import KIND
    from blindfit.coordinator.report.vertical.defences import GIVEN_UP
    from blindfit.coordinator.report.vertical.statement import released

    return View(preflight.leaks, preflight.check_rows, report.write, KIND, released, GIVEN_UP)


def _falcon() -> View[Any]:
    from blindfit.coordinator import report
    from blindfit.coordinator.preflight.falcon import checks as preflight
    from blindfit.coordinator.report.falcon import KIND
    from blindfit.coordinator.report.falcon.defences import GIVEN_UP

    return View(preflight.leaks, preflight.check_rows, report.write, KIND, given_up=GIVEN_UP)


def _predict() -> View[Any]:
    from blindfit.coordinator import report
    from blindfit.coordinator.preflight import predict as preflight
    from blindfit.coordinator.report.prediction import KIND

    return View(preflight.leaks, preflight.check_rows, report.write, KIND)


def _evaluate() -> View[Any]:
    from blindfit.coordinator import evaluate
    from blindfit.coordinator.preflight import evaluate as preflight
    from blindfit.coordinator.report.walr.hidden_rows import GIVEN_UP

    return View(preflight.leaks, preflight.check_rows, evaluate.write, given_up=GIVEN_UP)


VIEWS: dict[str, Callable[[], View[Any]]] = {
    "walr": _walr,
    "label-dp": _label_dp,
    "dp-lr": _dp_lr,
    "taylor": _taylor,
    "falcon": _falcon,
    "predict": _predict,
    "evaluate": _evaluate,
}


@cache
def view(protocol: str) -> View[Any]:
    """Takes a name of VIEWS."""
    return VIEWS[protocol]()
