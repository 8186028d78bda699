"""Names of a fitted model, after scikit-learn: the same on every model that Blindfit loads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.statistics.linear import fields
from blindfit.algorithms.statistics.linear.logistic import Floats, sigmoid
from blindfit.algorithms.statistics.linear.named_columns import Features
from blindfit.algorithms.statistics.linear.scaling import Standardiser

NO_PRIVACY = "The model's file declares no differential privacy."


class FittedModel:
    """Common names of models.

    A subclass has `standardiser`, and `privacy` if its file has a privacy statement. A part of a vertical model has
    none; the report of its training has one.
    """

    standardiser: Standardiser

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the raw features, in order: object array of shape (columns,)."""
        return np.array(self.standardiser.columns, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Number of raw features."""
        return len(self.standardiser.columns)

    @property
    def privacy_statement_(self) -> str:
        """One sentence from the model's file: the protected unit, the amount and the mechanism."""
        stamp = getattr(self, "rehearsal", "")
        return f"{stamp}. " * bool(stamp) + statement_of(getattr(self, "privacy", {}))


class LinearModel(FittedModel, ABC):
    """A linear model; a subclass returns its weights for standardised features."""

    @abstractmethod
    def standardised_weights(self) -> tuple[Floats, float]:
        """Return the weights of the kept columns, and the intercept, 0 for a model without one."""

    @property
    def coef_(self) -> Floats:
        """Weights for features as they are read, shape (1, columns); 0 for a column without a weight."""
        raw, _ = self.standardiser.raw_weights(*self.standardised_weights())
        return np.array([[raw[name] for name in self.standardiser.columns]])

    @property
    def intercept_(self) -> Floats:
        """Intercept for features as they are read, shape (1,)."""
        return np.array([self.standardiser.raw_weights(*self.standardised_weights())[1]])


class LogisticModel(LinearModel):
    """A logistic model; a subclass returns `scores`, the log odds of rows.

    If the model clips rows, its scores differ from those of `coef_`.
    """

    @abstractmethod
    def scores(self, features: Features) -> Floats:
        """Return the log odds of label 1, shape (rows,)."""

    @property
    def classes_(self) -> NDArray[np.int64]:
        """Labels 0 and 1."""
        return np.array([0, 1])

    def decision_function(self, features: Features) -> Floats:
        """Return the log odds of label 1, shape (rows,); the same as `scores`.

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        return self.scores(features)

    def probabilities(self, features: Features) -> Floats:
        """Return the probability of label 1, shape (rows,).

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        return sigmoid(self.scores(features))

    def predict_proba(self, features: Features) -> Floats:
        """Return the probabilities of labels 0 and 1, shape (rows, 2).

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        positive = self.probabilities(features)
        return np.column_stack([1 - positive, positive])

    def predict(self, features: Features) -> NDArray[np.int64]:
        """Return the more probable label of each row, 0 or 1, shape (rows,).

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        return (self.scores(features) > 0).astype(np.int64)


def statement_of(privacy: Mapping[str, Any]) -> str:
    """Return the statement of the `privacy` of a report or of a model's file."""
    epsilon, delta = privacy.get("epsilon"), privacy.get("delta")
    if not fields.is_number(epsilon):
        return NO_PRIVACY
    amount = f"{epsilon:g}, {delta:g}" if fields.is_number(delta) else f"{epsilon:g}"
    whose = f" of {privacy['unit']}" if privacy.get("unit") else ""
    more = [f"{name}: {privacy[name]}" for name in ("neighbours", "mechanism") if privacy.get(name)]
    return "; ".join([f"({amount})-differential privacy{whose}", *more]) + "."
