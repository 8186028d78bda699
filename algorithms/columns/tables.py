"""A table in memory -> the model's columns, by the record of the model.

A table is any object that names its columns and gives each by its name: a pandas or polars data frame, a pyarrow table,
or a mapping of names to columns. This module imports none of these libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blindfit.algorithms.columns import objects, values
from blindfit.algorithms.columns.derived import derive_columns
from blindfit.algorithms.columns.levels import Unseen, UnseenLevelWarning, find_unseen_levels
from blindfit.algorithms.columns.record import Kind, TableColumn, TableRecord, column_of_level
from blindfit.algorithms.columns.values import BadValue
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.user_warnings import warn_user

Floats = NDArray[np.float64]
MISSING = "the value is missing (empty, null or NaN)"
_ARROW_UNITS = ("D", "s", "ms", "us", "ns")


def columns_of(rows: Any, record: TableRecord) -> dict[str, Floats]:
    """Convert every column of the record, and compute those of its recipes; fill missing values first.

    Warns:
        UnseenLevelWarning: levels that training did not meet.

    Raises:
        DataError: a value cannot be converted, or is missing where training had all values, or a recipe cannot take it;
            the error names the row, counted from 0, and the column.
    """
    found: dict[str, Floats] = {}
    for column in record.columns:
        with _locate(column.name):
            converted, unseen = convert_column(arrow_of(rows[column.name], column.name, column.kind), column)
        for name, numbers in converted.items():
            found[name] = _fill(numbers, column, name, record)
        if unseen:
            warn_user(UnseenLevelWarning(str(unseen)))
    if len({len(column) for column in found.values()}) > 1:
        raise DataError("the rows' columns are not of one length")
    return derive_columns(found, record.recipes)


def convert_column(array: Any, column: TableColumn) -> tuple[dict[str, Floats], Unseen | None]:
    """Return the model's columns that come from this one, NaN where a value is missing; and levels that are new.

    Raises:
        BadValue: a value cannot be converted.
    """
    if column.kind == "category":
        texts = values.to_known_levels(array, column.chosen + (column.reference or ()))
        return to_indicators(texts, column), find_unseen_levels(texts, column)
    numbers = values.CONVERTERS[column.kind](array)
    found = {column.name: numbers}
    if column.missing == "indicator":
        found[column_of_level(column.name, "")] = np.isnan(numbers).astype(np.float64)
    return found, None


def to_indicators(texts: Any, column: TableColumn) -> dict[str, Floats]:
    """Return a column of zeros and ones for each level; NaN where a value is missing and has no column of its own.

    Args:
        texts: a `pyarrow.StringArray` in one spelling.
    """
    found, missing = {}, texts.is_null().to_numpy(zero_copy_only=False)
    for level in column.levels:
        has = pc.fill_null(pc.equal(texts, pa.scalar(level)), False)
        found[column_of_level(column.name, level)] = has.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
        if column.missing != "indicator":
            found[column_of_level(column.name, level)][missing] = np.nan
    if column.missing == "indicator":
        found[column_of_level(column.name, "")] = missing.astype(np.float64)
    return found


def _fill(numbers: Floats, column: TableColumn, name: str, record: TableRecord) -> Floats:
    missing = np.isnan(numbers)
    if not missing.any():
        return numbers
    if column.missing == "refuse":
        raise DataError(f"row {int(np.argmax(missing))}, column {column.name}: {MISSING}")
    return np.where(missing, record.fill[name], numbers)


@contextmanager
def _locate(name: str) -> Iterator[None]:
    """Name the column in errors about its values."""
    try:
        yield
    except BadValue as error:
        row = "" if error.row is None else f"row {error.row}, "
        raise DataError(f"{row}column {name}: {error.problem}", hint=error.hint) from None


# --- from the libraries that hold tables ----------------------------------------------------------


def arrow_of(column: Any, name: str, kind: Kind) -> Any:
    """Return the column of any library as an Arrow array.

    Raises:
        DataError: it is not one column.
        BadValue: a value cannot be of this kind.
    """
    typed = _to_arrow(column, name)
    if typed is not None:
        return typed
    values = list(column)
    if kind == "category":  # a level of another type gets its spelling by its type
        with suppress(pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError):
            return pa.array(values, from_pandas=True)
    return objects.MAKERS[kind](values)


def _to_arrow(column: Any, name: str) -> Any:
    """Return an Arrow array of a column whose library knows the type; None for a column of Python's objects."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    shape = _shape(column)
    if isinstance(column, str) or len(shape) != 1:
        raise DataError(f"column {name} must be one column of values, not of shape {shape}")
    dtype = getattr(column, "dtype", None)
    if dtype is None:
        return None
    if isinstance(dtype, np.dtype):
        typed = _numpy_to_arrow(np.asarray(column))
        is_masked = typed is not None and np.ma.is_masked(column)
        return pc.if_else(pa.array(np.ma.getmaskarray(column)), None, typed) if is_masked else typed
    try:
        return pa.chunked_array(column) if hasattr(column, "__arrow_c_stream__") else pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        return None  # a type that Arrow does not know


def _shape(column: Any) -> tuple[int, ...]:
    try:
        return np.shape(column)
    except ValueError:  # lists of several lengths, each of which is one value of another type
        return (len(column),)


def _numpy_to_arrow(column: NDArray[Any]) -> Any:
    kind = column.dtype.kind
    if kind in "biu":
        return pa.array(column)
    if kind == "f":
        return pa.array(column if column.dtype.itemsize <= 8 else column.astype(np.float64), from_pandas=True)
    if kind == "M":
        known = np.datetime_data(column.dtype)[0] in _ARROW_UNITS
        return pa.array(column if known else column.astype("datetime64[us]"), from_pandas=True)
    if kind == "U":
        return pa.array(column.tolist(), pa.string())
    if kind == "O":
        return None
    raise BadValue(f"its values are of the type {column.dtype}")


# --- tables of a fit that has no settings ---------------------------------------------------------


def infer_record(rows: Any, names: Sequence[str]) -> TableRecord:
    """Make a record from the types of a table's columns.

    Raises:
        DataError: a column holds texts, categories, or nothing that can be learnt from.
    """
    columns = []
    for name in names:
        with _locate(name):
            columns.append(TableColumn(name, _kind_of(rows[name], name)))
    return TableRecord(tuple(columns))


def _kind_of(column: Any, name: str) -> Kind:
    typed = _to_arrow(column, name)
    kind = objects.common_type(list(column)) if typed is None else values.plain(typed).type
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    if any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)):
        return "number"
    what = "texts" if values.is_text(kind) else f"values of the type {kind}"
    raise BadValue(f"it holds {what}, and a fit without settings learns from numbers, booleans and dates", hint=_ENCODE)


_ENCODE = "make numbers of it, such as a column of zeros and ones for each level, or leave it out"
