"""A party's own account of its part of a job, checked and typed: it came from another process, or from a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, is_dataclass
from typing import Any, TypeVar

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.terminal.wording import plain
from blindfit.parties.training.report import Between, Entry, entries_of

F = TypeVar("F")


def fullest(report: Mapping[str, Any], party: str) -> Mapping[str, Any]:
    """Return the party's own report if it is here; else its summary for the coordinator, which has less."""
    own: Mapping[str, Any] = report["party_reports"].get(party) or report["parties"][party]["summary"]
    return own or {}


@dataclass(frozen=True)
class ProcessFigures:
    peak_memory_mib: float | None = None
    bytes_sent: int | None = None
    messages_sent: int | None = None
    dataset_rows: int | None = None


def process_of(report: Mapping[str, Any], name: str) -> ProcessFigures:
    return read(ProcessFigures, report["parties"][name]["summary"], name)


def read(kind: type[F], summary: Mapping[str, Any], party: str, part: str = "") -> F:
    """Return the dataclass `kind`, from the table `part` of a party's report.

    Raises:
        DataError: a figure is missing, has the wrong kind or is out of range; names the party and the figure.
    """
    table: object = summary
    for name in filter(None, part.split(".")):
        table = table.get(name) if isinstance(table, Mapping) else None
    return _read_table(kind, table, party, part)


def check_range(party: str, figure: str, value: float, allowed: Between) -> None:
    """Raise DataError: the value is out of its range."""
    least, most = allowed.least, allowed.most
    if not least <= value <= most:
        wanted = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise DataError(f"the report of {party}: {figure} is not {wanted}")


def _read_table(kind: type[F], table: object, party: str, part: str) -> F:
    if not isinstance(table, Mapping):
        raise DataError(f"the report of {party} has no table {part}")
    return kind(**{entry.name: _read_entry(entry, table, party, part) for entry in entries_of(kind)})


def _read_entry(entry: Entry, table: Mapping[str, Any], party: str, part: str) -> Any:
    figure = f"{part}.{entry.name}" if part else entry.name
    value = table.get(entry.name)
    if value is None and entry.default is not MISSING:
        return entry.default
    if value is None and entry.is_optional:
        return None
    if isinstance(entry.kind, type) and is_dataclass(entry.kind):
        return _read_table(entry.kind, value, party, figure)
    if value is None:
        raise DataError(f"the report of {party}: {figure} is missing")
    reader, wanted = _READERS[entry.kind]
    try:
        found = reader(value)
    except ValueError:
        raise DataError(f"the report of {party}: {figure} is not {wanted}") from None
    if entry.range is not None:
        check_range(party, figure, found, entry.range)
    return found


# --- readers: each raises ValueError ------------------------------------------------------------------


def _integer(value: object) -> int:
    if type(value) is not int:
        raise ValueError
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _numbers(value: object) -> tuple[float, ...]:
    """Return numbers, also from texts of numbers: the wire has no list of numbers."""
    if not isinstance(value, list | tuple):
        raise ValueError
    return tuple(_number(float(item) if isinstance(item, str) else item) for item in value)


def _boolean(value: object) -> bool:
    if type(value) is not bool:
        raise ValueError
    return value


def _text(value: object) -> str:
    """Return a peer's text, which may reach a terminal, without characters that control it."""
    if not isinstance(value, str):
        raise ValueError
    return plain(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError
    return tuple(map(_text, value))


def _list(value: object) -> list[Any]:
    """Return a list. Other functions read its items."""
    if not isinstance(value, list):
        raise ValueError
    return value


_READERS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    int: (_integer, "an integer"),
    float: (_number, "a finite number"),
    bool: (_boolean, "true or false"),
    str: (_text, "text"),
    tuple[str, ...]: (_texts, "a list of texts"),
    tuple[float, ...]: (_numbers, "a list of finite numbers"),
    list[Any]: (_list, "a list"),
}
