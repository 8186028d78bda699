"""Rows and results that the parts of a label-dp job pass on."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.estimators.label_noise import NoiseProfile
from blindfit.algorithms.statistics.label_dp.fit import LabelRegressionFit
from blindfit.algorithms.statistics.linear.logistic import Floats


@dataclass(frozen=True, repr=False)
class Rows:
    """Training rows, then held-out rows; labels are requested for all of them."""

    ids: list[str]
    train_features: Floats
    test_features: Floats
    columns: tuple[str, ...]
    table: TableRecord | None = None  # record of the table's columns

    @property
    def n_trained(self) -> int:
        return len(self.train_features)


@dataclass(frozen=True, repr=False)
class Fitted:
    """The result of the fit.

    Args:
        labels: labels of all rows in the form of the training; NaN for a withheld label.
        evaluation: figures of held-out rows, as far as released labels show them; empty without held-out rows.
        noise_std: standard deviation of one label's noise: the mean over the released labels, or over the range if that
            mean is not known.
    """

    fit: LabelRegressionFit
    profile: NoiseProfile
    labels: Floats
    test_predictions: Floats
    evaluation: dict[str, float | int]
    noise_std: float
