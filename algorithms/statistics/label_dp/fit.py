"""Regression on labels that were released under label DP: fitting, and evaluating without any true label.

Let z be a released label whose mean given the label y is y, independent of the prediction f of a held-out row. Then

    E (f - z)^2 = E (f - y)^2 + E v(y),   v(y) = Var(z | y).

So the mean squared error against true labels is the error against released labels less the mean of v. For additive
noise v is a constant. For other noise it is taken as a quadratic a + b y + c y^2. (It is one for randomised responses
that mix y's neighbourhood with a fixed law.) As E y = E z and E y^2 = E z^2 - E v,

    E v = (a + b E z + c E z^2) / (1 + c).

Heavy noise leaves little of that figure. The gain of f over a constant k can be measured far better, because the
squares of the noise cancel:

    E (k - y)^2 - E (f - y)^2 = E (k - f) (k + f - 2 z).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.label_dp.model import FORMS, Form, LabelRegressionModel, Layers, Trees, Weights
from blindfit.algorithms.statistics.label_dp.options import OptionValue, check_options, widths_of
from blindfit.algorithms.statistics.label_dp.trees import Layer, Tree
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.linear.scaling import Standardiser


@dataclass(frozen=True, repr=False)
class LabelRegressionFit:
    model: LabelRegressionModel
    estimator: Any  # scikit-learn's own, of standardised rows
    target_mean: float  # the estimator's labels are (label - mean) / scale
    target_scale: float
    converged: bool


def fit_regression(
    features: Floats,
    labels: Floats,
    *,
    columns: tuple[str, ...],
    regressor: str,
    options: Mapping[str, Any],
    seed: int,
    debiased: bool,
    table: TableRecord | None = None,
) -> LabelRegressionFit:
    """Fit a regression, the same for the same rows, labels and seed. Scaling uses only the features.

    Args:
        labels: labels as released, or with their bias removed (`debiased`).
        table: the columns' record.

    Raises:
        ConfigError: the regressor or an option of it is not on the list.
        DataError: the numbers of rows and labels differ.
    """
    if len(features) != len(labels):
        raise DataError(f"{len(labels)} labels do not go with {len(features)} rows")
    whole = check_options(regressor, options)
    estimator = _estimator(regressor, whole, seed)
    standardiser = Standardiser.fit([features], columns, table=table, at_least_one=True)
    mean, scale = _target_scaling(labels) if FORMS[regressor] == "layers" else (0.0, 1.0)
    # More threads would add in another order, and a model of the same job would differ in its last bits.
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        estimator.fit(standardiser.transform(features), (labels - mean) / scale)
    converged = not any(w.category.__name__ == "ConvergenceWarning" for w in caught)
    model = LabelRegressionModel(standardiser, regressor, whole, debiased, _form(regressor, estimator, mean, scale))
    return LabelRegressionFit(model, estimator, mean, scale, converged)


def _estimator(regressor: str, options: Mapping[str, OptionValue], seed: int) -> Any:
    """Return the estimator. scikit-learn is imported here: every process imports this package, but few fit."""
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, Ridge
    from sklearn.neural_network import MLPRegressor
    from sklearn.tree import DecisionTreeRegressor

    given: dict[str, Any] = dict(options)
    deterministic = {"linear": LinearRegression, "ridge": Ridge, "lasso": Lasso, "elastic-net": ElasticNet}
    if regressor in deterministic:
        return deterministic[regressor](**given)
    if regressor == "mlp":
        return MLPRegressor(**given | {"hidden_layer_sizes": widths_of(given["hidden_layer_sizes"])}, random_state=seed)
    trees = {
        "decision-tree": DecisionTreeRegressor,
        "random-forest": RandomForestRegressor,
        "gradient-boosting": GradientBoostingRegressor,
    }
    return trees[regressor](**given, random_state=seed)


def _target_scaling(labels: Floats) -> tuple[float, float]:
    """Return mean and scale of the labels: gradient steps of a fixed size need labels of size one."""
    scale = float(labels.std())
    return float(labels.mean()), scale if scale > 0 else 1.0


def _form(regressor: str, estimator: Any, mean: float, scale: float) -> Form:
    if FORMS[regressor] == "weights":
        return Weights(np.array(estimator.coef_, dtype=np.float64), float(estimator.intercept_))
    if FORMS[regressor] == "layers":
        layers = [Layer(w, b) for w, b in zip(estimator.coefs_, estimator.intercepts_, strict=True)]
        last = Layer(layers[-1].weights * scale, layers[-1].bias * scale + mean)
        return Layers((*layers[:-1], last))
    if regressor == "decision-tree":
        return Trees((Tree.of_estimator(estimator.tree_),), 0.0, 1.0)
    if regressor == "random-forest":
        trees = tuple(Tree.of_estimator(tree.tree_) for tree in estimator.estimators_)
        return Trees(trees, 0.0, 1 / len(trees))
    trees = tuple(Tree.of_estimator(tree.tree_) for tree in estimator.estimators_[:, 0])
    return Trees(trees, float(estimator.init_.constant_[0, 0]), float(estimator.learning_rate))


# --- evaluation ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoiseVariance:
    """The mean of v over the labels.

    Args:
        error: possible error of `mean`, because v is not exactly quadratic; 0 for additive noise.
    """

    mean: float
    error: float


def mean_noise_variance(means: Floats, variances: Floats, released: Floats) -> NoiseVariance:
    """Estimate the mean of v over the labels.

    Args:
        means, variances: mean and variance of a released label, at labels across the whole range.
        released: labels with mean `means`, to average over.
    """
    width = float(np.ptp(means))
    if np.ptp(variances) <= 1e-9 * np.max(variances) or width == 0:
        return NoiseVariance(float(np.mean(variances)), 0.0)
    middle = float(np.mean(means))
    at = (means - middle) / width  # of size one, otherwise the rounding of squares would matter
    c, b, a = np.polyfit(at, variances / width**2, 2)
    off = np.abs(np.polyval([c, b, a], at) - variances / width**2).max()
    seen = (released - middle) / width
    mean = (a + b * seen.mean() + c * np.mean(seen**2)) / (1 + c)
    return NoiseVariance(float(max(mean, 0.0)) * width**2, float(off / (1 + c)) * width**2)


def evaluate_released(
    released: Floats, predictions: Floats, noise: NoiseVariance | None, constant: float
) -> dict[str, float | int]:
    """Evaluate against released labels of rows that were not trained on.

    Args:
        noise: variance of the noise; None if the labels' bias is not known: then no figure for true labels exists.
        constant: prediction to compare with, such as the mean of the training labels.

    Returns:
        rows and mse_released. With `noise` also mse, an unbiased estimate against true labels (it may be below 0);
        gain, the constant's mse less this mse; the standard error of both; and noise_variance.
    """
    if not len(released):
        raise DataError("an evaluation needs rows", hint="raise split.test_fraction")
    squares = (predictions - released) ** 2
    found: dict[str, float | int] = {"rows": len(released), "mse_released": float(squares.mean())}
    if noise is None:
        return found
    gains = (constant - predictions) * (constant + predictions - 2 * released)
    return found | {
        "mse": float(squares.mean()) - noise.mean,
        "mse_error": float(np.hypot(_standard_error(squares), noise.error)),
        "noise_variance": noise.mean,
        "gain": float(gains.mean()),
        "gain_error": _standard_error(gains),
    }


def _standard_error(values: Floats) -> float:
    """Return the standard error of the mean; for one value, its absolute value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float(np.abs(values[0]))
