"""A fitted WALR model: standardise, append the constant, clip the row, score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.rehearsal import stamp_of, with_stamp
from blindfit.algorithms.statistics.linear import fields
from blindfit.algorithms.statistics.linear.fitted_model import LogisticModel
from blindfit.algorithms.statistics.linear.named_columns import Features
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant, clip_rows

FORMAT = "blindfit-walr-model-1"


@dataclass(frozen=True)
class WALRModel(LogisticModel):
    """A fitted WALR model.

    Args:
        standardiser: standardiser of the raw features; its kept columns have a weight each.
        weights: one for each kept column, then the intercept, if there is one.
        norm_bound: bound to which scored rows are clipped, like the training rows.
        privacy: privacy statement of the model's file.
        rehearsal: the stamp of a model that was rehearsed.
    """

    standardiser: Standardiser
    weights: NDArray[np.float64]
    intercept: bool
    norm_bound: float
    privacy: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    rehearsal: str = field(default="", compare=False)

    def rows(self, features: Features) -> NDArray[np.float64]:
        """Convert raw features (n, columns) to standardised rows, with the constant, clipped.

        Args:
            features: a table, in which other columns are ignored, or an array in the order of the model's columns.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        return clip_rows(self.standardise_rows(features), self.norm_bound)

    def standardise_rows(self, features: Features) -> NDArray[np.float64]:
        standardised = self.standardiser.transform(features)
        return append_constant(standardised) if self.intercept else standardised

    def scores(self, features: Features) -> NDArray[np.float64]:
        return self.rows(features) @ self.weights

    def standardised_weights(self) -> tuple[NDArray[np.float64], float]:
        return (self.weights[:-1], float(self.weights[-1])) if self.intercept else (self.weights, 0.0)

    @property
    def feature_weights(self) -> dict[str, float]:
        """Weights by name, for standardised features."""
        return dict(zip(self.standardiser.kept_columns, map(float, self.weights), strict=False))

    def to_dict(self) -> dict[str, Any]:
        content = {
            "format": FORMAT,
            "standardiser": self.standardiser.to_dict(),
            "norm_bound": self.norm_bound,
            "weights": self.feature_weights,
            "intercept": float(self.weights[-1]) if self.intercept else None,
        }
        return with_stamp(content, self.rehearsal)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> WALRModel:
        """Restore a model.

        Raises:
            DataError: a field is missing or wrong; the error names it.
        """
        fields.check_format(stored, FORMAT)
        standardiser = Standardiser.from_dict(fields.table(stored, "standardiser"))
        numbers = list(fields.weights(stored, standardiser.kept_columns))
        intercept = stored.get("intercept") is not None
        if intercept:
            numbers.append(fields.number(stored, "intercept"))
        norm_bound = fields.number(stored, "norm_bound")
        if norm_bound <= 0:
            raise DataError("norm_bound: not above 0")
        return cls(
            standardiser,
            np.array(numbers),
            intercept,
            norm_bound,
            fields.optional_table(stored, "privacy"),
            stamp_of(stored),
        )
