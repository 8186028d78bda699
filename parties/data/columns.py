"""Arrow columns of any type to what a protocol takes: texts, labels and numbers, or the exact error.

`first_row` is the 1-based data row of the column's first value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blindfit.parties.data.origin import Origin
from blindfit.parties.data.spelling import one_spelling

MAX_ID_BYTES = 256
SHARE_MODULUS = 2**61 - 1
#: What pandas, R and spreadsheets write for "no value" in a csv file, spaces around it or not.
NO_VALUE = ("", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "<NA>")


def to_texts(column: Any, *, name: str, first_row: int, origin: Origin, required: bool = True) -> Any:
    """Texts as a `pyarrow.StringArray`: names of rows and persons, in one spelling, of which none is missing; or, where
    none is `required`, texts as they stand, empty where there is none."""
    texts = _as_text(column, name, origin)
    if not required:
        return pc.fill_null(texts, "")
    texts = one_spelling(texts)
    absent = pc.fill_null(pc.equal(pc.binary_length(texts), 0), True)
    if (row := _first(absent)) is not None:
        raise origin.error("the value is missing", row=first_row + row, column=name, hint="give every row its value")
    too_long = pc.greater(pc.binary_length(texts), MAX_ID_BYTES)
    if (row := _first(too_long)) is not None:
        raise origin.error(
            f"longer than {MAX_ID_BYTES} bytes",
            row=first_row + row,
            column=name,
            hint="use a shorter key, or its hash",
        )
    return texts


def _as_text(column: Any, name: str, origin: Origin) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _as_text(column.dictionary_decode(), name, origin)
    if pa.types.is_null(kind) or _is_text(kind) or _is_whole(kind) or pa.types.is_date(kind):
        return column.cast(pa.string())
    what = "floating-point numbers, so that 7 may be written 7.0" if _has_fraction(kind) else f"of the type {kind}"
    raise origin.error(f"its values are {what}", column=name, hint="store it as text or as whole numbers")


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_whole(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


def _has_fraction(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def to_labels(column: Any, *, name: str, binary: bool, first_row: int, origin: Origin) -> NDArray[Any]:
    """Labels, shape (n,): uint8 in {0, 1} where `binary`, else float64. A label is never missing."""
    hint = _LABELS_01 if binary else "write labels as numbers"
    labels = to_numbers(column, name=name, first_row=first_row, origin=origin, hint=hint)
    refuse_missing(labels, name=name, first_row=first_row, origin=origin, hint="remove the rows without a label")
    if not binary:
        return labels
    strange = np.flatnonzero((labels != 0) & (labels != 1))
    if strange.size:
        row = first_row + int(strange[0])
        raise origin.error("the label is neither 0 nor 1", row=row, column=name, hint="write labels as 0 and 1")
    return labels.astype(np.uint8)


def to_shares(column: Any, *, name: str, first_row: int, origin: Origin) -> NDArray[np.uint64]:
    """Shares modulo 2^61 - 1, shape (n,). None is missing; floats, which would round them, are refused."""
    hint = "take the column as `blindfit split-labels` wrote it"
    if not (_is_whole(column.type) or _is_text(column.type)):
        raise origin.error(f"its values are of the type {column.type}, not whole numbers", column=name, hint=hint)
    try:
        shares = pc.cast(column, pa.uint64())
    except pa.ArrowInvalid:
        raise origin.error("a value is not a whole number from 0", column=name, hint=hint) from None
    strange = pc.fill_null(pc.greater_equal(shares, pa.scalar(SHARE_MODULUS, pa.uint64())), True)
    if (row := _first(strange)) is not None:
        raise origin.error("no share from 0 to 2^61 - 2", row=first_row + row, column=name, hint=hint)
    values: NDArray[np.uint64] = shares.to_numpy(zero_copy_only=False).astype(np.uint64)
    return values


_PICK_NUMBERS = "correct it, or leave the column out of `features`"
_LABELS_01 = "write labels as 0 and 1, such as 0 for no and 1 for yes"


def to_numbers(
    column: Any, *, name: str, first_row: int, origin: Origin, hint: str = _PICK_NUMBERS
) -> NDArray[np.float64]:
    """Numbers, shape (n,), with NaN where there is no value.

    Args:
        hint: what to do about a value that is none.
    """
    try:
        numbers = pc.cast(column, pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        numbers = _numbers_from_text(column, name, first_row, origin, hint)
    values: NDArray[np.float64] = numbers.to_numpy(zero_copy_only=False)
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        row = first_row + int(infinite[0])
        raise origin.error("the number is infinite", row=row, column=name, hint="correct it or leave it empty")
    return values


def _numbers_from_text(column: Any, name: str, first_row: int, origin: Origin, hint: str) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _is_text(column.type):
        raise origin.error(f"its values are of the type {column.type}, not numbers", column=name, hint=hint)
    trimmed = pc.utf8_trim_whitespace(column)
    texts = pc.if_else(pc.is_in(trimmed, value_set=pa.array(NO_VALUE)), None, trimmed)
    if not _parses(texts):
        row = first_row + _first_unparsed(texts)
        raise origin.error("not a number", row=row, column=name, hint=hint)
    return pc.cast(texts, pa.float64())


def _parses(texts: Any) -> bool:
    try:
        pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _first_unparsed(texts: Any) -> int:
    """Bisection with Arrow's own parser, so that no second definition of a number can disagree with it."""
    low, high = 0, len(texts)  # texts[:low] parses, texts[:high] does not
    while high - low > 1:
        middle = (low + high) // 2
        if _parses(texts[low:middle]):
            low = middle
        else:
            high = middle
    return low


def refuse_missing(values: NDArray[np.float64], *, name: str, first_row: int, origin: Origin, hint: str) -> None:
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        row = first_row + int(missing[0])
        raise origin.error("the value is missing (empty, null or NaN)", row=row, column=name, hint=hint)


def _first(mask: Any) -> int | None:
    """The position of the first true value."""
    position: int = pc.index(mask, True).as_py()
    return None if position < 0 else position
