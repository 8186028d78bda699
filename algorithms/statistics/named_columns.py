"""Rows as a model wants them: a table's columns are found by their names, an array's by their places.

A table is whatever names its columns and gives each by its name: a pandas or polars data frame, a pyarrow table, a
mapping of names to columns. None of these libraries is imported.

A model's column that a table lacks may be made of one that it has: `region=north` is 1 where the table's `region` is
the text north, else 0, and `age=` is 1 where its `age` has no value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError

Floats = NDArray[np.float64]
Features = Any
"""A matrix of numbers, or a table."""


def names_in(rows: Features) -> tuple[str, ...] | None:
    """The names of a table's columns; None for an array, and for a data frame whose columns are only numbered 0, 1, ...

    Raises:
        DataError: a table has a name that is no text.
    """
    named = rows if isinstance(rows, Mapping) else getattr(rows, "column_names", getattr(rows, "columns", None))
    if named is None:
        return None
    names = list(named)
    if not isinstance(rows, Mapping) and names == list(range(len(names))):
        return None
    strange = [name for name in names if not isinstance(name, str)]
    if strange:
        raise DataError(
            f"the rows have a column called {strange[0]!r}, which is no text",
            hint="name every column by a text, or give an array in the model's order",
        )
    return tuple(names)


def in_order(rows: Features, columns: Sequence[str], filled: Mapping[str, float] = MappingProxyType({})) -> Floats:
    """(n, columns), in the order of `columns`; what else a table has is left alone.

    Args:
        filled: what stands for NaN in these columns.

    Raises:
        DataError: a table lacks a column or has it twice; an array has another number of columns; no finite numbers.
    """
    names = names_in(rows)
    matrix = real_matrix(rows) if names is None else _matrix_by_name(rows, names, columns)
    if matrix.shape[1] != len(columns):
        raise DataError(f"rows have {matrix.shape[1]} columns; the model was made for {len(columns)}")
    for place, name in enumerate(columns):
        if name in filled and (missing := np.isnan(matrix[:, place])).any():
            matrix = matrix.copy()
            matrix[missing, place] = filled[name]
    check_finite(matrix, columns=columns)
    return matrix


def _matrix_by_name(rows: Any, names: tuple[str, ...], columns: Sequence[str]) -> Floats:
    counts = Counter(names)
    made_of = {name: column_behind(name, counts) for name in columns if not counts[name]}
    if missing := [name for name, column in made_of.items() if not column]:
        raise DataError(
            f"missing from the rows' columns: {', '.join(missing)}",
            hint="name columns as the model does, or give an array in the order of the model's columns",
        )
    if twice := [name for name in (*columns, *made_of.values()) if counts[name] > 1]:
        raise DataError(f"twice among the rows' columns: {', '.join(twice)}", hint="rename one of the two")
    found = [
        _indicator(rows[made_of[name]], name.removeprefix(f"{made_of[name]}=")) if name in made_of
        else _column(rows[name], name) for name in columns
    ]  # fmt: skip
    if len({len(column) for column in found}) > 1:
        raise DataError("the rows' columns are not of one length")
    return np.column_stack(found)


def column_behind(name: str, present: Container[str]) -> str:
    """The column of a table that a model's column may be made of; empty where there is none."""
    places = [place for place, character in enumerate(name) if character == "="]
    return next((name[:place] for place in places if name[:place] in present), "")


def _indicator(values: Any, level: str) -> Floats:
    texts = [None if value is None or value != value else str(value).strip() for value in list(values)]  # NaN differs
    return np.array([float((text or "") == level) for text in texts])


def _column(values: Any, name: str) -> Floats:
    try:
        column: Floats = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"column {name} must hold numbers only") from None
    if column.ndim != 1:
        raise DataError(f"column {name} must be one column of numbers, not of shape {column.shape}")
    return column


def real_matrix(rows: Any) -> Floats:
    """Raises DataError: no matrix of numbers, or one without columns."""
    try:
        matrix: Floats = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"rows must hold numbers only: {error}") from error
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise DataError(f"rows must be a matrix with at least one column, not of shape {matrix.shape}")
    return matrix


def check_finite(matrix: Floats, first_row: int = 0, *, columns: Sequence[str] | None = None) -> None:
    """Raises DataError: names the row, and the column by its name or place."""
    finite = np.isfinite(matrix)
    if not finite.all():
        row, place = np.argwhere(~finite)[0]
        column = place if columns is None else columns[place]
        raise DataError(f"row {first_row + row}, column {column}: {matrix[row, place]} is not a finite number")


def check_unique(names: Sequence[str]) -> None:
    """Raises DataError: a name comes twice."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise DataError(f"columns: {', '.join(twice)} is named twice", hint="rename one of the two")
