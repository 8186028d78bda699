"""Logistic regression under (epsilon, delta) differential privacy of whole rows, where one process has all rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, check_X_y

from blindfit.algorithms.errors import BlindfitWarning, ConfigError, DataError
from blindfit.algorithms.estimators import cautions
from blindfit.algorithms.estimators.binary_classifier import PrivateBinaryClassifier
from blindfit.algorithms.estimators.initial_model import (
    InitialModel,
    binary_labels,
    initial_model,
    keep_scale,
    names_of,
)
from blindfit.algorithms.estimators.private_descent import DescentOptions, PrivateFit, fit_privately
from blindfit.algorithms.privacy.events import WHOLE_ROWS
from blindfit.algorithms.privacy.noisy_iterations import Neighbours, RunPrivacy, Spending
from blindfit.algorithms.statistics.dp_lr.descent import Descent, losses_of
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.linear.pretraining import Pretrained, pretrain
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant, clip_rows

FeatureBounds = tuple[ArrayLike, ArrayLike] | Mapping[str, tuple[float, float]]


class DPLogisticRegression(PrivateBinaryClassifier):
    """Logistic regression by noisy gradient descent, on rows whose features and labels are both private.

    Each iteration clips the gradient of every row, the intercept's part included, to `clip_norm`. It sums the gradients
    as integers and adds independent discrete Gaussian noise to each coordinate. Noise and samples come from the
    operating system's generator and cannot be seeded.

    A release is drawn once. `fit` to the same rows with the same options returns the same model again, in this process,
    and spends nothing more. Another `release` is another draw, and spends again.

    The two labels, every argument and the number of rows are public. Under "add-or-remove" with `expected_rows`, only
    the fact that there are at least two rows is public. So scale features by `feature_bounds` that are known beforehand
    or by public rows (`init`), never by statistics of the private rows, which would leak.

    A fit warns (`BlindfitWarning`) about features that a scaler was fitted to, features without a scale, constant
    columns, a large delta and a mostly noisy model.

    Args:
        epsilon, delta: privacy of the whole run, or of each iteration if `budget` is "iteration".
        clip_norm: bound on the L2 norm of a row's gradient, 1e-9 to 1e9. 1 suits scaled features of size about 1.
        n_iterations: number of iterations. More let the descent settle, and add noise to each; after it has settled,
            more change little.
        learning_rate: a number above 0, or "auto". "auto" is the largest rate at which the descent stays stable and
            noise by itself moves the weights by at most 1. So with a small epsilon the model stays near its start, and
            a good start (`init`) improves it.
        batch_fraction: probability with which an iteration takes each row, above 0; 1 takes all rows.
        neighbours: "replace-one" or "add-or-remove".
        budget: "run", or "iteration"; `epsilon_spent_` then has the epsilon of all iterations at delta.
        init: start of the descent. None starts at zero; "public" starts at a fit to the public rows passed to `fit`;
            otherwise a `Pretrained`, or a fitted linear classifier of scikit-learn. The scale of a `Pretrained` is used
            unless there are `feature_bounds`.
        shrinkage: strength of an l2 penalty around the start; 0 for no penalty.
        feature_bounds: lowest and highest value of each column, known without the data. Features are mapped to
            [-1, 1]. Either (lowest, highest), each a number or one number for each column, or a mapping from every
            column's name to its (lowest, highest). A scaled value beyond 1e100 is cut to 1e100.
        norm_bound: L2 norm to which scaled rows, the constant 1 included, are clipped for training and scoring; None
            for no clipping.
        expected_rows: divisor of sums over all rows; None takes the number of rows, which is then public.
        classes: both labels, known without the data; None takes those of y.
        release: name of the draw, a text or a number.
        loss_share: share of the budget, in terms of 1/noise_multiplier^2, that pays for the mean training loss of each
            iteration. With 0 the loss of the private rows is not released.

    Attributes:
        coef_: float64 array of shape (1, columns), for features as they were given. If `norm_bound` is set, the score
            of a long row is smaller by the factor that clips the row; predicted classes are those of `coef_` and
            `intercept_`.
        intercept_: float64 array of shape (1,).
        noise_multiplier_: standard deviation of the noise of each iteration's gradient, divided by the sensitivity of
            the sum. The sensitivity is 2 clip_norm for "replace-one" and clip_norm for "add-or-remove".
        epsilon_spent_: epsilon of the whole run at delta.
        privacy_statement_: one sentence about the protected unit, the amount and the mechanism.
        learning_rate_: the learning rate of the run.
        n_iter_: number of iterations.
        classes_: array of the two labels, shape (2,); the second is the positive one.
        n_features_in_: number of columns.
        loss_curve_: mean loss of the weights before each iteration. If `loss_share` paid for it, it is the noisy loss
            of the private rows. Otherwise it is the loss of the public rows, also after the last iteration, or None
            without public rows.

    Example:
        >>> model = blindfit.DPLogisticRegression(epsilon=1.0, delta=1e-5, feature_bounds=(-5.0, 5.0)).fit(X, y)
        >>> model.predict(X[:5]).shape, model.epsilon_spent_ <= 1.0
        ((5,), True)

    The module `blindfit.algorithms.statistics.dp_lr.descent` names the source and the departures from Hoseinpour et al.
    2023.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Real],
        "delta": [Real],
        "clip_norm": [Real],
        "n_iterations": [Integral],
        "learning_rate": [Real, str],
        "batch_fraction": [Real],
        "neighbours": [str],
        "budget": [str],
        "shrinkage": [Real],
        "norm_bound": [Real, None],
        "loss_share": [Real],
        "expected_rows": [Real, None],
        "release": [str, Integral],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        clip_norm: float = 1.0,
        n_iterations: int = 50,
        learning_rate: float | Literal["auto"] = "auto",
        batch_fraction: float = 1.0,
        neighbours: Neighbours = "replace-one",
        budget: Spending = "run",
        init: InitialModel | Literal["public"] | None = None,
        shrinkage: float = 0.0,
        feature_bounds: FeatureBounds | None = None,
        norm_bound: float | None = None,
        loss_share: float = 0.0,
        expected_rows: float | None = None,
        classes: tuple[Any, Any] | None = None,
        release: str | int = "first",
    ) -> None:
        self.epsilon, self.delta, self.clip_norm = epsilon, delta, clip_norm
        self.n_iterations, self.learning_rate, self.batch_fraction = n_iterations, learning_rate, batch_fraction
        self.neighbours, self.budget, self.init, self.shrinkage = neighbours, budget, init, shrinkage
        self.feature_bounds, self.norm_bound, self.loss_share = feature_bounds, norm_bound, loss_share
        self.expected_rows, self.classes, self.release = expected_rows, classes, release

    def fit(
        self, X: ArrayLike, y: ArrayLike, X_public: ArrayLike | None = None, y_public: ArrayLike | None = None
    ) -> DPLogisticRegression:
        """Fit the model. Open budgets (`PrivacyBudget`) are charged before the noise is drawn.

        Args:
            X: private features, shape (rows, columns): an array of numbers or a data frame.
            y: private labels, shape (rows,), of two classes.
            X_public: features of rows without any privacy, for `init="public"` and for `loss_curve_`.
            y_public: labels of these rows.

        Returns:
            This estimator.

        Raises:
            ConfigError: an option is wrong; the message names it.
            DataError: a row or a column is wrong; the message names it.
            BudgetExhausted: an open budget has too little left.
            ValueError: scikit-learn's checks refuse an argument or the rows.
        """
        with self._restore_on_error():
            return self._fit(X, y, X_public, y_public)

    def _fit(
        self, X: ArrayLike, y: ArrayLike, X_public: ArrayLike | None, y_public: ArrayLike | None
    ) -> DPLogisticRegression:
        self._validate_params()
        features, given = self._rows_to_fit(X, y)
        classes, labels = self._labels(given)
        names = names_of(self)
        public = self._public_rows(X_public, y_public, classes)
        start_model = self._start(names, public, classes)
        scaler = self._scale(names, start_model)
        rows = self._rows(features, scaler)
        start = np.zeros(rows.shape[1]) if start_model is None else start_model.weights_for(scaler)
        privacy = RunPrivacy(
            self.epsilon, self.delta, self.n_iterations, self.batch_fraction, self.neighbours, self.budget
        )
        options = self._options(privacy, len(rows))
        cautions.issue(self._cautions(features, scaler, options))
        fit = fit_privately(rows, labels, start, options, self.release)
        self.classes_, self._scaler = classes, scaler
        self._keep(fit, names, privacy)
        self._draw_public_curve(fit.descent, public)
        return self

    def _options(self, privacy: RunPrivacy, n_rows: int) -> DescentOptions:
        expected_rows = n_rows if self.expected_rows is None else self.expected_rows
        return DescentOptions(
            privacy, self.clip_norm, self.learning_rate, self.shrinkage, self.loss_share, expected_rows
        )

    def _cautions(self, features: Floats, scaler: Standardiser, options: DescentOptions) -> Iterator[BlindfitWarning]:
        privacy, (n_rows, n_columns) = options.privacy, features.shape
        scale = "none" if scaler == keep_scale(scaler.columns) else "public rows"
        if self.feature_bounds is not None:
            scale = "bounds"
        yield from cautions.warn_of_fitted_scaler(features)
        yield from cautions.warn_of_sizes(scaler.transform_and_clip(features), scaler.kept_columns, scale=scale)
        yield from cautions.warn_of_large_delta(privacy.delta, n_rows)
        yield from cautions.warn_of_iteration_budget(privacy)
        yield from cautions.warn_of_noise(privacy, options.expected_rows, n_columns + 1)

    def _labels(self, given: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        if self.classes is None:
            return binary_labels(given)
        classes = np.asarray(self.classes)
        if classes.shape != (2,) or classes[0] == classes[1]:
            raise ConfigError(f"classes must be two different labels, not {self.classes!r}")
        if strangers := set(np.unique(given).tolist()) - set(classes.tolist()):
            raise DataError(
                f"y has labels that are not in classes: {', '.join(sorted(map(str, strangers)))}",
                hint="correct classes, or remove these rows",
            )
        return classes, np.asarray(given == classes[1])

    # --- before the descent: nothing here reads a private row

    def _public_rows(
        self, X_public: ArrayLike | None, y_public: ArrayLike | None, classes: NDArray[Any]
    ) -> tuple[Floats, NDArray[np.bool_]] | None:
        if (X_public is None) != (y_public is None):
            raise ConfigError("X_public and y_public go together", hint="pass both, or neither of them")
        if X_public is None:
            return None
        if self.loss_share:
            raise ConfigError(
                "loss_share pays for a loss curve that the public rows give at no cost",
                hint="set loss_share = 0, or pass no public rows",
            )
        features, given = check_X_y(self._rows_of_fit(X_public), y_public, dtype=np.float64, estimator=self)
        strangers = set(np.unique(given).tolist()) - set(classes.tolist())
        if strangers:
            raise DataError(
                f"y_public has labels that y does not have: {', '.join(sorted(map(str, strangers)))}",
                hint="remove these public rows",
            )
        return features, np.asarray(given == classes[1])

    def _start(
        self, names: tuple[str, ...], public: tuple[Floats, NDArray[np.bool_]] | None, classes: NDArray[Any]
    ) -> Pretrained | None:
        if not isinstance(self.init, str):
            return initial_model(self.init, self, classes)
        if self.init != "public":
            raise ConfigError(f'init must be None, "public", a Pretrained or a fitted classifier, not {self.init!r}')
        if public is None:
            raise ConfigError(
                'init = "public" needs public rows', hint="call fit(X, y, X_public, y_public), or set init = None"
            )
        return pretrain(*public, columns=names)

    def _scale(self, names: tuple[str, ...], start: Pretrained | None) -> Standardiser:
        """Return the scale of the bounds or of the public rows; without both, features keep their own scale."""
        if self.feature_bounds is not None:
            return _scale_of_bounds(names, self.feature_bounds)
        if start is not None:
            return start.standardiser
        return keep_scale(names)

    def _rows(self, X: Floats, scaler: Standardiser) -> Floats:
        columns = append_constant(scaler.transform_and_clip(X))
        return columns if self.norm_bound is None else clip_rows(columns, self.norm_bound)

    # --- after the descent: nothing here reads a private row

    def _keep(self, fit: PrivateFit, names: tuple[str, ...], privacy: RunPrivacy) -> None:
        descent = fit.descent
        self.noise_multiplier_, self.learning_rate_ = fit.noise_multiplier, fit.learning_rate
        self._weights = descent.weights
        self._model = Pretrained(self._scaler, tuple(map(float, descent.weights[:-1])), float(descent.weights[-1]))
        raw, intercept = self._model.raw_weights()
        self.coef_, self.intercept_ = np.array([[raw[name] for name in names]]), np.array([intercept])
        self.n_iter_, self.epsilon_spent_ = self.n_iterations, privacy.spent()
        self.loss_curve_: list[float] | None = list(descent.losses) or None
        self.privacy_statement_ = self._statement(privacy)

    def _statement(self, privacy: RunPrivacy) -> str:
        each = f"each ({privacy.epsilon:g}, {privacy.delta:g})-DP, " if privacy.spending == "iteration" else ""
        sampled = (
            f" of a Poisson sample of {privacy.batch_fraction:g} of the rows" if privacy.batch_fraction < 1 else ""
        )
        loss = "released, paid from the same budget" if self.loss_share else "not released"
        return (
            f"({self.epsilon_spent_:.6g}, {privacy.delta:g})-differential privacy; neighbours: "
            f"{WHOLE_ROWS[privacy.neighbours]}. "
            f"Mechanism: {privacy.n_iterations} sums of clipped gradients{sampled}, {each}"
            f"with discrete Gaussian noise of {self.noise_multiplier_:.6g} times the sensitivity on each coordinate, "
            f"composed {'by privacy loss distributions' if sampled else 'exactly'}. "
            f"The private rows' loss: {loss}."
        )

    def _draw_public_curve(self, descent: Descent, public: tuple[Floats, NDArray[np.bool_]] | None) -> None:
        if public is not None:
            self.loss_curve_ = losses_of(descent.path, self._rows(public[0], self._scaler), public[1])

    # --- scoring

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the log odds of the second class, shape (rows,).

        Args:
            X: features, shape (rows, columns), as in the fit.

        Raises:
            NotFittedError: `fit` was not called.
            DataError, ValueError: the features are not those of the fit.
        """
        check_is_fitted(self)
        features = self._rows_of_fit(X)
        scores: NDArray[np.float64] = self._rows(features, self._scaler) @ self._weights
        return scores


def _scale_of_bounds(names: tuple[str, ...], bounds: FeatureBounds) -> Standardiser:
    low, high = _ends_by_name(names, bounds) if isinstance(bounds, Mapping) else _ends_in_order(names, bounds)
    ordered = np.isfinite(low) & np.isfinite(high) & (low < high)
    if not ordered.all():
        column = int(np.argmin(ordered))
        raise ConfigError(
            f"feature_bounds of {names[column]} must be finite, the lowest below the highest, not "
            f"({low[column]:g}, {high[column]:g})"
        )
    return Standardiser(
        names, tuple(range(len(names))), tuple(((low + high) / 2).tolist()), tuple(((high - low) / 2).tolist())
    )


def _ends_by_name(names: tuple[str, ...], bounds: Mapping[str, tuple[float, float]]) -> tuple[Floats, Floats]:
    if missing := [name for name in names if name not in bounds]:
        raise ConfigError(
            f"feature_bounds are missing for {', '.join(missing)}", hint="give (lowest, highest) for every column"
        )
    if unknown := sorted(str(name) for name in bounds if name not in names):
        raise ConfigError(
            f"feature_bounds name columns that X does not have: {', '.join(unknown)}",
            hint=f"the columns are {', '.join(names)}",
        )
    ends = []
    for name in names:
        try:
            low, high = (float(end) for end in bounds[name])
        except (TypeError, ValueError):
            raise ConfigError(f"feature_bounds of {name} must be two numbers, not {bounds[name]!r}") from None
        ends.append((low, high))
    low_ends, high_ends = zip(*ends, strict=True)
    return np.array(low_ends), np.array(high_ends)


def _ends_in_order(names: tuple[str, ...], bounds: tuple[ArrayLike, ArrayLike]) -> tuple[Floats, Floats]:
    try:
        low, high = (np.broadcast_to(np.asarray(b, dtype=np.float64), len(names)) for b in bounds)
    except (TypeError, ValueError):
        raise ConfigError(
            f"feature_bounds must be two numbers, or two lists of {len(names)}",
            hint="or a mapping of each column's name to (lowest, highest)",
        ) from None
    return low, high
