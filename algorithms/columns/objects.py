"""Columns of Python's objects, one by one: what a database's driver returns, and lists and data frames of mixed types.

Each function returns an Arrow array of one type, independent of the types of the values, so that all batches of a table
agree; values.py converts it further.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import math
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from blindfit.algorithms.columns import values as arrow
from blindfit.algorithms.columns.record import Kind
from blindfit.algorithms.columns.values import BadValue

_NO_VALUE = frozenset({"NAType", "NaTType", "MaskedConstant"})  # of pandas, which is not imported here, and NumPy
_WITH_ONE_TEXT = (uuid.UUID, ipaddress.IPv4Address, ipaddress.IPv6Address, dt.time)
_NETWORKS = (ipaddress.IPv4Network, ipaddress.IPv6Network, ipaddress.IPv4Interface, ipaddress.IPv6Interface)
_NOT_UTF8 = "the text is not UTF-8"


def is_missing(value: Any) -> bool:
    """Return whether the object stands for no value: None, NaN, pandas' NA and NaT, a masked element of NumPy."""
    if value is None or type(value).__name__ in _NO_VALUE:
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and math.isnan(value)


def numbers(values: Sequence[Any]) -> Any:
    """Return float64, null where a value is missing.

    Raises:
        BadValue: a value is not a number.
    """
    quick = _of_one_type(values, int, float, bool)
    if quick is not None:
        return pa.array(arrow.to_numbers(quick), from_pandas=True)
    found = _each(values, _number)
    rows = [row for row, value in enumerate(found) if isinstance(value, str)]
    if rows:
        try:
            parsed = arrow.to_numbers(pa.array([found[row] for row in rows], pa.string()))
        except BadValue as error:
            raise BadValue(error.problem, rows[error.row or 0], hint=error.hint) from None
        for row, number in zip(rows, parsed.tolist(), strict=True):
            found[row] = number
    return pa.array(found, pa.float64(), from_pandas=True)


def texts(values: Sequence[Any]) -> Any:
    """Return texts as they stand, null where a value is missing.

    Raises:
        BadValue: a value has no unique text.
    """
    quick = _of_one_type(values, str, int, float)
    if quick is None:
        return pa.array(_each(values, _text), pa.string())
    if pa.types.is_floating(quick.type) and quick.null_count == len(quick):
        return pa.nulls(len(quick), pa.string())
    return arrow.to_texts(quick)


def moments(values: Sequence[Any]) -> Any:
    """Return timestamps in microseconds, null where a value is missing.

    Raises:
        BadValue: a value is not a date of the years 1 to 9999.
    """
    quick = _of_one_type(values, str, int, dt.date)
    found = pa.array(_each(values, _moment), pa.int64()) if quick is None else arrow.to_moments(quick)
    return found.cast(pa.timestamp("us"))


def truths(values: Sequence[Any]) -> Any:
    """Return 1.0 for true, 0.0 for false, null where a value is missing; raise BadValue for another value."""
    words = {"true": 1.0, "false": 0.0}
    return numbers([words.get(v.strip().lower(), v) if isinstance(v, str) else v for v in values])


MAKERS: dict[Kind, Callable[[Sequence[Any]], Any]] = {
    "number": numbers,
    "boolean": truths,
    "date": moments,
    "category": texts,
}


def arrow_type(kind: Kind) -> Any:
    """Return the type of what MAKERS returns for a kind."""
    return {"date": pa.timestamp("us"), "category": pa.string()}.get(kind, pa.float64())


def common_type(values: Sequence[Any]) -> Any:
    """Return the Arrow type that all of these objects have; text if they have several."""
    found = [value for value in values if not is_missing(value)]
    for kinds, common in (
        ((bool, np.bool_), pa.bool_()),
        ((bool, int, float, Decimal, np.bool_, np.integer, np.floating), pa.float64()),
        ((dt.date, np.datetime64), pa.timestamp("us")),
    ):
        if all(isinstance(value, kinds) for value in found):
            return common if found else pa.null()
    return pa.string()


def _of_one_type(values: Sequence[Any], *kinds: type) -> Any:
    """Return Arrow's own array of values that are all of one of these types or None; None for all other values."""
    found = {type(value) for value in values} - {type(None)}
    if not found:
        return pa.nulls(len(values), pa.string())
    if len(found) > 1 or not found <= set(kinds):
        return None
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):  # a whole number of 65 bits, half a character
        return None


def _each(values: Sequence[Any], convert: Callable[[Any], Any]) -> list[Any]:
    found: list[Any] = []
    for row, value in enumerate(values):
        try:
            found.append(None if is_missing(value) else convert(value))
        except BadValue as error:
            raise BadValue(error.problem, row, hint=error.hint) from None
    return found


def _number(value: Any) -> float | str:
    """Return the number, or a text that may be one."""
    if isinstance(value, str):
        return _sound(value)
    if not isinstance(value, bool | int | float | Decimal | np.bool_ | np.integer | np.floating):
        raise BadValue("not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    except ValueError:  # a signalling NaN of Decimal
        number = math.nan
    if math.isinf(number):
        raise BadValue("the number is infinite", hint="correct it or leave it empty")
    return number


def _text(value: Any) -> str:
    if isinstance(value, str):
        return _sound(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer) or (isinstance(value, Decimal) and value.as_tuple().exponent == 0):
        try:
            return str(int(value))
        except ValueError:  # of thousands of digits
            raise BadValue("the whole number is too long for a text") from None
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, _WITH_ONE_TEXT + _NETWORKS):
        return str(value)
    raise BadValue("neither a text nor a whole number", hint="store it as text or as whole numbers")


def _sound(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadValue(_NOT_UTF8, hint="write the text again in UTF-8") from None
    return text


def _moment(value: Any) -> int | None:
    """Return microseconds since 1970-01-01 in UTC; None for an empty text."""
    if isinstance(value, np.datetime64) and np.datetime_data(value)[0] not in ("D", "s", "ms", "us", "ns"):
        value = value.astype("datetime64[us]")
    if isinstance(value, dt.datetime):
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC if value.tzinfo else None)
        found = pa.array([(value - epoch) // dt.timedelta(microseconds=1)]).cast(pa.timestamp("us"))
    elif isinstance(value, np.datetime64):
        found = pa.array(np.array([value]))  # Arrow takes no day of NumPy from a list
    elif isinstance(value, str | dt.date):
        found = pa.array([_sound(value) if isinstance(value, str) else value])
    else:
        raise BadValue(arrow.NOT_A_DATE, hint=arrow.HINT_DATES)
    moment: int | None = arrow.to_moments(found)[0].as_py()
    return moment
