"""A party's own account of its part of a job, checked and typed: it came from another process, or from a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeVar

from algorithms.errors import DataError

MAX_TEXT_CHARS = 300


@dataclass(frozen=True)
class RowFigures:
    trained: int
    held_out: int
    clipped: int
    not_counted: int
    features: int
    dropped_columns: tuple[str, ...] = ()

    @property
    def sent(self) -> int:
        return self.trained + self.not_counted


@dataclass(frozen=True)
class PrivacyFigures:
    unit: str
    neighbours: str
    max_rows_per_person: int  # 0: the unit is a row
    epsilon: float
    delta: float
    mechanism: str
    sensitivity: float
    noise_std_of_sum: float
    noise_std_of_mean: float
    norm_bound: float
    population: str
    budget_epsilon: float
    budget_delta: float
    spent_epsilon: float
    releases: int

    @property
    def left_epsilon(self) -> float:
        return max(0.0, self.budget_epsilon - self.spent_epsilon)


@dataclass(frozen=True)
class FitFigures:
    solver: str
    iterations: int
    converged: bool
    reason: str
    gradient_norm: float
    l2: float
    mu: str
    feasible: bool | None = None  # None: neither was proved
    feasibility: str = ""


@dataclass(frozen=True)
class TimingFigures:
    prepare_s: float | None = None
    aggregate_s: float | None = None
    fit_s: float | None = None


@dataclass(frozen=True)
class ProcessFigures:
    peak_memory_mib: float | None = None
    bytes_sent: int | None = None
    dataset_rows: int | None = None


@dataclass(frozen=True)
class Figures:
    """Everything that the report says about a fit, and who it is about."""

    active: str
    server: str
    rows: RowFigures
    privacy: PrivacyFigures
    fit: FitFigures
    timing: TimingFigures


F = TypeVar("F")


def figures_of(report: Mapping[str, Any]) -> Figures:
    """Raises:
    DataError: names the party and the figure that is missing or not what it must be.
    """
    by_role = {party["role"]: name for name, party in report["parties"].items()}
    if not {"active", "measurement"} <= by_role.keys():
        raise DataError("the report names no active party and measurement server")
    active = by_role["active"]
    summary = report["parties"][active]["summary"]
    return Figures(
        active=active,
        server=by_role["measurement"],
        rows=read(RowFigures, summary, active, "rows"),
        privacy=read(PrivacyFigures, summary, active, "privacy"),
        fit=read(FitFigures, summary, active, "fit"),
        timing=read(TimingFigures, summary, active, "timing"),
    )


def process_of(report: Mapping[str, Any], name: str) -> ProcessFigures:
    return read(ProcessFigures, report["parties"][name]["summary"], name)


def read(kind: type[F], summary: Mapping[str, Any], party: str, part: str = "") -> F:
    """The dataclass `kind`, from the table `part` of what a party said."""
    table = summary.get(part) if part else summary
    if not isinstance(table, Mapping):
        raise DataError(f"what {party} reports has no table {part}")
    where = f"what {party} reports: {part + '.' if part else ''}"
    values = {f.name: _read_field(f, table.get(f.name), where) for f in fields(kind)}  # type: ignore[arg-type]
    return kind(**values)


def _read_field(field: Field[Any], value: object, where: str) -> Any:
    if value is None and field.default is not MISSING:
        return field.default
    if value is None:
        raise DataError(f"{where}{field.name} is missing")
    reader, wanted = _READERS[str(field.type).removesuffix(" | None")]
    try:
        return reader(value)
    except ValueError:
        raise DataError(f"{where}{field.name} is not {wanted}") from None


# --- readers: each raises ValueError ------------------------------------------------------------------


def _integer(value: object) -> int:
    if type(value) is not int:
        raise ValueError
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _boolean(value: object) -> bool:
    if type(value) is not bool:
        raise ValueError
    return value


def _text(value: object) -> str:
    """A peer's text reaches a terminal: it must not steer it."""
    if not isinstance(value, str):
        raise ValueError
    return plain(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError
    return tuple(map(_text, value))


def plain(text: str) -> str:
    """On one line, printable, and of a length that a page can show."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown if len(shown) <= MAX_TEXT_CHARS else shown[: MAX_TEXT_CHARS - 1] + "…"


_READERS: dict[str, tuple[Callable[[object], Any], str]] = {
    "int": (_integer, "an integer"),
    "float": (_number, "a finite number"),
    "bool": (_boolean, "true or false"),
    "str": (_text, "text"),
    "tuple[str, ...]": (_texts, "a list of texts"),
}
