"""Bounds of features that are known without the rows. They scale features in trainings in which no row may move
another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.linear.scaling import LARGEST, Standardiser

ALL_OTHERS = "*"
LEAST_WIDTH = 1 / LARGEST
Bounds = tuple[float, float]


def read_bounds(texts: Sequence[str]) -> dict[str, Bounds]:
    """Return bounds by feature; `ALL_OTHERS` stands for the features without bounds of their own.

    Args:
        texts: bounds such as "age:0:110", "*:-1:1".

    Raises:
        ConfigError: a text is not of this form, or a feature is named twice.
    """
    found = dict(map(_bounds, texts))
    if len(found) < len(texts):
        raise ConfigError("feature_bounds: a feature is named twice")
    return found


def in_order(found: Mapping[str, Bounds], names: Sequence[str], option: str) -> list[Bounds]:
    """Return the bounds of these features, in order.

    Raises:
        ConfigError: a feature has no bounds.
    """
    missing = [name for name in names if name not in found and ALL_OTHERS not in found]
    if missing:
        raise ConfigError(
            f"{option}: {missing[0]} has no bounds",
            hint=f'"{missing[0]}:lowest:highest", or "*:lowest:highest" for all others',
        )
    return [found[name] if name in found else found[ALL_OTHERS] for name in names]


def scale_of(names: tuple[str, ...], bounds: Sequence[Bounds]) -> Standardiser:
    """Map every feature's bounds to -1 and 1."""
    middle, half = (tuple((high + sign * low) / 2 for low, high in bounds) for sign in (1, -1))
    return Standardiser(names, tuple(range(len(names))), middle, half)


def _bounds(text: str) -> tuple[str, Bounds]:
    """Return the bounds in name:lowest:highest; a name may hold colons itself."""
    name, *numbers = text.rsplit(":", 2)
    try:
        low, high = map(float, numbers)
    except ValueError:
        raise ConfigError(f"feature_bounds: {text!r} is not of the form name:lowest:highest") from None
    if not (name and -math.inf < low < high < math.inf):
        raise ConfigError(f"feature_bounds: {text!r} must have finite bounds, the lowest below the highest")
    if max(-low, high) > LARGEST or high - low < LEAST_WIDTH:
        raise ConfigError(
            f"feature_bounds: {text!r} must lie within -{LARGEST:g} and {LARGEST:g}, at least {LEAST_WIDTH:g} apart"
        )
    return name, (low, high)
