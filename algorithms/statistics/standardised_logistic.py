"""A logistic model of standardised features: a weight for each kept column, and an intercept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blindfit.algorithms.statistics.logistic import Floats, sigmoid
from blindfit.algorithms.statistics.named_columns import Features
from blindfit.algorithms.statistics.scaling import Standardiser


@dataclass(frozen=True)
class StandardisedLogistic:
    """
    Args:
        standardiser: the columns that it dropped have no weight.
        weights: one for each kept column, standardised.
        intercept: of standardised rows.
    """

    standardiser: Standardiser
    weights: tuple[float, ...]
    intercept: float

    @property
    def columns(self) -> tuple[str, ...]:
        return self.standardiser.columns

    def scores(self, features: Features) -> Floats:
        """Of raw features (n, columns).

        Args:
            features: a table, of which other columns are ignored, or an array in the order of the model's columns.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        scores: Floats = self.standardiser.transform(features) @ np.array(self.weights) + self.intercept
        return scores

    def probabilities(self, features: Features) -> Floats:
        return sigmoid(self.scores(features))
