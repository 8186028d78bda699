"""A mechanism from its public parameters, as they come from a file or a peer: every field is checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.errors import ConfigError, DataError, RangeError
from blindfit.algorithms.privacy.label_mechanisms.base import LabelGrid, LabelMechanism
from blindfit.algorithms.privacy.label_mechanisms.gaussian import Gaussian
from blindfit.algorithms.privacy.label_mechanisms.laplace import Laplace
from blindfit.algorithms.privacy.label_mechanisms.rp_banded import RPBanded
from blindfit.algorithms.privacy.label_mechanisms.rp_with_prior import RPWithPrior
from blindfit.algorithms.privacy.label_mechanisms.rr_on_bins import MOST_NODES, RROnBins
from blindfit.algorithms.privacy.label_mechanisms.staircase import Staircase
from blindfit.algorithms.privacy.label_mechanisms.unbiased import MOST_INPUTS, MOST_WEIGHTS, Unbiased

_COMMON = ("mechanism", "lo", "hi", "cells", "epsilon")


@dataclass(frozen=True)
class _Fields:
    """Typed reading of a dictionary with exactly these keys."""

    content: dict[str, Any]

    def integer(self, name: str) -> int:
        return _integer(name, self.content[name])

    def real(self, name: str) -> float:
        value = self.content[name]
        if type(value) not in (int, float) or abs(value) > 1e300 or not math.isfinite(value):
            raise DataError(f"label mechanism: {name} must be a finite number")
        return float(value)

    def boolean(self, name: str) -> bool:
        if type(self.content[name]) is not bool:
            raise DataError(f"label mechanism: {name} must be true or false")
        return bool(self.content[name])

    def integers(self, name: str, most: int) -> tuple[int, ...]:
        return _integers(name, self.content[name], most)

    def matrix(self, name: str, max_rows: int, most: int) -> tuple[tuple[int, ...], ...]:
        rows = self.content[name]
        if type(rows) is not list or len(rows) > max_rows:
            raise DataError(f"label mechanism: {name} must be a list of at most {max_rows} rows")
        return tuple(_integers(name, row, most) for row in rows)


def _integer(name: str, value: Any) -> int:
    if type(value) is not int or abs(value) >= 2**62:
        raise DataError(f"label mechanism: {name} must be an integer below 2^62")
    return value


def _integers(name: str, values: Any, most: int) -> tuple[int, ...]:
    if type(values) is not list or len(values) > most:
        raise DataError(f"label mechanism: {name} must be a list of at most {most} integers")
    return tuple(_integer(name, value) for value in values)


Reader = Callable[[LabelGrid, float, _Fields], LabelMechanism]

_READERS: dict[str, tuple[tuple[str, ...], Reader]] = {
    "laplace": ((), lambda grid, epsilon, _: Laplace(grid, epsilon)),
    "gaussian": (("delta",), lambda grid, epsilon, own: Gaussian(grid, epsilon, own.real("delta"))),
    "staircase": (("high_steps",), lambda grid, epsilon, own: Staircase(grid, epsilon, own.integer("high_steps"))),
    "rr-on-bins": (
        ("starts", "values"),
        lambda grid, epsilon, own: RROnBins(
            grid, epsilon, own.integers("starts", MOST_NODES), own.integers("values", MOST_NODES)
        ),
    ),
    "unbiased": (
        ("inputs", "outputs", "weights", "rounds_down"),
        lambda grid, epsilon, own: Unbiased(
            grid,
            epsilon,
            own.integers("inputs", MOST_INPUTS),
            own.integers("outputs", MOST_WEIGHTS),
            own.matrix("weights", MOST_INPUTS, MOST_WEIGHTS),
            own.boolean("rounds_down"),
        ),
    ),
    "rp-with-prior": (
        ("low", "high", "half_steps"),
        lambda grid, epsilon, own: RPWithPrior(grid, epsilon, *_interval(own)),
    ),
    "rp-banded": (
        ("low", "high", "half_steps"),
        lambda grid, epsilon, own: RPBanded(grid, epsilon, *_interval(own)),
    ),
}


def _interval(own: _Fields) -> tuple[int, int, int]:
    return own.integer("low"), own.integer("high"), own.integer("half_steps")


def from_parameters(parameters: dict[str, Any]) -> LabelMechanism:
    """Return the mechanism of these parameters, which are checked.

    Args:
        parameters: result of `LabelMechanism.parameters`, from a file or a peer.

    Raises:
        DataError: a field is missing or wrong, or a claim of the parameters does not hold.

    Example:
        >>> parameters = {"mechanism": "laplace", "lo": 0.0, "hi": 10.0, "cells": 65536, "epsilon": 1.0}
        >>> label_mechanisms.from_parameters(parameters).epsilon
        1.0
    """
    name = parameters.get("mechanism") if type(parameters) is dict else None
    if type(name) is not str or name not in _READERS:
        raise DataError(f"label mechanism: mechanism must be one of {', '.join(_READERS)}")
    own_names, read = _READERS[name]
    if parameters.keys() != {*_COMMON, *own_names}:
        raise DataError(f"label mechanism: {name} has exactly the fields {', '.join((*_COMMON, *own_names))}")
    own = _Fields(parameters)
    try:
        grid = LabelGrid(own.real("lo"), own.real("hi"), own.integer("cells"))
        return read(grid, own.real("epsilon"), own)
    except (ConfigError, RangeError) as error:
        raise DataError(f"label mechanism: {error.message}", hint=error.hint) from error
