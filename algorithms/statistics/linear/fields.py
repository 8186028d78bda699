"""Readers of a model file's fields: every field exists and has its type, or the error names it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from blindfit.algorithms.errors import DataError


def check_format(stored: Any, name: str) -> None:
    """Raise DataError if this is not a table, or a table of another format."""
    if not isinstance(stored, Mapping) or stored.get("format") != name:
        raise DataError(f"format: not {name}")


def table(stored: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = stored.get(name)
    if not isinstance(value, Mapping):
        raise DataError(f"{name}: missing or not a table")
    return value


def optional_table(stored: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table, or an empty one if the field is missing."""
    return table(stored, name) if name in stored else {}


def number(stored: Mapping[str, Any], name: str) -> float:
    value = stored.get(name)
    if not is_number(value):
        raise DataError(f"{name}: missing or not a finite number")
    return float(value)


def optional_number(stored: Mapping[str, Any], name: str) -> float | None:
    """Return a number, or None for null; the field must exist all the same."""
    return None if name in stored and stored[name] is None else number(stored, name)


def text(stored: Mapping[str, Any], name: str) -> str:
    value = stored.get(name)
    if not isinstance(value, str):
        raise DataError(f"{name}: missing or not a text")
    return value


def texts(stored: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = stored.get(name)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise DataError(f"{name}: missing or not a list of texts")
    return tuple(value)


def weights(stored: Mapping[str, Any], kept_columns: Sequence[str]) -> tuple[float, ...]:
    """Return one weight for each kept column, in their order."""
    found = table(stored, "weights")
    if tuple(found) != tuple(kept_columns):
        raise DataError("weights: not one for each kept column, in their order")
    return tuple(number(found, name) for name in found)


def weights_by_name(stored: Mapping[str, Any], kept_columns: Sequence[str]) -> tuple[float, ...]:
    """Return one weight for each kept column, from a file with any order."""
    found = table(stored, "weights")
    if set(found) != set(kept_columns):
        raise DataError("weights: not one for each column that is kept")
    return tuple(number(found, name) for name in kept_columns)


def is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer past every float
        return False
