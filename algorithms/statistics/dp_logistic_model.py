"""A logistic model fitted under differential privacy of whole rows: scale, score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from blindfit.algorithms.statistics import fields
from blindfit.algorithms.statistics.logistic import Floats, sigmoid
from blindfit.algorithms.statistics.named_columns import Features
from blindfit.algorithms.statistics.scaling import Standardiser

FORMAT = "blindfit-dp-logistic-1"


@dataclass(frozen=True)
class DPLogisticModel:
    """Args:
    scale: of declared bounds or of public rows, never of the private ones; a weight for each kept column.
    """

    scale: Standardiser
    weights: tuple[float, ...]
    intercept: float

    def scores(self, features: Features) -> Floats:
        """Of raw features (n, columns).

        Args:
            features: a table, of which other columns are ignored, or an array in the order of the model's columns.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        scores: Floats = self.scale.transform(features) @ np.array(self.weights) + self.intercept
        return scores

    def probabilities(self, features: Features) -> Floats:
        return sigmoid(self.scores(features))

    @property
    def feature_weights(self) -> dict[str, float]:
        """By name, for scaled features."""
        return dict(zip(self.scale.kept_columns, self.weights, strict=True))

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "scale": self.scale.to_dict(),
            "weights": self.feature_weights,
            "intercept": self.intercept,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> DPLogisticModel:
        """Raises:
        DataError: names the field that is missing or not what it must be.
        """
        fields.check_format(stored, FORMAT)
        scale = Standardiser.from_dict(fields.table(stored, "scale"))
        weights = fields.weights(stored, scale.kept_columns)
        return cls(scale, weights, fields.number(stored, "intercept"))
