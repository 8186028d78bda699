"""What a pipeline may have learnt of private rows before they came to a private estimator."""

from __future__ import annotations

import warnings

import numpy as np

from blindfit.algorithms.statistics.logistic import Floats

CLOSE = 1e-9
LEAST_ROWS = 10  # fewer may look scaled by chance


class PrivacyLeakWarning(UserWarning):
    """Something outside the promise has seen private rows."""


def warn_of_scaler(features: Floats) -> None:
    """Warns of columns that a scaler was fitted to on these very rows: no others have a mean of 0 and a deviation of 1,
    or begin at 0 and end at 1 with values between, to the last digits.
    """
    if len(features) < LEAST_ROWS:
        return
    varies = features.max(axis=0) > features.min(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers so large that no scaler has seen them
        standardised = (np.abs(features.mean(axis=0)) < CLOSE) & (np.abs(features.std(axis=0) - 1) < CLOSE)
    ends = (features.min(axis=0) == 0) & (np.abs(features.max(axis=0) - 1) < CLOSE)
    stretched = ends & ~np.isin(features, (0.0, features.max())).all(axis=0)
    if (found := varies & standardised).any():
        _warn(int(found.sum()), "have mean 0 and deviation 1")
    elif stretched.any() and ends[varies].all():
        _warn(int(stretched.sum()), "reach exactly from 0 to 1")


def _warn(columns: int, how: str) -> None:
    warnings.warn(
        f"{columns} columns of the private rows {how}: a scaler was fitted to these rows, and what it learnt of them "
        "(means, deviations, extremes) is no part of the promise; scale by feature_bounds that are known without the "
        "rows, or by public rows",
        PrivacyLeakWarning,
        stacklevel=4,
    )
