"""A logistic model of standardised features: a weight for each kept column, and an intercept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blindfit.algorithms.statistics.linear.fitted_model import LogisticModel
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.linear.named_columns import Features
from blindfit.algorithms.statistics.linear.scaling import Standardiser


@dataclass(frozen=True)
class StandardisedLogistic(LogisticModel):
    """A logistic model of standardised features.

    Args:
        standardiser: standardiser of the raw features; columns that it dropped have no weight.
        weights: weight of each kept column, for standardised features.
        intercept: intercept, for standardised features.
        privacy: privacy statement of the model's file.
        rehearsal: stamp of a model that was rehearsed; empty for a trained model.
    """

    standardiser: Standardiser
    weights: tuple[float, ...]
    intercept: float
    privacy: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    rehearsal: str = field(default="", compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the raw features, in order."""
        return self.standardiser.columns

    def scores(self, features: Features) -> Floats:
        """Return the log odds of label 1, shape (rows,).

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        scores: Floats = self.standardiser.transform(features) @ np.array(self.weights) + self.intercept
        return scores

    def standardised_weights(self) -> tuple[Floats, float]:
        """Return the weights of the kept columns, and the intercept."""
        return np.array(self.weights), self.intercept
