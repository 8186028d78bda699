"""What people expect of a fitted model, after scikit-learn: the same names on every model that Blindfit loads."""

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

NO_PRIVACY = "No differential privacy is said in the model's file."


class FittedModel:
    """Names in common. A subclass has `standardiser`, and `privacy` where its file says something of it; a part of a
    vertical model does not: the report of its training does.
    """

    standardiser: Standardiser

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        return np.array(self.standardiser.columns, dtype=object)

    @property
    def n_features_in_(self) -> int:
        return len(self.standardiser.columns)

    @property
    def privacy_statement_(self) -> str:
        """One sentence, of what its file says: for whom, how much, by which mechanism."""
        stamp = getattr(self, "rehearsal", "")
        return f"{stamp}. " * bool(stamp) + statement_of(getattr(self, "privacy", {}))


class LinearModel(FittedModel, ABC):
    """A subclass says what its weights are, for standardised features."""

    @abstractmethod
    def standardised_weights(self) -> tuple[Floats, float]:
        """Return the weights of the kept columns and the intercept, which is 0 where there is none."""

    @property
    def coef_(self) -> Floats:
        """(1, columns), for features as they are read; 0 for a column without a weight."""
        raw, _ = self.standardiser.raw_weights(*self.standardised_weights())
        return np.array([[raw[name] for name in self.standardiser.columns]])

    @property
    def intercept_(self) -> Floats:
        """(1,), for features as they are read."""
        return np.array([self.standardiser.raw_weights(*self.standardised_weights())[1]])


class LogisticModel(LinearModel):
    """A subclass says what it makes of rows: `scores`, log odds. Where rows are clipped, those of `coef_` are not."""

    @abstractmethod
    def scores(self, features: Features) -> Floats: ...

    @property
    def classes_(self) -> NDArray[np.int64]:
        return np.array([0, 1])

    def decision_function(self, features: Features) -> Floats:
        return self.scores(features)

    def probabilities(self, features: Features) -> Floats:
        """(n,), of label 1."""
        return sigmoid(self.scores(features))

    def predict_proba(self, features: Features) -> Floats:
        """(n, 2), of labels 0 and 1."""
        positive = self.probabilities(features)
        return np.column_stack([1 - positive, positive])

    def predict(self, features: Features) -> NDArray[np.int64]:
        """(n,), 1 where it is more probable than 0."""
        return (self.scores(features) > 0).astype(np.int64)


def statement_of(privacy: Mapping[str, Any]) -> str:
    """Of the `privacy` of a report or of a model's file."""
    epsilon, delta = privacy.get("epsilon"), privacy.get("delta")
    if not fields.is_number(epsilon):
        return NO_PRIVACY
    amount = f"{epsilon:g}, {delta:g}" if fields.is_number(delta) else f"{epsilon:g}"
    whose = f" of {privacy['unit']}" if privacy.get("unit") else ""
    more = [f"{name}: {privacy[name]}" for name in ("neighbours", "mechanism") if privacy.get(name)]
    return "; ".join([f"({amount})-differential privacy{whose}", *more]) + "."
