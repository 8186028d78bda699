"""Numbers and dates in the form of a csv file's dialect -> the same in the plain form that every reader converts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from blindfit.algorithms.columns import values
from blindfit.algorithms.columns.values import BadValue
from blindfit.parties.data.dialect import CsvDialect

# fmt: off
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)
# fmt: on
FIRST_SHORT_YEAR = 69  # first two-digit year of the last century, as in POSIX: 68 is 2068


def write_plain_numbers(column: Any, dialect: CsvDialect) -> Any:
    """Return the texts of numbers in the form 1234.5; a text without a digit stays as it is.

    Raises:
        BadValue: a text with a digit is not a number in the dialect's form.
    """
    texts = pc.utf8_trim_whitespace(column)
    has_digits = pc.match_substring_regex(texts, "[0-9]")
    is_other = pc.and_not(has_digits, pc.match_substring_regex(texts, dialect.number_pattern))
    if (row := values.first(is_other)) is not None:
        raise BadValue(f"not a number in the form {dialect.example_number}", row)
    plain = pc.replace_substring_regex(texts, dialect.grouping, "") if dialect.grouping else texts
    return pc.if_else(has_digits, pc.replace_substring(plain, dialect.decimal, "."), column)


def read_dates(column: Any, dialect: CsvDialect) -> Any:
    """Return the moments that texts write in the dialect's `date_format`, as timestamps.

    Raises:
        BadValue: a text is not a date in that form.
    """
    texts = pc.utf8_trim_whitespace(column)
    texts = pc.if_else(pc.equal(pc.binary_length(texts), 0), None, texts)
    found = pc.extract_regex(texts, dialect.date_pattern)
    problem, hint = f"not a date in the form {dialect.date_format}", "correct it, or correct date_format"
    if (row := values.first(pc.and_(texts.is_valid(), found.is_null()))) is not None:
        raise BadValue(problem, row, hint=hint)
    part = dict(zip((field.name for field in found.type), found.flatten(), strict=True))
    try:
        return values.to_moments(_in_iso(part)).cast(pa.timestamp("us"))
    except BadValue as error:
        raise BadValue(problem, error.row, hint=hint) from None


def _in_iso(part: dict[str, Any]) -> Any:
    day, month, year = _two_digits(part["day"]), _month(part), _year(part)
    date = pc.binary_join_element_wise(year, month, day, "-")
    if "hour" not in part and "half" not in part:
        return date
    hour = _two_digits(part["hour"]) if "hour" in part else _hour_of_half(part["half"], part["noon"])
    clock = [hour, part.get("minute", "00"), part.get("second", "00")]
    moment = pc.binary_join_element_wise(date, pc.binary_join_element_wise(*clock, ":"), "T")
    return pc.binary_join_element_wise(moment, part["fraction"], ".") if "fraction" in part else moment


def _two_digits(digits: Any) -> Any:
    return pc.utf8_lpad(digits, 2, "0")


def _month(part: dict[str, Any]) -> Any:
    if "month" in part:
        return _two_digits(part["month"])
    name = pc.utf8_lower(part["name"])
    place = pc.coalesce(
        pc.index_in(name, value_set=pa.array(MONTHS)), pc.index_in(name, value_set=pa.array([m[:3] for m in MONTHS]))
    )
    return _two_digits(pc.coalesce(pc.add(place, 1).cast(pa.string()), "0"))  # an unknown month becomes an invalid date


def _year(part: dict[str, Any]) -> Any:
    if "year" in part:
        return part["year"]
    short = part["short"]
    century = pc.if_else(pc.greater_equal(short.cast(pa.int64()), FIRST_SHORT_YEAR), "19", "20")
    return pc.binary_join_element_wise(century, short, "")


def _hour_of_half(half: Any, noon: Any) -> Any:
    """Return the hour from 0 to 23, or an invalid hour."""
    hour = half.cast(pa.int64())
    is_sound = pc.and_(pc.greater_equal(hour, 1), pc.less_equal(hour, 12))
    hour = pc.if_else(pc.equal(hour, 12), 0, hour)
    hour = pc.if_else(pc.equal(pc.utf8_lower(noon), "pm"), pc.add(hour, 12), hour)
    return _two_digits(pc.if_else(is_sound, hour, 99).cast(pa.string()))
