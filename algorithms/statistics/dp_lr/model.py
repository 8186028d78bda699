"""A logistic model fitted under differential privacy of whole rows: scale, score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from blindfit.algorithms.rehearsal import stamp_of, with_stamp
from blindfit.algorithms.statistics.linear import fields
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.linear.named_columns import Features
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.linear.standardised_logistic import StandardisedLogistic

FORMAT = "blindfit-dp-logistic-1"


class DPLogisticModel(StandardisedLogistic):
    """A logistic model fitted under differential privacy of whole rows: it predicts labels 0 and 1 from raw features.

    Its standardiser comes from declared bounds or from public rows, never from the private rows.

    Example:
        >>> model = blindfit.load_model("models/dp-lr.json")
        >>> new_rows = pd.DataFrame({"age": [30.0, 60.0], "income": [20.0, 50.0]})
        >>> model.predict(new_rows).tolist(), model.feature_weights
        ([0, 1], {'age': 1.5, 'income': 0.5})
    """

    @property
    def feature_weights(self) -> dict[str, float]:
        """Weight of each kept column by name, for scaled features."""
        return dict(zip(self.standardiser.kept_columns, self.weights, strict=True))

    def scores(self, features: Features) -> Floats:
        """Return the log odds of label 1, shape (rows,). Features are scaled as in the descent.

        A row of any size has a score.

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        scores: Floats = self.standardiser.transform_and_clip(features) @ np.array(self.weights) + self.intercept
        return scores

    def to_dict(self) -> dict[str, Any]:
        """Return the content of its model.json, without the privacy statement."""
        content = {
            "format": FORMAT,
            "scale": self.standardiser.to_dict(),
            "weights": self.feature_weights,
            "intercept": self.intercept,
        }
        return with_stamp(content, self.rehearsal)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> DPLogisticModel:
        """Return the model of the content of a model.json.

        Args:
            stored: the content, as JSON gives it.

        Raises:
            DataError: a field is missing or wrong; the message names it.
        """
        fields.check_format(stored, FORMAT)
        scale = Standardiser.from_dict(fields.table(stored, "scale"))
        weights = fields.weights(stored, scale.kept_columns)
        return cls(
            scale,
            weights,
            fields.number(stored, "intercept"),
            fields.optional_table(stored, "privacy"),
            stamp_of(stored),
        )
