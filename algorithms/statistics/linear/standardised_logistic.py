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
        standardiser: the standardiser; columns that it dropped have no weight.
        weights: one for each kept column, standardised.
        intercept: intercept for standardised rows.
        privacy: privacy statement of the model's file.
        rehearsal: the stamp of a model that was rehearsed.
    """

    standardiser: Standardiser
    weights: tuple[float, ...]
    intercept: float
    privacy: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    rehearsal: str = field(default="", compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.standardiser.columns

    def scores(self, features: Features) -> Floats:
        """Return scores of raw features (n, columns).

        Args:
            features: a table, in which other columns are ignored, or an array in the order of the model's columns.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        scores: Floats = self.standardiser.transform(features) @ np.array(self.weights) + self.intercept
        return scores

    def standardised_weights(self) -> tuple[Floats, float]:
        return np.array(self.weights), self.intercept
