"""A regression fitted to released labels: standardise, then weights, trees or layers. A readable JSON file, no code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.rehearsal import stamp_of, with_stamp
from blindfit.algorithms.statistics.label_dp.options import OptionValue, check_options
from blindfit.algorithms.statistics.label_dp.trees import Layer, Tree, predict_layers
from blindfit.algorithms.statistics.linear import fields
from blindfit.algorithms.statistics.linear.fitted_model import LinearModel
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.linear.named_columns import Features, check_finite
from blindfit.algorithms.statistics.linear.scaling import Standardiser

FORMAT = "blindfit label regression v1"
FORMS = {
    "linear": "weights",
    "ridge": "weights",
    "lasso": "weights",
    "elastic-net": "weights",
    "decision-tree": "trees",
    "random-forest": "trees",
    "gradient-boosting": "trees",
    "mlp": "layers",
}


class Form(Protocol):
    """The computation on standardised rows."""

    def predict(self, rows: Floats) -> Floats: ...

    def to_dict(self, columns: Sequence[str]) -> dict[str, Any]: ...


@dataclass(frozen=True, repr=False)
class Weights:
    weights: Floats
    intercept: float

    def predict(self, rows: Floats) -> Floats:
        return rows @ self.weights + self.intercept

    def to_dict(self, columns: Sequence[str]) -> dict[str, Any]:
        return {
            "weights": dict(zip(columns, self.weights.tolist(), strict=True)),
            "intercept": self.intercept,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], columns: Sequence[str]) -> Weights:
        weights = np.array(fields.weights_by_name(stored, columns))
        return cls(weights, fields.number(stored, "intercept"))


@dataclass(frozen=True, repr=False)
class Trees:
    """base + scale * (the sum of the trees' values)."""

    trees: tuple[Tree, ...]
    base: float
    scale: float

    def predict(self, rows: Floats) -> Floats:
        single = rows.astype(np.float32)
        total = np.zeros(len(rows))
        for tree in self.trees:
            total += tree.predict(single)
        return self.base + self.scale * total

    def to_dict(self, columns: Sequence[str]) -> dict[str, Any]:
        return {"base": self.base, "scale": self.scale, "trees": [tree.to_dict(columns) for tree in self.trees]}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], columns: Sequence[str]) -> Trees:
        trees = tuple(Tree.from_dict(tree, columns) for tree in _tables(stored, "trees"))
        return cls(trees, fields.number(stored, "base"), fields.number(stored, "scale"))


@dataclass(frozen=True, repr=False)
class Layers:
    layers: tuple[Layer, ...]

    def predict(self, rows: Floats) -> Floats:
        return predict_layers(self.layers, rows)

    def to_dict(self, columns: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002 - inputs are in the columns' order
        return {"layers": [layer.to_dict() for layer in self.layers]}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], columns: Sequence[str]) -> Layers:
        layers: list[Layer] = []
        for table in _tables(stored, "layers"):
            layers.append(Layer.from_dict(table, len(layers[-1].bias) if layers else len(columns)))
        if len(layers[-1].bias) != 1:
            raise DataError("layers: the last one has more than one output")
        return cls(tuple(layers))


def _tables(stored: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = stored.get(name)
    if not isinstance(found, list) or not found or not all(isinstance(table, Mapping) for table in found):
        raise DataError(f"{name}: missing or not a list of tables")
    return found


_READERS: Mapping[str, Callable[[Mapping[str, Any], Sequence[str]], Form]] = {
    "weights": Weights.from_dict,
    "trees": Trees.from_dict,
    "layers": Layers.from_dict,
}


@dataclass(frozen=True, repr=False)
class LabelRegressionModel(LinearModel):
    """A regression that was fitted to noisy labels: it predicts numbers from raw features.

    Args:
        standardiser: standardiser of the raw features.
        regressor: name of the fitted regressor, such as "ridge" or "random-forest".
        options: every option of the regressor, by name.
        debiased: True if the mechanism's bias was removed from the labels of the fit.
        form: the weights, trees or layers.
        privacy: privacy statement of the model's file.
        rehearsal: stamp of a model that was rehearsed; empty for a trained model.

    Example:
        >>> model = blindfit.load_model("models/label-dp.json")
        >>> new_rows = pd.DataFrame({"age": [30.0, 60.0], "income": [20.0, 50.0]})
        >>> model.regressor, model.predict(new_rows).tolist()
        ('linear', [4.0, 10.0])
    """

    standardiser: Standardiser
    regressor: str
    options: Mapping[str, OptionValue]
    debiased: bool
    form: Form
    privacy: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    rehearsal: str = field(default="", compare=False)

    def standardised_weights(self) -> tuple[Floats, float]:
        """Return the weights of the kept columns, and the intercept.

        Raises:
            AttributeError: the regressor is not linear; scikit-learn's trees have no `coef_` either.
        """
        if not isinstance(self.form, Weights):
            raise AttributeError(f"a {self.regressor} has no coef_: it is not a linear model")
        return self.form.weights, self.form.intercept

    def predict(self, features: Features) -> Floats:
        """Return the predicted labels, float64 array of shape (rows,).

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        rows = self.standardiser.transform(features)
        check_finite(rows, columns=self.standardiser.kept_columns)
        return self.form.predict(rows)

    @property
    def feature_weights(self) -> dict[str, float] | None:
        """Weight of each kept column by name, for standardised features; None if the regressor is not linear."""
        if not isinstance(self.form, Weights):
            return None
        return dict(zip(self.standardiser.kept_columns, self.form.weights.tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the content of its model.json, without the privacy statement."""
        content = {
            "format": FORMAT,
            "regressor": self.regressor,
            "options": dict(self.options),
            "debiased": self.debiased,
            "standardiser": self.standardiser.to_dict(),
            **self.form.to_dict(self.standardiser.kept_columns),
        }
        return with_stamp(content, self.rehearsal)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> LabelRegressionModel:
        """Return the model of the content of a model.json.

        Args:
            stored: the content, as JSON gives it.

        Raises:
            DataError: a field is missing or wrong; the message names it.
        """
        fields.check_format(stored, FORMAT)
        regressor = fields.text(stored, "regressor")
        try:
            options = check_options(regressor, fields.table(stored, "options"))
        except ConfigError as error:
            raise DataError(error.message, hint=error.hint) from None
        if type(stored.get("debiased")) is not bool:
            raise DataError("debiased: neither true nor false")
        standardiser = Standardiser.from_dict(fields.table(stored, "standardiser"))
        form = _READERS[FORMS[regressor]](stored, standardiser.kept_columns)
        return cls(
            standardiser,
            regressor,
            options,
            stored["debiased"],
            form,
            fields.optional_table(stored, "privacy"),
            stamp_of(stored),
        )
