"""Arrow arrays of any type -> numbers, moments and levels; every reader and every scorer converts with these functions.

Arrow stands here for arrays in memory; no function of this package reads a file.

    kind       takes                                                     makes
    number     whole numbers, floats, decimals, booleans, texts          float64; NaN where there is no value
    boolean    booleans, 0 and 1, the texts true and false               1.0 and 0.0; NaN
    date       dates, timestamps, texts in ISO 8601 (see `MOMENT`)       days since 1970-01-01 in UTC; NaN
    category   texts, booleans, whole numbers, dates, UUIDs              texts in one spelling; null

An empty text, null, and a NaN among numbers stand for a missing value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blindfit.algorithms.columns.record import Kind
from blindfit.algorithms.columns.spelling import one_spelling
from blindfit.algorithms.errors import DataError

Floats = NDArray[np.float64]
DAY_US = 86_400_000_000
FIRST_US = -719_162 * DAY_US  # 0001-01-01
END_US = 2_932_897 * DAY_US  # after 9999-12-31

#: The texts that are dates or moments; RE2 and Python's `re` read the pattern alike.
MOMENT = (
    r"^(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<hour>[01][0-9]|2[0-3])"
    r"(?::(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9])(?:\.(?P<fraction>[0-9]{1,9}))?)?)?"
    r"(?P<zone>Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?$"
)
NOT_A_DATE = "not a date"
HINT_DATES = "write it as 2024-05-31, or as 2024-05-31T14:30:00+02:00"


class BadValue(DataError):
    """A value cannot be converted.

    Attributes:
        problem: the fault, without the value.
        row: position in the array, counted from 0; None if the type of the whole column is wrong.
    """

    def __init__(self, problem: str, row: int | None = None, *, hint: str = "") -> None:
        super().__init__(problem if row is None else f"row {row}: {problem}", hint=hint)
        self.problem, self.row = problem, row


def plain(column: Any) -> Any:
    """Return the column as one array of a simple type: without dictionaries, runs, views and known extensions."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain(column.dictionary).take(column.indices)
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    if isinstance(kind, pa.UuidType):
        return pa.array([None if key is None else str(key) for key in column.to_pylist()], pa.string())
    if isinstance(kind, pa.Bool8Type):
        return column.cast(pa.bool_())
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    return column.cast(pa.float32()) if pa.types.is_float16(kind) else column


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_boolean(kind: Any) -> bool:
    """Return whether a column of this Arrow type holds booleans, in any encoding."""
    while pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return bool(pa.types.is_boolean(kind) or isinstance(kind, pa.Bool8Type))


# --- numbers --------------------------------------------------------------------------------------


def to_numbers(column: Any) -> Floats:
    """Return the numbers; raise BadValue if a value is not a finite number."""
    column = plain(column)
    kind = column.type
    if pa.types.is_decimal(kind):  # Arrow rounds a decimal otherwise than its text
        column = column.cast(pa.string())
        kind = column.type
    if is_text(kind):
        numbers = _numbers_in_texts(_without_empty(pc.utf8_trim_whitespace(column)))
    elif pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = pc.cast(column, pa.float64(), safe=False)
    else:
        raise _wrong_type(column, "numbers")
    values: Floats = numbers.to_numpy(zero_copy_only=False)
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        raise BadValue("the number is infinite", int(infinite[0]), hint="correct it or leave it empty")
    return values


def _numbers_in_texts(texts: Any) -> Any:
    """Return the numbers; the words true and false are 1 and 0, as booleans of other sources are."""
    try:
        return _parse(texts, pa.float64(), "not a number")
    except BadValue:
        words = pc.index_in(pc.utf8_lower(texts), value_set=pa.array(["false", "true"]))
        if words.null_count == len(words):
            raise
        return _parse(pc.coalesce(words.cast(pa.string()), texts), pa.float64(), "not a number")


def to_truths(column: Any) -> Floats:
    """Return 1.0 and 0.0; raise BadValue if a value is neither true nor false."""
    hint = "write it as true or false, or as 1 or 0"
    try:
        values = to_numbers(column)
    except BadValue as error:
        if error.row is None:
            raise
        raise BadValue("neither true nor false", error.row, hint=hint) from None
    strange = np.flatnonzero(~np.isin(values, (0.0, 1.0)) & ~np.isnan(values))
    if strange.size:
        raise BadValue("neither true nor false", int(strange[0]), hint=hint)
    return values


# --- dates ----------------------------------------------------------------------------------------


