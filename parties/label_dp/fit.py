"""Rows and results that the parts of a label-dp job pass on."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.estimators.label_noise import NoiseProfile
from blindfit.algorithms.statistics.label_dp.fit import LabelRegressionFit
from blindfit.algorithms.statistics.linear.logistic import Floats


@dataclass(frozen=True, repr=False)
class Rows:
    """The training rows first; labels are asked for of all of them."""

    ids: list[str]
    train_features: Floats
    test_features: Floats
    columns: tuple[str, ...]
    table: TableRecord | None = None  # what the columns were made of

    @property
    def n_trained(self) -> int:
        return len(self.train_features)


@dataclass(frozen=True, repr=False)
class Fitted:
    """Args:
    labels: of all rows, as they were trained on; NaN where withheld.
    evaluation: on held-out rows, as far as released labels can tell; empty where none was held out.
    noise_std: of one label, the mean over the released ones where it can be told, else over the range.
    """

    fit: LabelRegressionFit
    profile: NoiseProfile
    labels: Floats
    test_predictions: Floats
    evaluation: dict[str, float | int]
    noise_std: float
