"""WALR in a notebook, where one machine has features and labels: the same release and the same fit, without a peer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from blindfit.algorithms.errors import BlindfitWarning
from blindfit.algorithms.estimators import cautions
from blindfit.algorithms.estimators.binary_classifier import PrivateBinaryClassifier
from blindfit.algorithms.estimators.initial_model import InitialModel, binary_labels, initial_model, names_of
from blindfit.algorithms.estimators.remembered import draw_once
from blindfit.algorithms.fixed_point import quantise_rows
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.privacy.events import UNITS
from blindfit.algorithms.privacy.gaussian import GaussianMechanism
from blindfit.algorithms.protocols.walr.grid import LARGEST_SUM, Grid, Room, auto_grid
from blindfit.algorithms.randomness import public_generator, system_uniform
from blindfit.algorithms.statistics.linear.fitted_model import statement_of
from blindfit.algorithms.statistics.linear.logistic import Floats, QuantisedRows
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant, row_norms
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import require_pull
from blindfit.algorithms.statistics.walr import defaults
from blindfit.algorithms.statistics.walr.fit import MuTreatment, WalrFit, fit_released
from blindfit.algorithms.statistics.walr.model import WALRModel

UNIT, NEIGHBOURS = UNITS["row"]


class WALRClassifier(PrivateBinaryClassifier):
    """Logistic regression with (epsilon, delta) label differential privacy, from one noisy weighted aggregate.

    The protected unit is the label of one row. Features and the number of rows are public. The noise comes from the
    operating system's generator and cannot be seeded.

    A release is drawn once. `fit` to the same rows and labels with the same grid, bound and budget uses the release
    again, in this process, and spends nothing more. Another `release` is another draw, and spends again. An open
    `PrivacyBudget` counts all of them.

    A fit warns (`BlindfitWarning`) about constant columns, clipped rows, a large delta, a mostly noisy model, a mean
    that no labels could give and a solver that did not converge.

    Args:
        epsilon, delta: privacy of the release.
        mechanism: "analytic" or, for epsilon < 1, "classic".
        norm_bound: L2 norm to which standardised rows, the constant included, are clipped; "auto" takes the 99%
            quantile of their norms.
        frac_bits: fraction bits of the grid of rows and noise; "auto" takes as many as rounding and noise need.
        l2: strength of the l2 penalty, at least 0; "auto" derives it from the noise.
        intercept: True to append a constant feature.
        mu: treatment of the noisy mean. "clip" clips each coordinate to what some labels could give; "project" projects
            on what labels can give together; "as-released" changes nothing; "auto" projects if there are at most ten
            million numbers.
        init: model of public rows towards which l2 shrinks instead of zero: a `Pretrained` or a fitted linear
            classifier. The fit runs to its optimum, so a start by itself would change nothing; l2 = 0 is refused.
        solver: "auto", or a solver of `blindfit.algorithms.statistics.linear.solvers`.
        tolerance: largest gradient norm at the end of the fit; None takes the solver's own.
        max_iterations: largest number of iterations; None takes the solver's own.
        seed: seed of public randomness only (batches), never of the noise.
        release: name of the draw, a text or a number.

    Attributes:
        model_: WALRModel that standardises, clips and scores.
        coef_: float64 array of shape (1, columns), for features as they were given. The score of a row longer than
            `norm_bound_` is smaller by the factor that clips the row.
        intercept_: float64 array of shape (1,).
        privacy_statement_: one sentence about the protected unit, the amount and the mechanism.
        noise_std_: standard deviation of the noise on each coordinate of the mean.
        l2_: strength of the l2 penalty in the fit.
        norm_bound_: L2 norm to which rows were clipped.
        feasible_: True if some labels could give the noisy mean, False if none could, None if neither was proved.
        n_iter_: number of the solver's iterations.
        converged_: True if the solver found the optimum.
        classes_: array of the two labels, shape (2,); the second is the positive one.
        n_features_in_: number of columns.

    Example:
        >>> model = blindfit.WALRClassifier(epsilon=1.0, delta=1e-5).fit(X, y)
        >>> model.predict_proba(X[:5]).shape
        (5, 2)

    Source: Yuan and Lazarsfeld, "Weighted Aggregate Logistic Regression".
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Real],
        "delta": [Real],
        "mechanism": [str],
        "norm_bound": [Real, StrOptions({"auto"})],
        "frac_bits": [Integral, StrOptions({"auto"})],
        "l2": [Real, StrOptions({"auto"})],
        "intercept": ["boolean"],
        "mu": [StrOptions(set(get_args(MuTreatment)))],
        "solver": [str],
        "tolerance": [Real, None],
        "max_iterations": [Integral, None],
        "seed": [Integral],
        "release": [str, Integral],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        mechanism: Literal["analytic", "classic"] = "analytic",
        norm_bound: float | Literal["auto"] = "auto",
        frac_bits: int | Literal["auto"] = "auto",
        l2: float | Literal["auto"] = "auto",
        intercept: bool = True,
        mu: MuTreatment = "auto",
        init: InitialModel | None = None,
        solver: str = "auto",
        tolerance: float | None = None,
        max_iterations: int | None = None,
        seed: int = 0,
        release: str | int = "first",
    ) -> None:
        self.epsilon, self.delta, self.mechanism = epsilon, delta, mechanism
        self.norm_bound, self.frac_bits, self.l2, self.intercept = norm_bound, frac_bits, l2, intercept
        self.mu, self.init, self.solver = mu, init, solver
        self.tolerance, self.max_iterations, self.seed, self.release = tolerance, max_iterations, seed, release

    def fit(self, X: ArrayLike, y: ArrayLike) -> WALRClassifier:
        """Fit the model. Open budgets (`PrivacyBudget`) are charged before the noise is drawn.

        Args:
            X: public features, shape (rows, columns): an array of numbers or a data frame.
            y: private labels, shape (rows,), of two classes.

        Returns:
            This estimator.

        Raises:
            ConfigError: an option is wrong; the message names it.
            DataError: a row or a column is wrong; the message names it.
            RangeError: no grid fits the norm bound and the noise.
            BudgetExhausted: an open budget has too little left.
            ValueError: scikit-learn's checks refuse an argument or the rows.
        """
        with self._restore_on_error():
            found = self._fit(X, y)
        cautions.issue(cautions.warn_of_infeasible(found.feasibility, found.l2))
        cautions.issue(cautions.warn_of_no_convergence(found.result))
        return self

    def _fit(self, X: ArrayLike, y: ArrayLike) -> WalrFit:
        self._validate_params()
        X, y = self._rows_to_fit(X, y)
        classes, labels = binary_labels(y)
        settings = self._solver_settings()  # refusals here and below come before the charge
        standardiser = Standardiser.fit([X], names_of(self), table=self._table).require_columns()
        anchor = self._anchor(classes, standardiser)
        standardised = standardiser.transform(X)
        columns = append_constant(standardised) if self.intercept else standardised
        norms = row_norms(columns)
        multiplier = gaussian.noise_multiplier(self.mechanism, self.epsilon, self.delta)
        grid = self._grid(norms, multiplier)
        values = quantise_rows(columns, grid.norm_bound, grid.frac_bits)
        mechanism = GaussianMechanism(multiplier, grid.norm_bound**2)
        scale = grid.step / len(values)
        noise_std = float(mechanism.sigma_squared) ** 0.5 * scale
        cautions.issue(self._cautions(standardiser, norms, grid.real_bound, noise_std))
        exact = values[labels].sum(axis=0, dtype=np.int64).tolist()
        sums = draw_once(
            partial(mechanism.release, exact, system_uniform),
            mechanism.event(NEIGHBOURS),
            values,
            labels,
            grid.frac_bits,
            mechanism,
            self.release,
        )
        found = fit_released(
            QuantisedRows(values, grid.frac_bits),
            np.array(sums, np.float64) * scale,
            noise_std=noise_std,
            norm_bound=grid.real_bound,
            epsilon=self.epsilon,
            settings=settings,
            l2=self.l2,
            treatment=self.mu,
            init=anchor,
            generator=public_generator(self.seed, "batches"),
        )
        self.model_ = WALRModel(standardiser, found.result.weights, self.intercept, grid.real_bound)
        self.classes_, self.noise_std_, self.norm_bound_ = classes, noise_std, grid.real_bound
        self.coef_, self.intercept_ = self.model_.coef_, self.model_.intercept_
        self.privacy_statement_ = statement_of(
            {
                "epsilon": self.epsilon,
                "delta": self.delta,
                "unit": UNIT,
                "neighbours": NEIGHBOURS,
                "mechanism": f"{self.mechanism} Gaussian, drawn as discrete Gaussian, on one weighted sum",
            }
        )
        self.l2_, self.feasible_ = found.l2, found.feasibility.feasible
        self.n_iter_, self.converged_ = found.result.iterations, found.result.converged
        return found

    def _grid(self, norms: Floats, multiplier: float) -> Grid:
        """Return the grid of rows and noise.

        Raises:
            RangeError: no grid holds the norm bound, or is fine enough for the noise.
        """
        fixed = None if self.frac_bits == "auto" else self.frac_bits
        if self.norm_bound == "auto":
            bound = defaults.default_norm_bound(norms)
            if fixed is None:
                return Room.of(multiplier, (1, 1), largest_sum=LARGEST_SUM).grid(bound, None)
        else:
            bound = self.norm_bound
        return auto_grid(bound, multiplier, 1) if fixed is None else Grid.of(bound, fixed)

    def _cautions(
        self, standardiser: Standardiser, norms: Floats, norm_bound: float, noise_std: float
    ) -> Iterator[BlindfitWarning]:
        yield from cautions.warn_of_constant_columns(standardiser)
        yield from cautions.warn_of_clipped_rows(norms, norm_bound)
        yield from cautions.warn_of_large_delta(self.delta, len(norms))
        yield from cautions.warn_of_noisy_mean(self.epsilon, noise_std)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the log odds of the second class, shape (rows,).

        Args:
            X: features, shape (rows, columns), as in the fit.

        Raises:
            NotFittedError: `fit` was not called.
            DataError, ValueError: the features are not those of the fit.
        """
        check_is_fitted(self)
        return self.model_.scores(self._rows_of_fit(X))

    def _anchor(self, classes: NDArray[Any], standardiser: Standardiser) -> NDArray[np.float64] | None:
        """Return the weights towards which l2 shrinks; None without `init`.

        Raises:
            ConfigError: `init` would have no effect.
            DataError: `init` is for other features or classes.
        """
        init = initial_model(self.init, self, classes)
        if init is None:
            return None
        if self.l2 != "auto":
            require_pull(self.l2)
        return init.weights_for(standardiser, intercept=self.intercept)

    def _solver_settings(self) -> SolverSettings:
        return SolverSettings(
            l2=0.0 if self.l2 == "auto" else self.l2,
            solver=self.solver,  # type: ignore[arg-type]
            unpenalised=-1 if self.intercept else None,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
