"""Types of a party's report: the content of its report.json, and the fields that the coordinator may see.

Each system has such classes in its own package. A field of the type `Own[...]` stays at its party; every other field is
shown to the coordinator. The coordinator reads these fields with the same classes (coordinator/report/reading.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from functools import cache, reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from blindfit.algorithms.messages import ParameterValue
from blindfit.parties.sessions.session import Session

T = TypeVar("T")
STAYS = "stays at its party"
Own = Annotated[T | None, STAYS]  # None for everyone except the party

MOST_EPSILON = 700.0  # e^epsilon is still a number; a population has at most 100
LEAST_BUDGET = 1e-300  # above 0, so that the spent share of it is a number


@dataclass(frozen=True)
class Between:
    """The range of a number that another party reports."""

    least: float
    most: float = math.inf


Epsilon = Annotated[float, Between(0, MOST_EPSILON)]
Delta = Annotated[float, Between(0, 1)]
BudgetEpsilon = Annotated[float, Between(LEAST_BUDGET)]
SpentEpsilon = Annotated[float, Between(0)]


@dataclass(frozen=True)
class Entry:
    """A field of a table.

    Attributes:
        kind: type of the field, without None.
        default: default value; MISSING without one.
    """

    name: str
    kind: Any
    is_own: bool
    is_optional: bool
    default: Any
    range: Between | None


def _entries_of(table: type) -> tuple[Entry, ...]:
    """Return the fields of a dataclass, in order."""
    hints = get_type_hints(table, include_extras=True)
    return tuple(_entry(field.name, hints[field.name], field.default) for field in fields(table))


def _entry(name: str, kind: Any, default: Any) -> Entry:
    marks: list[Any] = []
    while get_origin(kind) is Annotated or NoneType in get_args(kind):
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
        else:
            kind, more = reduce(or_, (one for one in get_args(kind) if one is not NoneType)), [None]
        marks += more
    ranges = [mark for mark in marks if isinstance(mark, Between)]
    return Entry(name, kind, STAYS in marks, None in marks, default, ranges[0] if ranges else None)


entries_of: Callable[[type], tuple[Entry, ...]] = cache(_entries_of)


class Table:
    """A table of a report. Its subclasses are frozen dataclasses; a field with its default value is left out."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, for the party's own report.json."""
        return {entry.name: _content(value) for entry, value in self._list_held()}

    def fields_for_coordinator(self) -> dict[str, ParameterValue]:
        """Return the fields that may leave the party, by flat names: {"confusion.true_positives": 80}. Tables come
        last.
        """
        shown = [(entry.name, value) for entry, value in self._list_held() if not entry.is_own and value is not None]
        tables = {
            f"{name}.{inner}": figure
            for name, table in shown
            if isinstance(table, Table)
            for inner, figure in table.fields_for_coordinator().items()
        }
        return {name: _flat(value) for name, value in shown if not isinstance(value, Table)} | tables

    def _list_held(self) -> Iterator[tuple[Entry, Any]]:
        for entry in entries_of(type(self)):
            value = getattr(self, entry.name)
            if entry.default is MISSING or value != entry.default:
                yield entry, value


class Report(Table):
    """A whole report: its subclasses have a field for each table."""

    def content(self, session: Session[Any], **more: str) -> dict[str, Any]:
        """Return the content of report.json. `more` has fields of the party."""
        me, job = session.me, dict(session.parameters)
        return {"session": session.id, "party": me.name, "role": me.role, **more, "job": job, **self.to_dict()}

    def fields_for_coordinator(self) -> dict[str, ParameterValue]:
        """Return the fields that may leave the party, by flat names: {"rows.trained": 80}. Tables come first."""
        shown = super().fields_for_coordinator()
        return dict(sorted(shown.items(), key=lambda figure: "." not in figure[0]))


def _flat(value: Any) -> ParameterValue:
    """Return a value in the form of the wire, which has no list of numbers."""
    return tuple(map(str, value)) if isinstance(value, tuple) else value


def _content(value: Any) -> Any:
    if isinstance(value, Table):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value


def members_of(session: Session[Any]) -> dict[str, str]:
    """Return the role of every member, by its name."""
    return {name: member.role for name, member in session.members.items()}


# --- what several systems report -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TimingFigures(Table):
    """Durations of the parts of a party's work. Each system has some of them, in this order."""

    read_s: float | None = None
    align_s: float | None = None
    prepare_s: float | None = None
    put_in_s: float | None = None  # time to share inputs
    select_s: float | None = None
    train_s: float | None = None
    evaluate_s: float | None = None
    score_s: float | None = None
    aggregate_s: float | None = None
    release_s: float | None = None
    send_s: float | None = None
    fit_s: float | None = None
    wait_s: float | None = None


class FittedRows:
    """Facts of the rows of one party that a model was fitted to.

    Attributes:
        expected: public figures, if the number of rows is private.
        dropped_columns: names of dropped columns; None if only the party's own report has them.
    """

    trained: int
    held_out: int
    features: int
    dropped_columns: tuple[str, ...] | None
    expected: bool = False

    @property
    def about(self) -> str:
        return "about " if self.expected else ""


@dataclass(frozen=True, repr=False, kw_only=True)
class LabelPrivacy(Table):
    """Promise of a release under differential privacy, and the budget that pays for it."""

    unit: str
    neighbours: str
    epsilon: Epsilon
    delta: Delta
    population: str
    budget_epsilon: BudgetEpsilon
    budget_delta: Delta
    spent_epsilon: SpentEpsilon

    @property
    def left_epsilon(self) -> float:
        return max(0.0, self.budget_epsilon - self.spent_epsilon)

    @property
    def spent_share(self) -> float:
        return min(1.0, self.spent_epsilon / self.budget_epsilon)


@dataclass(frozen=True, repr=False, kw_only=True)
class MeasuredPrivacy(LabelPrivacy):
    """Promise of a measurement server's release."""

    max_rows_per_person: int  # 0 if the unit is a row
    mechanism: str
    releases: int
    snapshot: str
    receipt: Own[str]


@dataclass(frozen=True, repr=False, kw_only=True)
class SumPrivacy(MeasuredPrivacy):
    """Promise of a noisy sum.

    Attributes:
        epsilon_of_both: epsilon for the noise of two servers together, against only the active party.
    """

    sensitivity: float
    noise_std_of_sum: float
    norm_bound: float
    request_id: Own[str]  # a hash of the rows
    trust: str = "trusted"
    epsilon_of_both: Epsilon | None = None
