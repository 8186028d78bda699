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
    if isinstance(kind, pa.UuidType):
        return pa.array([None if key is None else str(key) for key in column.to_pylist()], pa.string())
    if pa.types.is_null(kind) or is_text(kind) or _is_whole(kind) or pa.types.is_date(kind):
        return column.cast(pa.string())
    what = "floating-point numbers, so that 7 may be written 7.0" if _has_fraction(kind) else f"of the type {kind}"
    raise origin.error(f"its values are {what}", column=name, hint="store it as text or as whole numbers")


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_whole(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


def _has_fraction(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def to_levels(column: Any, *, name: str, origin: Origin) -> Any:
    """Levels of a category as a `pyarrow.StringArray`, in one spelling, with null where there is no value."""
    kind = column.type
    texts = column.cast(pa.string()) if pa.types.is_boolean(kind) else _as_text(column, name, origin)
    return _without_none(one_spelling(texts.cast(pa.string())))


def _without_none(texts: Any) -> Any:
    """Null for what stands for no value."""
    return pc.if_else(pc.is_in(texts, value_set=pa.array(NO_VALUE)), None, texts)


def to_days(column: Any, *, name: str, first_row: int, origin: Origin) -> NDArray[np.float64]:
    """Days since 1970-01-01, shape (n,), of dates, timestamps, or texts in ISO 8601; NaN where there is none."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_text(column.type):
        column = _without_none(pc.utf8_trim_whitespace(column))
    if pa.types.is_integer(column.type):  # Arrow takes them, as microseconds
        dates = f"datasets.{origin.dataset}.dates"
        hint = f"write dates as text such as 2024-05-31; or remove {name} from {dates}, if it holds numbers of days"
        raise origin.error("its values are whole numbers, not dates", column=name, hint=hint)
    try:
        moments = pc.cast(column, pa.timestamp("us"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        row = first_row + _first_refused(column, pa.timestamp("us"))
        raise origin.error("not a date", row=row, column=name, hint="write it as 2024-05-31") from None
    microseconds = pc.cast(pc.cast(moments, pa.int64()), pa.float64(), safe=False)
    days: NDArray[np.float64] = microseconds.to_numpy(zero_copy_only=False) / 86_400e6
    return days


def to_labels(
    column: Any, *, name: str, binary: bool, first_row: int, origin: Origin, hint: str, positive: str | None = None
) -> NDArray[Any]:
    """Return labels, shape (n,): uint8 in {0, 1} where `binary`, else float64. A label is never missing.

    Args:
        hint: what to do about a label that is not a number.
        positive: the text of label 1; every other one is 0.
    """
    if positive is not None:
        texts = to_levels(column, name=name, origin=origin)
        if (row := _first(texts.is_null())) is not None:
            raise origin.error("the label is missing", row=first_row + row, column=name, hint=_WITHOUT_LABEL)
        found: NDArray[np.uint8] = pc.equal(texts, pa.scalar(positive)).to_numpy(zero_copy_only=False).astype(np.uint8)
        return found
    labels = to_numbers(column, name=name, first_row=first_row, origin=origin, hint=hint)
    refuse_missing(labels, name=name, first_row=first_row, origin=origin, hint=_WITHOUT_LABEL)
    if not binary:
        return labels
    strange = np.flatnonzero((labels != 0) & (labels != 1))
    if strange.size:
        row = first_row + int(strange[0])
        raise origin.error("the label is neither 0 nor 1", row=row, column=name, hint="write labels as 0 and 1")
    return labels.astype(np.uint8)


_WITHOUT_LABEL = "remove the rows without a label"


def to_shares(column: Any, *, name: str, first_row: int, origin: Origin) -> NDArray[np.uint64]:
    """Shares modulo 2^61 - 1, shape (n,). None is missing; floats, which would round them, are refused."""
    hint = "take the column as `blindfit split-labels` wrote it"
    if not (_is_whole(column.type) or is_text(column.type)):
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


def to_numbers(column: Any, *, name: str, first_row: int, origin: Origin, hint: str) -> NDArray[np.float64]:
    """Return numbers, shape (n,), with NaN where there is no value.

    Args:
        hint: what to do about a value that is not a number.
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
    if not is_text(column.type):
        raise origin.error(f"its values are of the type {column.type}, not numbers", column=name, hint=hint)
    texts = _without_none(pc.utf8_trim_whitespace(column))
    if not _parses(texts, pa.float64()):
        row = first_row + _first_refused(texts, pa.float64())
        raise origin.error("not a number", row=row, column=name, hint=hint)
    return pc.cast(texts, pa.float64())


def _parses(values: Any, kind: Any) -> bool:
    try:
        pc.cast(values, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _first_refused(values: Any, kind: Any) -> int:
    """Bisection with Arrow's own parser, so that no second definition of a number or date can disagree with it."""
    low, high = 0, len(values)  # values[:low] parses, values[:high] does not
    while high - low > 1:
        middle = (low + high) // 2
        if _parses(values[low:middle], kind):
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
