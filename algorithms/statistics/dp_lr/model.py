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
    """A model whose standardiser comes from declared bounds or from public rows, never from the private rows."""

    @property
    def feature_weights(self) -> dict[str, float]:
        """Weights by name, for scaled features."""
        return dict(zip(self.standardiser.kept_columns, self.weights, strict=True))

    def scores(self, features: Features) -> Floats:
        """Return scores of raw features (n, columns), scaled as in the descent: a row of any size has a score."""
        scores: Floats = self.standardiser.transform_and_clip(features) @ np.array(self.weights) + self.intercept
        return scores

    def to_dict(self) -> dict[str, Any]:
        content = {
            "format": FORMAT,
            "scale": self.standardiser.to_dict(),
            "weights": self.feature_weights,
            "intercept": self.intercept,
        }
        return with_stamp(content, self.rehearsal)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> DPLogisticModel:
        """Restore a model.

        Raises:
            DataError: a field is missing or wrong; the error names it.
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
