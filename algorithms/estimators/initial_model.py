"""Common parts of estimators: two classes, names of columns, and the start of a fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.linear.scaling import Standardiser


class LinearClassifier(Protocol):
    """A fitted linear classifier, as scikit-learn has several."""

    @property
    def coef_(self) -> Any:
        """Weight of each column, shape (1, columns)."""
        ...

    @property
    def intercept_(self) -> Any:
        """Intercept, shape (1,)."""
        ...

    @property
    def classes_(self) -> Any:
        """The two classes, shape (2,)."""
        ...


InitialModel = Pretrained | LinearClassifier


def binary_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the two classes, and True for each row of the second; error texts are the ones scikit-learn expects.

    Raises:
        ValueError: there are not exactly two classes.
    """
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError("Classifier can't train when only one class is present.")
    return classes, np.asarray(y == classes[1])


def names_of(estimator: Any) -> tuple[str, ...]:
    """Return the column names of the fitted data frame; x0, x1, ... for an array."""
    given = getattr(estimator, "feature_names_in_", None)
    return tuple(map(str, given)) if given is not None else _number_columns(estimator.n_features_in_)


def initial_model(init: Any, estimator: Any, classes: NDArray[Any]) -> Pretrained | None:
    """Return the model from which a fit starts, with the fit's own column names; None without one.

    Args:
        init: a Pretrained, a fitted linear classifier with coef_, intercept_ and classes_, or None.
        estimator: the estimator that is fitted; its n_features_in_ is set.
        classes: the two classes of the fit.

    Raises:
        ConfigError: `init` has another type.
        DataError: `init` is for other features or classes.
    """
    if init is None:
        return None
    if isinstance(init, Pretrained):
        return _under_our_names(init, estimator)
    if not all(hasattr(init, name) for name in ("coef_", "intercept_", "classes_")):
        raise ConfigError(
            f"init must be a Pretrained or a fitted linear classifier, not {type(init).__name__}",
            hint="call blindfit.pretrain, or fit the classifier first",
        )
    if list(init.classes_) != list(classes):
        raise DataError(
            "init was fitted to other classes than these rows have", hint="fit it to rows with the same two classes"
        )
    return _under_our_names(_of_linear(init), estimator)


def _of_linear(classifier: Any) -> Pretrained:
    weights = np.asarray(classifier.coef_, dtype=np.float64).ravel()
    intercept = np.asarray(classifier.intercept_, dtype=np.float64).ravel()
    if len(intercept) != 1 or not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
        raise DataError("init: coef_ and intercept_ must be finite numbers, and give one score for each row")
    names = getattr(classifier, "feature_names_in_", None)
    columns = tuple(map(str, names)) if names is not None else _number_columns(len(weights))
    return Pretrained(keep_scale(columns), tuple(weights.tolist()), float(intercept[0]))


def keep_scale(names: tuple[str, ...]) -> Standardiser:
    """Return a scaler that leaves features as they are."""
    n = len(names)
    return Standardiser(names, tuple(range(n)), (0.0,) * n, (1.0,) * n)


def _under_our_names(init: Pretrained, estimator: Any) -> Pretrained:
    """Return the model with the estimator's column names; match columns by position if either side has no names."""
    ours = names_of(estimator)
    if len(init.columns) != len(ours):
        raise DataError(f"init was made for {len(init.columns)} features; these rows have {len(ours)}")
    if _number_columns(len(ours)) in (ours, init.columns) and set(ours) != set(init.columns):
        return replace(init, standardiser=replace(init.standardiser, columns=ours, table=None))
    init.check_columns(ours, getattr(estimator, "_table", None))
    return init.in_order(ours)


def _number_columns(n: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(n))
