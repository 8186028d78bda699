"""Columns of a table in the form that a protocol takes: texts, labels and numbers. An error names the row and the
column.

The conversions are those of `algorithms/columns`; this module adds the place of an error. `first_row` is the 1-based
data row of the column's first value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blindfit.algorithms.columns import values
from blindfit.algorithms.columns.levels import loosely
from blindfit.algorithms.columns.record import TableColumn
from blindfit.algorithms.columns.spelling import one_spelling
from blindfit.algorithms.columns.tables import MISSING, convert_column
from blindfit.algorithms.columns.values import BadValue
from blindfit.parties.data.origin import Origin

MAX_ID_BYTES = 256
SHARE_MODULUS = 2**61 - 1
Floats = NDArray[np.float64]

_WITHOUT_LABEL = "remove the rows without a label"
_WITHOUT_ID = 'give every row its value; in a csv file, quote a text such as "NA", or set missing_words'


@contextmanager
def locate_errors(origin: Origin, name: str, first_row: int, hint: str = "") -> Iterator[None]:
    """Add its place to an error about a value.

    Args:
        hint: advice for an error that has no hint of its own.
    """
    try:
        yield
    except BadValue as error:
        row = None if error.row is None else first_row + error.row
        form = origin.advice.no_date() if error.problem == values.NOT_A_DATE else ""
        raise origin.error(error.problem, row=row, column=name, hint=f"{error.hint or hint}{form}") from None


def to_texts(column: Any, *, name: str, first_row: int, origin: Origin) -> Any:
    """Return names of rows or persons as a `pyarrow.StringArray`, in one spelling. Every name has a text."""
    with locate_errors(origin, name, first_row):
        texts = one_spelling(values.to_texts(column))
    absent = pc.fill_null(pc.equal(pc.binary_length(texts), 0), True)
    if (row := values.first(absent)) is not None:
        raise origin.error("the value is missing", row=first_row + row, column=name, hint=_WITHOUT_ID)
    too_long = pc.greater(pc.binary_length(texts), MAX_ID_BYTES)
    if (row := values.first(too_long)) is not None:
        raise origin.error(
            f"longer than {MAX_ID_BYTES} bytes",
            row=first_row + row,
            column=name,
            hint="use a shorter key, or its hash",
        )
    return texts


def to_fields(column: Any, *, name: str, first_row: int, origin: Origin) -> Any:
    """Return a field of a record linkage as a `pyarrow.StringArray`; a text is empty where the value is missing."""
    with locate_errors(origin, name, first_row):
        return pc.fill_null(values.to_fields(column), "")


def to_levels(column: Any, *, name: str, origin: Origin, first_row: int = 1, known: Sequence[str] | None = None) -> Any:
    """Return the levels of a category as a `pyarrow.StringArray`, in one spelling; null for a missing value.

    Args:
        known: the declared levels; an equal value of another type gets their spelling.
    """
    with locate_errors(origin, name, first_row):
        return values.to_levels(column) if known is None else values.to_known_levels(column, known)


def to_days(column: Any, *, name: str, first_row: int, origin: Origin) -> Floats:
    """Return days since 1970-01-01 in UTC, shape (n,); NaN for a missing date."""
    with locate_errors(origin, name, first_row):
        return values.to_days(column)


def to_numbers(column: Any, *, name: str, first_row: int, origin: Origin, hint: str = "") -> Floats:
    """Return numbers, shape (n,); NaN for a missing number.

    Args:
        hint: advice about a value that is not a number, for a column that cannot be a feature.
    """
    with locate_errors(origin, name, first_row, hint=hint or origin.advice.no_number(name)):
        return values.to_numbers(column)


def to_labels(
    column: Any, *, name: str, binary: bool, first_row: int, origin: Origin, positive: str | None = None
) -> NDArray[Any]:
    """Return labels, shape (n,): uint8 in {0, 1} where `binary`, else float64. A label is never missing.

    Args:
        positive: the text of label 1. Every other text is label 0. A text that differs from `positive` only in
            capitals, spaces or the form of a number is refused.
    """
    if positive is not None:
        with locate_errors(origin, name, first_row):
            texts = values.to_known_levels(column, [positive])
        if (row := values.first(texts.is_null())) is not None:
            raise origin.error("the label is missing", row=first_row + row, column=name, hint=_WITHOUT_LABEL)
        _refuse_near(texts, positive, name=name, first_row=first_row, origin=origin)
        found: NDArray[np.uint8] = pc.equal(texts, pa.scalar(positive)).to_numpy(zero_copy_only=False).astype(np.uint8)
        return found
    hint = origin.advice.labels(binary=binary)
    labels = to_numbers(column, name=name, first_row=first_row, origin=origin, hint=hint)
    refuse_missing(labels, name=name, first_row=first_row, origin=origin, hint=_WITHOUT_LABEL)
    if not binary:
        return labels
    strange = np.flatnonzero((labels != 0) & (labels != 1))
    if strange.size:
        row = first_row + int(strange[0])
        raise origin.error("the label is neither 0 nor 1", row=row, column=name, hint="write labels as 0 and 1")
    return labels.astype(np.uint8)


def _refuse_near(texts: Any, positive: str, *, name: str, first_row: int, origin: Origin) -> None:
    others = pc.unique(texts).to_pylist()
    near = [text for text in others if text != positive and loosely(text) == loosely(positive)]
    if near:
        row = values.first(pc.is_in(texts, value_set=pa.array(near, pa.string())))
        raise origin.error(
            f"the label differs only in spelling from {positive!r}, the text of label 1",
            row=first_row + (row or 0),
            column=name,
            hint=origin.advice.near_positive(),
        )


def to_shares(column: Any, *, name: str, first_row: int, origin: Origin) -> NDArray[np.uint64]:
    """Return shares modulo 2^61 - 1, shape (n,). A null is a missing value. Floats are refused, because they would
    round the shares.
    """
    hint = "take the column as `blindfit split-labels` wrote it"
    column = values.plain(column)
    if not (pa.types.is_integer(column.type) or values.is_text(column.type)):
        raise origin.error(f"its values are of the type {column.type}, not whole numbers", column=name, hint=hint)
    try:
        shares = pc.cast(column, pa.uint64())
    except pa.ArrowInvalid:
        raise origin.error("a value is not a whole number from 0", column=name, hint=hint) from None
    strange = pc.fill_null(pc.greater_equal(shares, pa.scalar(SHARE_MODULUS, pa.uint64())), True)
    if (row := values.first(strange)) is not None:
        raise origin.error(
            "the value is not a share: shares are whole numbers from 0 to 2^61 - 2",
            row=first_row + row,
            column=name,
            hint=hint,
        )
    found: NDArray[np.uint64] = shares.to_numpy(zero_copy_only=False).astype(np.uint64)
    return found


def refuse_missing(found: Floats, *, name: str, first_row: int, origin: Origin, hint: str) -> None:
    missing = np.flatnonzero(np.isnan(found))
    if missing.size:
        raise origin.error(MISSING, row=first_row + int(missing[0]), column=name, hint=hint)


# --- features -------------------------------------------------------------------------------------


def to_features(column: Any, recorded: TableColumn, *, first_row: int, origin: Origin) -> dict[str, Floats]:
    """Return the model's columns that come from a number, boolean or date; NaN where a value is missing."""
    with locate_errors(origin, recorded.name, first_row, hint=origin.advice.no_number(recorded.name)):
        return convert_column(column, recorded)[0]


def refuse_without_value(
    features: dict[str, Floats], recorded: TableColumn, rows: Sequence[int] | NDArray[np.int64], origin: Origin
) -> None:
    """Raise DataError: a row has no value in this column of the table.

    Args:
        rows: the 1-based data row of each value.
    """
    missing = np.isnan(features[recorded.valued[0]])
    if missing.any():
        hint = origin.advice.missing(of_category=recorded.kind == "category")
        raise origin.error(MISSING, row=int(rows[int(np.argmax(missing))]), column=recorded.name, hint=hint)
