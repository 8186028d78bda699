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
    """A fitted WALR model: it predicts labels 0 and 1 from raw features.

    Args:
        standardiser: standardiser of the raw features; each of its kept columns has a weight.
        weights: float64 array: the weight of each kept column, then the intercept, if there is one.
        intercept: True if the last weight is the intercept.
        norm_bound: L2 norm to which standardised rows, the constant included, are clipped, as in the training.
        privacy: privacy statement of the model's file.
        rehearsal: stamp of a model that was rehearsed; empty for a trained model.

    Example:
        >>> model = blindfit.load_model("models/walr.json")
        >>> new_rows = pd.DataFrame({"age": [30.0, 60.0], "income": [20.0, 50.0]})
        >>> model.predict_proba(new_rows).shape, model.predict(new_rows).tolist()
        ((2, 2), [0, 1])
    """

    standardiser: Standardiser
    weights: NDArray[np.float64]
    intercept: bool
    norm_bound: float
    privacy: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    rehearsal: str = field(default="", compare=False)

    def rows(self, features: Features) -> NDArray[np.float64]:
        """Return the standardised rows, with the constant, clipped to `norm_bound`: shape (rows, weights).

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        return clip_rows(self.standardise_rows(features), self.norm_bound)

    def standardise_rows(self, features: Features) -> NDArray[np.float64]:
        """Return the standardised rows, with the constant, not clipped: shape (rows, weights).

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        standardised = self.standardiser.transform(features)
        return append_constant(standardised) if self.intercept else standardised

    def scores(self, features: Features) -> NDArray[np.float64]:
        """Return the log odds of label 1, shape (rows,).

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        return self.rows(features) @ self.weights

    def standardised_weights(self) -> tuple[NDArray[np.float64], float]:
        """Return the weights of the kept columns, and the intercept, 0 for a model without one."""
        return (self.weights[:-1], float(self.weights[-1])) if self.intercept else (self.weights, 0.0)

    @property
    def feature_weights(self) -> dict[str, float]:
        """Weight of each kept column by name, for standardised features."""
        return dict(zip(self.standardiser.kept_columns, map(float, self.weights), strict=False))

    def to_dict(self) -> dict[str, Any]:
        """Return the content of its model.json, without the privacy statement."""
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
        """Return the model of the content of a model.json.

        Args:
            stored: the content, as JSON gives it.

        Raises:
            DataError: a field is missing or wrong; the message names it.
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
