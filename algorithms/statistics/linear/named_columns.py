"""Rows in a model's form: a table's columns are found by their names, an array's by their places.

A table is any object that names its columns and gives each by its name: a pandas or polars data frame, a pyarrow table,
or a mapping of names to columns. It has the contents of the training's table; the model's record of that converts it
(columns/record.py). An array has numbers, the model's own columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import DataError

Floats = NDArray[np.float64]


class DataFrame(Protocol):
    """A data frame of pandas or polars."""

    @property
    def columns(self) -> Any:
        """Names of the columns."""
        ...


class ArrowTable(Protocol):
    """A table or record batch of pyarrow."""

    @property
    def column_names(self) -> Any:
        """Names of the columns."""
        ...


Table = DataFrame | ArrowTable | Mapping[str, Any]
"""A table with named columns; a mapping goes from names to columns."""

Features = ArrayLike | Table
"""A matrix of numbers, or a table."""


def names_in(rows: Features) -> tuple[Any, ...] | None:
    """Return the names of a table's columns; None for an array, and for a data frame whose columns are numbered.

    Raises:
        DataError: no column of a table has a text as its name.
    """
    named = rows if isinstance(rows, Mapping) else getattr(rows, "column_names", getattr(rows, "columns", None))
    if named is None:
        return None
    names = tuple(named)
    if not isinstance(rows, Mapping) and names == tuple(range(len(names))):
        return None
    if names and not any(isinstance(name, str) for name in names):
        raise DataError(
            f"the rows have a column called {names[0]!r}, whose name is not a text",
            hint="name every column by a text, or give an array in the model's order",
        )
    return names


def in_order(rows: Features, columns: Sequence[str], record: TableRecord | None = None) -> Floats:
    """Return (n, columns) finite numbers, in the order of `columns`; other columns of a table are not read.

    Args:
        record: record of the columns; None: the columns are numbers under the same names.

    Raises:
        DataError: a table lacks a column or has it twice; an array has another number of columns; a value cannot be
            converted.
    """
    names, record = names_in(rows), record or TableRecord.of_numbers(columns)
    matrix = _fill(real_matrix(rows), columns, record) if names is None else _by_name(rows, names, columns, record)
    if matrix.shape[1] != len(columns):
        raise DataError(f"rows have {matrix.shape[1]} columns; the model was made for {len(columns)}")
    check_finite(matrix, columns=columns)
    return matrix


def record_of(rows: Features, columns: Sequence[str]) -> TableRecord:
    """Return the record of a table by the types of these columns, for a fit that has no settings.

    Raises:
        DataError: the table lacks a column or has it twice; a column holds texts.
    """
    from blindfit.algorithms.columns import tables  # here, because an array needs no Arrow

    _refuse_other_names(names_in(rows) or (), columns)
    return tables.infer_record(rows, columns)


def _refuse_other_names(present: Sequence[Any], wanted: Sequence[str]) -> None:
    counts = Counter(present)
    if missing := [name for name in wanted if not counts[name]]:
        raise DataError(
            f"missing from the rows' columns: {', '.join(missing)}",
            hint="name columns as the model does, or give an array in the order of the model's columns",
        )
    if twice := [name for name in wanted if counts[name] > 1]:
        raise DataError(f"twice among the rows' columns: {', '.join(twice)}", hint="rename one of the two")


def _by_name(rows: Any, names: tuple[Any, ...], columns: Sequence[str], record: TableRecord) -> Floats:
    from blindfit.algorithms.columns import tables  # here, because an array needs no Arrow

    _refuse_other_names(names, record.names)
    found = tables.columns_of(rows, record)
    return np.column_stack([found[name] for name in columns])


def _fill(matrix: Floats, columns: Sequence[str], record: TableRecord) -> Floats:
    """Put the recorded mean in place of NaN, in the columns that have one."""
    for place, name in enumerate(columns[: matrix.shape[1]]):
        if name in record.fill and (missing := np.isnan(matrix[:, place])).any():
            matrix = matrix.copy()
            matrix[missing, place] = record.fill[name]
    return matrix


def real_matrix(rows: Any) -> Floats:
    """Return a matrix of floats; raise DataError for other contents, or a matrix without columns."""
    found = np.asarray(without_mask(rows))
    if found.dtype.kind not in "biufO" or (found.dtype.kind == "O" and not all(map(_is_number, found.flat))):
        raise DataError(
            "rows without names must hold numbers only, no dates or texts",
            hint="give a table with the names of its columns: its dates and texts are converted as in training",
        )
    matrix: Floats = found.astype(np.float64, copy=False)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise DataError(f"rows must be a matrix with at least one column, not of shape {matrix.shape}")
    return matrix


def without_mask(rows: Any) -> Any:
    """Return an array with NaN where NumPy's mask marks a missing value; NumPy itself would drop the mask."""
    return rows.astype(object).filled(np.nan) if np.ma.is_masked(rows) else rows


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal | np.bool_) or value is None


def check_finite(matrix: Floats, first_row: int = 0, *, columns: Sequence[str] | None = None) -> None:
    """Raise DataError, which names row and column, if a number is not finite."""
    finite = np.isfinite(matrix)
    if not finite.all():
        row, place = np.argwhere(~finite)[0]
        column = place if columns is None else columns[place]
        raise DataError(f"row {first_row + row}, column {column}: {matrix[row, place]} is not a finite number")


def check_unique(names: Sequence[str]) -> None:
    """Raise DataError if a name comes twice."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise DataError(f"columns: {', '.join(twice)} is named twice", hint="rename one of the two")
