"""Read and write rows of the party's database by the names of their columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from blindfit.parties.store.excess import Excess

R = TypeVar("R")
Execute = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]


class RowReads:
    """Reads of one state of the database, or of the disk's present state at each read."""

    def __init__(self, execute: Execute, excess: Excess | None = None) -> None:
        self._execute, self.excess = execute, excess or Excess()

    def _all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._execute(query, values)

    def _number(self, query: str, *values: object) -> int:
        return int(self._all(query, *values)[0][0])

    def _rows(self, kind: type[R], table: str, rest: str = "", *values: object) -> list[R]:
        """Return rows of a table as values of a dataclass, each field from the column of its name.

        Args:
            rest: rest of the query, after the table.
        """
        names = _names(kind)
        query = f"SELECT {', '.join(names)} FROM {table} {rest}"  # noqa: S608 - names of our own classes and tables
        return [kind(**dict(zip(names, row, strict=True))) for row in self._all(query, *values)]

    def _row(self, kind: type[R], table: str, rest: str, *values: object) -> R | None:
        found = self._rows(kind, table, rest, *values)
        return found[0] if found else None


class RowWrites(RowReads):
    """Reads and writes within one transaction."""

    def _change(self, query: str, *values: object) -> None:
        self._execute(query, values)

    def _insert(self, table: str, row: object = None, how: str = "INSERT", **more: object) -> None:
        """Insert a row: a column for each field of the dataclass, and for each of `more`.

        Args:
            how: SQL command, for example INSERT OR REPLACE.
        """
        columns = {**({n: getattr(row, n) for n in _names(type(row))} if row is not None else {}), **more}
        marks = ", ".join("?" for _ in columns)
        self._change(f"{how} INTO {table} ({', '.join(columns)}) VALUES ({marks})", *columns.values())


def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))
