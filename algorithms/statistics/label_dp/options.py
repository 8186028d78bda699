"""The regressors that may be fitted to noisy labels, and their options.

All of them minimise the squared error, so they estimate the labels' conditional mean: noise of mean zero averages out,
for every law. A robust or absolute loss would estimate something else, and the noise would bias it. Each of them can be
written as numbers. k nearest neighbours is not here, because its model is the training rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.linear.fields import is_number

OptionValue = float | int | str
LARGEST_INTEGER = 2**31 - 1


@dataclass(frozen=True)
class Number:
    """A number of an interval that includes its ends."""

    default: float
    low: float
    high: float
    above_low: bool = False  # the lower end is not included

    def read(self, value: object) -> OptionValue:
        whole = isinstance(self.default, int)
        if not is_number(value) or (whole and not isinstance(value, int)):
            raise ValueError(f"must be a{' whole' if whole else ''} number")
        if not self.low <= value <= self.high or (self.above_low and value == self.low):
            raise ValueError(f"must be {'above' if self.above_low else 'from'} {self.low:g} to {self.high:g}")
        return value if whole else float(value)


@dataclass(frozen=True)
class Widths:
    """The widths of hidden layers, as a text such as "64,32"."""

    default: str

    def read(self, value: object) -> OptionValue:
        if not isinstance(value, str) or not re.fullmatch(r"[1-9]\d{0,3}(, ?[1-9]\d{0,3}){0,3}", value):
            raise ValueError('must be one to four widths below 10,000, such as "64,32"')
        return value


# --- the list ---------------------------------------------------------------------------------------

_ALPHA = Number(1.0, 0, 1e12)
_L1_ALPHA = Number(1.0, 0, 1e12, above_low=True)
_ITERATIONS = Number(1000, 1, 1_000_000)
_TREES = {"n_estimators": Number(100, 1, 500), "min_samples_leaf": Number(50, 1, LARGEST_INTEGER)}


RegressorName = Literal[
    "linear", "ridge", "lasso", "elastic-net", "decision-tree", "random-forest", "gradient-boosting", "mlp"
]
REGRESSORS: Mapping[str, Mapping[str, Number | Widths]] = {
    "linear": {},
    "ridge": {"alpha": _ALPHA},
    "lasso": {"alpha": _L1_ALPHA, "max_iter": _ITERATIONS},
    "elastic-net": {"alpha": _L1_ALPHA, "l1_ratio": Number(0.5, 0, 1, above_low=True), "max_iter": _ITERATIONS},
    "decision-tree": {"max_depth": Number(4, 1, 12), "min_samples_leaf": Number(100, 1, LARGEST_INTEGER)},
    "random-forest": {
        **_TREES,
        "max_depth": Number(6, 1, 12),
        "max_features": Number(1.0, 0, 1, above_low=True),
    },
    "gradient-boosting": {
        **_TREES,
        "max_depth": Number(3, 1, 12),
        "learning_rate": Number(0.1, 0, 1, above_low=True),
        "subsample": Number(1.0, 0, 1, above_low=True),
    },
    "mlp": {
        "hidden_layer_sizes": Widths("32"),
        "alpha": Number(1e-4, 0, 1e12),
        "learning_rate_init": Number(1e-3, 0, 1, above_low=True),
        "max_iter": Number(50, 1, 10_000),
    },
}


def check_options(regressor: str, options: Mapping[str, Any]) -> dict[str, OptionValue]:
    """Return every option of the regressor, under scikit-learn's names: as given, or its default.

    Raises:
        ConfigError: the regressor or option does not exist, or the option may not have this value.
    """
    known = _regressor(regressor)
    strangers = sorted(options.keys() - known.keys())
    if strangers:
        raise ConfigError(f"options.{strangers[0]}: {regressor} has {', '.join(known) or 'no options'}")
    whole: dict[str, OptionValue] = {}
    for name, option in known.items():
        try:
            whole[name] = option.read(options[name]) if name in options else option.default
        except ValueError as error:
            raise ConfigError(f"options.{name}: {error}") from None
    return whole


def widths_of(text: str) -> tuple[int, ...]:
    """Return the widths of a text: "64,32" is (64, 32)."""
    return tuple(map(int, text.split(",")))


def _regressor(name: str) -> Mapping[str, Number | Widths]:
    try:
        return REGRESSORS[name]
    except KeyError:
        raise ConfigError(f"regressor: {name!r} is not one of {', '.join(REGRESSORS)}") from None
