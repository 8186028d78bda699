"""Solvers of the WALR objective, by name.

| solver | reads | use |
|---|---|---|
| newton | all rows for a gradient, a sample or all rows for a Hessian | the default up to 500 columns |
| lbfgs | all rows for each gradient | the default above |
| gradient-descent | all rows for each gradient | to compare with the paper |
| hybrid-minibatch | a batch of rows for the left term of the gradient; the right one is always mu | the paper's |

Source: specs/walr.md. Departures: its rate is constant and its "while not converged" undefined. The left term's
variance does not vanish at the optimum. So here the rate decays, the running mean of the weights decides and is
returned, and the left term is centred (`SolverSettings.centred`). Each of the three can be switched off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindfit.algorithms.errors import ConfigError, RangeError
from blindfit.algorithms.statistics.linear.logistic import (
    Floats,
    Rows,
    WalrObjective,
    as_rows,
    column_means,
    sigmoid,
    signed_sums,
    softplus,
    sum_rows,
)
from blindfit.algorithms.statistics.linear.solver_settings import FitResult, SolverSettings

Progress = Callable[[int, float], None]

NEWTON_MAX_FEATURES = 500
SAMPLE_ROWS = 50_000  # for starts and rates that need not be exact
CHORD_REDUCTION = 0.1  # a Hessian is kept while each step divides the gradient by ten
ARMIJO, LEAST_STEP = 1e-4, 2.0**-30
MEAN_POWER = 3  # of the running mean: iterate s weighs about s^3, so the start is forgotten (Shamir and Zhang 2013)


# --- the entrance ---------------------------------------------------------------------------------


def fit(
    rows: Rows | ArrayLike,
    mu: ArrayLike,
    settings: SolverSettings,
    *,
    start: ArrayLike | None = None,
    anchor: ArrayLike | None = None,
    generator: np.random.Generator | None = None,
    on_progress: Progress | None = None,
) -> FitResult:
    """Minimise the WALR objective.

    Args:
        rows: shape (n_rows, n_features), the very rows of the aggregate.
        mu: shape (n_features,), the aggregate over the number of rows.
        start: first weights; the anchor by default.
        anchor: the weights towards which l2 shrinks, zero by default. Without l2 it would do nothing.
        generator: public randomness; hybrid-minibatch needs it for its batches.
        on_progress: function that is called with the iteration and the norm of its gradient.

    Returns:
        `converged` is false when the tolerance was not reached; `reason` then gives the cause.

    Raises:
        ConfigError: an anchor without l2, or weights of the wrong number.
        RangeError: the objective has no minimum along the unpenalised column, or the weights overflowed.
    """
    objective = _objective(as_rows(rows), mu, settings, anchor)
    _check_unpenalised(objective)
    solver = settings.solver
    if solver == "auto":
        solver = "newton" if objective.rows.n_features <= NEWTON_MAX_FEATURES else "lbfgs"
    given = start if start is not None else objective.anchor
    first = np.zeros(objective.rows.n_features) if given is None else np.array(given, dtype=np.float64)
    if first.shape != objective.mu.shape or not np.isfinite(first).all():
        raise ConfigError(f"start must hold {objective.rows.n_features} finite weights")
    return _SOLVERS[solver](_Run(objective, settings, first, generator, on_progress or _silent))


def _objective(rows: Rows, mu: ArrayLike, settings: SolverSettings, anchor: ArrayLike | None) -> WalrObjective:
    towards = None
    if anchor is not None:
        require_pull(settings.l2)
        towards = np.array(anchor, dtype=np.float64)
    return WalrObjective(rows, np.asarray(mu, dtype=np.float64), settings.l2, settings.unpenalised, towards)


def require_pull(l2: float) -> None:
    """Raise ConfigError if an anchor would do nothing."""
    if l2 == 0:
        raise ConfigError(
            "a pre-trained model does nothing with l2 = 0: the fit has one optimum, wherever it starts",
            hint='set l2 above 0, or l2 = "auto": l2 shrinks towards the pre-trained weights',
        )


def hybrid_gradient(
    batch: Floats, mu: Floats, weights: Floats, *, centre: float = 0.0, mean_row: Floats | None = None
) -> Floats:
    """Return the paper's hybrid gradient: the left term over a batch, mu over all rows; without the penalty.

    With a centre c and the mean of all rows, the left term is mean (p - c) x + c mean_row: the same expectation, and
    E (p - c)^2 x x^T in place of E p^2 x x^T for its noise.
    """
    left = (sigmoid(batch @ weights) - centre) @ batch / len(batch)
    gradient: Floats = left - mu if mean_row is None else left + centre * mean_row - mu
    return gradient


def _check_unpenalised(objective: WalrObjective) -> None:
    # Along the unpenalised column the objective is mean softplus(w x) - w mu: bounded below iff mu is inside.
    if objective.unpenalised is None:
        return
    column = objective.unpenalised
    negatives, positives = sum_rows(objective.rows, signed_sums)
    negative, positive = float(negatives[column]), float(positives[column])
    lowest, highest = negative / objective.rows.n_rows, positive / objective.rows.n_rows
    if not lowest < objective.mu[column] < highest:
        raise RangeError(
            f"mu of the unpenalised column {column} is {objective.mu[column]:.6g}, outside "
            f"({lowest:.6g}, {highest:.6g}): no finite weight fits it",
            hint="clip mu (clip_mu), set unpenalised = None, or release mu with a larger epsilon",
        )


# --- parts that all solvers share -----------------------------------------------------------------------


@dataclass
class _Run:
    """One fit under way: the objective, and what was spent and seen so far."""

    objective: WalrObjective
    settings: SolverSettings
    start: Floats
    generator: np.random.Generator | None
    on_progress: Progress
    history: list[float] = field(default_factory=list)
    rows_read: int = 0

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        self.rows_read += self.objective.rows.n_rows
        value, gradient = self.objective.value_and_gradient(weights)
        _check_overflow(value, gradient)
        return value, gradient

    def hessian(self, weights: Floats) -> Floats:
        self.rows_read += self.objective.rows.n_rows
        return self.objective.hessian(weights)

    def gradient_limit(self, default: float) -> float:
        """Return the tolerance in units of the features, so that rescaling them changes nothing."""
        sample = self.objective.on_sample(SAMPLE_ROWS).rows
        mean_square = sum(float(np.square(block).sum()) for block in sample.blocks()) / sample.n_rows
        return (self.settings.tolerance or default) * (np.sqrt(mean_square / sample.n_features) or 1.0)

    def finish(self, solver: str, weights: Floats, iterations: int, norm: float, converged: bool) -> FitResult:
        return FitResult(
            solver,
            weights,
            iterations,
            converged,
            norm,
            tuple(self.history),
            self.rows_read,
            self._reason(converged),
        )

    def _reason(self, converged: bool) -> str:
        if converged:
            return "the tolerance was reached"
        if self.has_no_minimum():
            return "mu is infeasible: without l2 the weights run to infinity"
        return "the tolerance was not reached within the iterations and precision at hand"

    def has_no_minimum(self) -> bool:
        # Without l2, L(w) <= 0 means mean max(x.w, 0) < w.mu: w separates mu from every X^T q / N, q in [0, 1]^N.
        return self.objective.l2 == 0 and bool(self.history) and self.history[-1] <= 0


def _check_overflow(value: float, vector: Floats) -> None:
    if not (np.isfinite(value) and np.isfinite(vector).all()):
        raise RangeError(
            "the weights overflowed",
            hint='lower rate below 2 / l2, or set solver = "newton" or "lbfgs", which have no rate',
        )


def _silent(_iteration: int, _gradient_norm: float) -> None:
    pass


def _norm(vector: Floats) -> float:
    return float(np.linalg.norm(vector))


# --- newton ---------------------------------------------------------------------------------------


def _newton(run: _Run) -> FitResult:
    """Minimise by Newton's method with backtracking, started on a sample of the rows.

    The optimum on m rows is within about sqrt(k / m) of the one on all, and so is its Hessian: most fits need no
    Hessian of all rows, only a few gradients. Only the gradient of all rows decides when to stop.
    """
    max_rows = SAMPLE_ROWS if run.settings.warm_start_rows is None else run.settings.warm_start_rows
    sample = run.objective.on_sample(max_rows) if max_rows else run.objective
    limit, max_iterations = run.gradient_limit(1e-8), run.settings.max_iterations or 100
    weights, hessian = run.start, None
    if sample is not run.objective:
        rehearsal = _Run(sample, run.settings, run.start, None, _silent)
        warm = _newton_steps(rehearsal, run.start, None, limit * 1e4, max_iterations=20)
        run.rows_read += rehearsal.rows_read
        if warm.converged:
            weights, hessian = warm.weights, sample.hessian(warm.weights)
    return _newton_steps(run, weights, hessian, limit, max_iterations)


def _newton_steps(run: _Run, weights: Floats, hessian: Floats | None, limit: float, max_iterations: int) -> FitResult:
    value, gradient = run.value_and_gradient(weights)
    last_norm = np.inf
    for iteration in range(max_iterations + 1):
        norm = _norm(gradient)
        run.history.append(value)
        run.on_progress(iteration, norm)
        if norm <= limit or run.has_no_minimum() or iteration == max_iterations:
            break
        if hessian is None or norm > CHORD_REDUCTION * last_norm:
            hessian = run.hessian(weights)
        last_norm = norm
        step = solve_positive(hessian, gradient)
        moved = backtrack(run.value_and_gradient, weights, value, gradient, step)
        if moved is None:
            break
        weights, value, gradient = moved
    return run.finish("newton", weights, iteration, norm, norm <= limit)


def backtrack(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    weights: Floats,
    value: float,
    gradient: Floats,
    step: Floats,
) -> tuple[Floats, float, Floats] | None:
    """Return the first of weights - step, - step/2, - step/4 ... that lowers the objective enough (Armijo), or None.

    Returns:
        The new weights with their value and gradient.
    """
    slope = float(gradient @ step)
    rounding = 1e-13 * max(1.0, abs(value))  # the value is flat to rounding long before the gradient is
    length = 1.0
    while length >= LEAST_STEP:
        trial = weights - length * step
        trial_value, trial_gradient = evaluate(trial)
        if trial_value <= value - ARMIJO * length * slope + rounding:
            return trial, trial_value, trial_gradient
        length /= 2
    return None


def solve_positive(matrix: Floats, right: Floats) -> Floats:
    """Return matrix^-1 right for a positive semidefinite matrix; a singular one gets the least workable ridge."""
    from scipy.linalg import cho_factor, cho_solve

    size = float(np.trace(matrix)) / len(matrix)
    for ridge in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        try:
            factor = cho_factor(matrix + ridge * size * np.eye(len(matrix)))
        except (np.linalg.LinAlgError, ValueError):  # ValueError: infinite or NaN
            continue
        solution: Floats = cho_solve(factor, right)
        return solution
    raise RangeError("the Hessian is not positive definite", hint="raise l2, or leave out columns that repeat others")


# --- lbfgs ----------------------------------------------------------------------------------------


def _lbfgs(run: _Run) -> FitResult:
    limit = run.gradient_limit(1e-6)
    from scipy.optimize import minimize  # here, as it takes long to import, and a party that fits nothing does not

    # SciPy evaluates several weights in an iteration, and passes only the accepted ones to the callback, without their
    # gradient. It reuses the array, so the numbers themselves are the key, as bytes: an array cannot be a key.
    norms: dict[bytes, tuple[float, float]] = {}

    def evaluate(weights: Floats) -> tuple[float, Floats]:
        value, gradient = run.value_and_gradient(weights)
        norms[weights.tobytes()] = value, _norm(gradient)
        return value, gradient

    def after_iteration(weights: Floats) -> None:
        value, norm = norms[weights.tobytes()]
        norms.clear()
        run.history.append(value)
        run.on_progress(len(run.history), norm)
        if norm <= limit or run.has_no_minimum():
            raise StopIteration

    options = {"maxiter": run.settings.max_iterations or 1000, "maxcor": run.settings.memory or 10}
    # ftol = gtol = 0: only the norm of the gradient decides, in after_iteration.
    found = minimize(
        evaluate,
        run.start,
        jac=True,
        method="L-BFGS-B",
        callback=after_iteration,
        options=options | {"ftol": 0.0, "gtol": 0.0, "maxfun": 20 * options["maxiter"]},
    )
    norm = _norm(run.value_and_gradient(found.x)[1])
    return run.finish("lbfgs", found.x, len(run.history), norm, norm <= limit)


# --- gradient descent -----------------------------------------------------------------------------


def _gradient_descent(run: _Run) -> FitResult:
    limit, max_iterations = run.gradient_limit(1e-6), run.settings.max_iterations or 10_000
    rate, weights = run.settings.rate or _default_rate(run.objective), run.start
    for iteration in range(max_iterations + 1):
        value, gradient = run.value_and_gradient(weights)
        norm = _norm(gradient)
        run.history.append(value)
        run.on_progress(iteration, norm)
        if norm <= limit or run.has_no_minimum() or iteration == max_iterations:
            break
        weights = weights - rate / (1 + (run.settings.decay or 0.0) * iteration) * gradient
    return run.finish("gradient-descent", weights, iteration, norm, norm <= limit)


def _default_rate(objective: WalrObjective) -> float:
    """Return 1 / (largest curvature): p (1 - p) is at most 1/4, so the Hessian at zero weights bounds all."""
    sample = objective.on_sample(SAMPLE_ROWS)
    largest = float(np.linalg.eigvalsh(sample.hessian(np.zeros_like(objective.mu)))[-1])
    return 1 / largest if largest > 0 else 1.0


# --- the paper's hybrid minibatch descent ------------------------------------------------------------


def _hybrid_minibatch(run: _Run) -> FitResult:
    if run.generator is None:
        raise ConfigError("generator: hybrid-minibatch draws batches and needs a generator of public randomness")
    objective, settings = run.objective, run.settings
    n_rows, penalty = objective.rows.n_rows, objective.penalty
    batch_rows = min(settings.batch_rows or 1024, n_rows)
    pass_steps = max(10, -(-n_rows // batch_rows))
    rate = settings.rate or _default_rate(objective)
    decay = 0.01 if settings.decay is None else settings.decay
    max_iterations = settings.max_iterations or 200 * pass_steps
    tolerance = settings.tolerance or 1e-3
    centre, mean_row = (0.0, None) if settings.centred is False else _centre(run)
    weights, mean, mean_before, converged = run.start, run.start, run.start, False

    for step in range(1, max_iterations + 1):
        batch = objective.rows.take(_draw_batch(run.generator, n_rows, batch_rows))
        run.rows_read += batch_rows
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = hybrid_gradient(batch, objective.mu, weights, centre=centre, mean_row=mean_row)
            gradient += penalty * objective.from_anchor(weights)
            weights = weights - rate / (1 + decay * (step - 1)) * gradient
            mean = mean + (MEAN_POWER + 1) / (MEAN_POWER + step) * (weights - mean)
        if step % pass_steps == 0:
            run.history.append(_hybrid_value(objective, batch, weights))
            _check_overflow(run.history[-1], gradient)
            run.on_progress(step, _norm(gradient))
            converged = _norm(mean - mean_before) <= tolerance * _norm(mean)
            mean_before = mean
            if converged:
                break
    chosen = weights if settings.averaging is False else mean
    norm = _norm(run.value_and_gradient(chosen)[1])
    return run.finish("hybrid-minibatch", chosen, step, norm, converged)


def _centre(run: _Run) -> tuple[float, Floats]:
    """Return the constant about which p varies, as far as mu reveals it, and the mean of all rows."""
    rows, column = run.objective.rows, run.objective.unpenalised
    mean_row = column_means(rows)
    run.rows_read += rows.n_rows
    if column is None or mean_row[column] == 0:
        return 0.5, mean_row
    return float(np.clip(run.objective.mu[column] / mean_row[column], 0, 1)), mean_row


def _draw_batch(generator: np.random.Generator, n_rows: int, batch_rows: int) -> NDArray[np.intp]:
    return generator.choice(n_rows, batch_rows, replace=False, shuffle=False).astype(np.intp, copy=False)


def _hybrid_value(objective: WalrObjective, batch: Floats, weights: Floats) -> float:
    """Return the objective with its first term over the batch."""
    with np.errstate(over="ignore", invalid="ignore"):
        penalty = objective.penalty @ objective.from_anchor(weights) ** 2 / 2
        value = softplus(batch @ weights).mean() - weights @ objective.mu + penalty
    return float(value)


_SOLVERS: dict[str, Callable[[_Run], FitResult]] = {
    "newton": _newton,
    "lbfgs": _lbfgs,
    "gradient-descent": _gradient_descent,
    "hybrid-minibatch": _hybrid_minibatch,
}