def to_days(column: Any) -> Floats:
    """Return days; raise BadValue if a value is not a date of the years 1 to 9999."""
    moments = to_moments(column)
    days = pc.cast(moments, pa.float64(), safe=False).to_numpy(zero_copy_only=False) / float(DAY_US)
    return np.asarray(days, np.float64)


def to_moments(column: Any) -> Any:
    """Return microseconds since 1970-01-01 in UTC, as an array of whole numbers; finer parts are cut off.

    A moment without a zone counts as UTC.

    Raises:
        BadValue: a value is not a date of the years 1 to 9999.
    """
    column = plain(column)
    kind = column.type
    if is_text(kind):
        return _in_range(_moments_in_texts(_without_empty(pc.utf8_trim_whitespace(column))))
    if pa.types.is_null(kind):
        return column.cast(pa.int64())
    if pa.types.is_integer(kind):  # Arrow would take them for microseconds
        hint = "write dates as text such as 2024-05-31, or as a type of dates; leave numbers of days out of `dates`"
        raise BadValue("its values are whole numbers, not dates", hint=hint)
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        raise _wrong_type(column, "dates")
    unit = {pa.date32(): "D", pa.date64(): "ms"}.get(kind) or kind.unit
    width = pa.int32() if unit == "D" else pa.int64()
    numbers = column.view(width).cast(pa.int64())
    if unit == "ns":
        values = numbers.fill_null(0).to_numpy(zero_copy_only=False) // 1000
        return _in_range(pa.array(values, mask=numbers.is_null().to_numpy(zero_copy_only=False)))
    steps = {"D": DAY_US, "s": 1_000_000, "ms": 1000, "us": 1}[unit]
    _refuse_outside(numbers, FIRST_US // steps, END_US // steps)
    return pc.multiply(numbers, pa.scalar(steps, pa.int64()))


def _moments_in_texts(texts: Any) -> Any:
    fields = pc.extract_regex(texts, MOMENT)
    unlike = pc.and_(texts.is_valid(), fields.is_null())
    if (row := first(unlike)) is not None:
        raise BadValue(NOT_A_DATE, row, hint=HINT_DATES)
    part = dict(zip((field.name for field in fields.type), fields.flatten(), strict=True))
    days = _parse(part["date"], pa.date32(), NOT_A_DATE, HINT_DATES).cast(pa.int32()).cast(pa.int64())
    if not pc.any(pc.greater(pc.binary_length(part["hour"]), 0), min_count=0).as_py():
        return pc.multiply(days, DAY_US)
    clock = pc.add(
        pc.add(pc.multiply(_whole(part["hour"]), 3_600_000_000), pc.multiply(_whole(part["minute"]), 60_000_000)),
        pc.multiply(_whole(part["second"]), 1_000_000),
    )
    fraction = _whole(pc.utf8_slice_codeunits(pc.utf8_rpad(part["fraction"], 6, "0"), 0, 6))
    zone = pc.replace_substring(pc.replace_substring(part["zone"], "Z", ""), ":", "")
    minutes = pc.add(
        pc.multiply(_whole(pc.utf8_slice_codeunits(zone, 1, 3)), 60), _whole(pc.utf8_slice_codeunits(zone, 3, 5))
    )
    sign = pc.if_else(pc.starts_with(zone, "-"), -1, 1)
    offset = pc.multiply(pc.multiply(sign, minutes), 60_000_000)
    return pc.subtract(pc.add(pc.multiply(days, DAY_US), pc.add(clock, fraction)), offset)


def _whole(digits: Any) -> Any:
    """Return the numbers that these digits write; 0 for no digits."""
    return pc.cast(pc.if_else(pc.equal(pc.binary_length(digits), 0), "0", digits), pa.int64())


def _in_range(moments: Any) -> Any:
    _refuse_outside(moments, FIRST_US, END_US)
    return moments


def _refuse_outside(numbers: Any, first_one: int, end: int) -> None:
    outside = pc.or_(pc.less(numbers, first_one), pc.greater_equal(numbers, end))
    if (row := first(outside)) is not None:
        raise BadValue("the date is outside the years 1 to 9999", row, hint="correct it or leave it empty")


# --- texts ----------------------------------------------------------------------------------------


def to_texts(column: Any) -> Any:
    """Return texts as they stand, as a `pyarrow.StringArray`.

    Raises:
        BadValue: the values have no unique text: 7 may be written 7.0.
    """
    column = plain(column)
    kind = column.type
    if pa.types.is_null(kind) or is_text(kind) or _is_whole(kind) or pa.types.is_date(kind):
        if pa.types.is_date(kind):
            to_moments(column)  # of the years that have four digits
        return column.cast(pa.string())
    hint = "store it as text or as whole numbers"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        what = "its values are floating-point numbers, so that 7 may be written 7.0"
    else:
        what = f"its values are of the type {kind}"
    raise BadValue(what, hint=hint)


def to_fields(column: Any) -> Any:
    """Do as `to_texts`, for a record linkage; a moment at the beginning of a day in UTC is that day."""
    column = plain(column)
    if pa.types.is_timestamp(column.type):
        return pa.array([_iso(us) for us in to_moments(column).to_pylist()], pa.string())
    return to_texts(column)


def to_levels(column: Any) -> Any:
    """Return the levels of a category in one spelling, as a `pyarrow.StringArray`; null where a value is missing.

    Raises:
        BadValue: as `to_texts`.
    """
    column = plain(column)
    texts = column.cast(pa.string()) if pa.types.is_boolean(column.type) else to_texts(column)
    return _without_empty(one_spelling(texts))


def to_known_levels(column: Any, known: Sequence[str]) -> Any:
    """Do as `to_levels`, for a scorer that knows training's levels; its table may have them in another type.

    A table often holds the same column in another type than the table of training: a whole number as a float, because
    the column lacks values, or True where a csv file had "True". Such values get the spelling of the level that is
    equal to them.
    """
    column = plain(column)
    kind = column.type
    if pa.types.is_boolean(kind):
        return _respell(column.cast(pa.string()), known, lambda level: level.lower())
    if _is_whole(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = to_numbers(column)
        is_float = pa.types.is_floating(kind)
        texts = pa.array(map(_shortest, numbers.tolist()), pa.string()) if is_float else column.cast(pa.string())
        return _respell(texts, known, _as_number)
    return to_fields(column) if pa.types.is_timestamp(kind) else to_levels(column)


def _respell(texts: Any, known: Sequence[str], meaning: Callable[[str], Any]) -> Any:
    """Replace each text by the one level that means the same; texts that no level or several equal stay as they are."""
    same: dict[Any, list[str]] = {}
    for level in known:
        same.setdefault(meaning(level), []).append(level)
    distinct = pc.unique(texts.drop_null()).to_pylist()
    others = {
        text: same[meaning(text)][0]
        for text in distinct
        if text not in known and len(same.get(meaning(text), [])) == 1 and meaning(text) is not None
    }
    if not others:
        return texts
    return pa.array([others.get(text, text) for text in texts.to_pylist()], pa.string())


def _as_number(text: str) -> Decimal | None:
    """Return exactly the number that a text writes: two long keys may be one float."""
    try:
        (number,) = to_numbers(pa.array([text])).tolist()
        return None if np.isnan(number) else Decimal(text.strip())
    except (BadValue, InvalidOperation):  # the texts true and false write no number
        return None


def _shortest(number: float) -> str | None:
    if np.isnan(number):
        return None
    return str(int(number)) if number.is_integer() else repr(number)


def _iso(us: int | None) -> str | None:
    if us is None:
        return None
    text = str(np.datetime64(us, "us"))
    return text.removesuffix(".000000").removesuffix("T00:00:00")


# --- parts of the above ---------------------------------------------------------------------------


def _without_empty(texts: Any) -> Any:
    return pc.if_else(pc.equal(pc.binary_length(texts), 0), None, texts)


def _is_whole(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


def _wrong_type(column: Any, wanted: str) -> BadValue:
    return BadValue(f"its values are of the type {column.type}, not {wanted}")


def _parse(texts: Any, kind: Any, problem: str, hint: str = "") -> Any:
    try:
        return pc.cast(texts, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise BadValue(problem, _first_refused(texts, kind), hint=hint) from None


def _parses(values: Any, kind: Any) -> bool:
    try:
        pc.cast(values, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _first_refused(values: Any, kind: Any) -> int:
    """Find the row by bisection with Arrow's own parser, so that no second definition can disagree with it."""
    low, high = 0, len(values)  # values[:low] parses, values[:high] does not
    while high - low > 1:
        middle = (low + high) // 2
        if _parses(values[low:middle], kind):
            low = middle
        else:
            high = middle
    return low


def first(mask: Any) -> int | None:
    """Return the position of the first true value; None if all are false."""
    position: int = pc.index(mask, True).as_py()
    return None if position < 0 else position


CONVERTERS: dict[Kind, Callable[[Any], Floats]] = {"number": to_numbers, "boolean": to_truths, "date": to_days}
