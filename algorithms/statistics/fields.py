"""Reading what a model file holds: every field is there and of its type, or the error names it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

from blindfit.algorithms.errors import DataError


def table(stored: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = stored.get(name)
    if not isinstance(value, Mapping):
        raise DataError(f"{name}: missing or not a table")
    return value


def number(stored: Mapping[str, Any], name: str) -> float:
    value = stored.get(name)
    if not is_number(value):
        raise DataError(f"{name}: missing or not a finite number")
    return float(value)


def optional_number(stored: Mapping[str, Any], name: str) -> float | None:
    """None stands for none; the name must be there all the same."""
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


def is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer past every float
        return False
