"""A party's own account of its part of a job, checked and typed: it came from another process, or from a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeVar

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.terminal.wording import plain

F = TypeVar("F")


def fullest(report: Mapping[str, Any], party: str) -> Mapping[str, Any]:
    """The party's own report, where it is here; else what it told the coordinator, which holds less."""
    own: Mapping[str, Any] = report["party_reports"].get(party) or report["parties"][party]["summary"]
    return own or {}


@dataclass(frozen=True)
class ProcessFigures:
    peak_memory_mib: float | None = None
    bytes_sent: int | None = None
    dataset_rows: int | None = None


def process_of(report: Mapping[str, Any], name: str) -> ProcessFigures:
    return read(ProcessFigures, report["parties"][name]["summary"], name)


def read(kind: type[F], summary: Mapping[str, Any], party: str, part: str = "") -> F:
    """The dataclass `kind`, from the table `part` of what a party said.

    Raises:
        DataError: names the party and the figure that is missing, not what it must be, or out of its range.
    """
    table = summary
    for name in filter(None, part.split(".")):
        table = table.get(name)  # type: ignore[assignment]
        if not isinstance(table, Mapping):
            raise DataError(f"what {party} reports has no table {part}")
    where = f"what {party} reports: {part + '.' if part else ''}"
    values = {f.name: _read_field(f, table.get(f.name), where) for f in fields(kind)}  # type: ignore[arg-type]
    try:
        return kind(**values)
    except OutOfRange as error:
        raise DataError(f"{where}{error}") from None


class OutOfRange(ValueError):
    """What a dataclass says in `__post_init__` of a figure that is typed well, and cannot be."""


def in_range(figure: str, value: float, least: float, most: float = math.inf) -> None:
    """Raises OutOfRange."""
    if not least <= value <= most:
        wanted = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise OutOfRange(f"{figure} is not {wanted}")


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


def _numbers(value: object) -> tuple[float, ...]:
    """Numbers, or texts of numbers: the wire has no list of numbers."""
    if not isinstance(value, list | tuple):
        raise ValueError
    return tuple(_number(float(item) if isinstance(item, str) else item) for item in value)


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


_READERS: dict[str, tuple[Callable[[object], Any], str]] = {
    "int": (_integer, "an integer"),
    "float": (_number, "a finite number"),
    "bool": (_boolean, "true or false"),
    "str": (_text, "text"),
    "tuple[str, ...]": (_texts, "a list of texts"),
    "tuple[float, ...]": (_numbers, "a list of finite numbers"),
}
