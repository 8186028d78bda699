"""Labels from gradients by lattice reduction: few equations in many unknowns, which are signs.

weights 0      first gradient of the first batch = -1/2 X_P^T y (+ X_P^T n + noise)
secret start   differences of one batch's gradients span X_P^T X_A; orthogonal to that, -1/2 Q X_P^T y stays
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.attacks import lattices
from tests.attacks.views import Data, Seen, Setting, breast, coins

Floats = NDArray[np.float64]
EXACT = 2.0**16  # finer than the features' grid: an equation holds or it does not
PRECISION = 2.0**17  # precision of an equation from differences: residuals are rounded to 2^-20
FEW_COLUMNS = 3  # two and the intercept
SECRET_START = {"batch_rows": 96, "secret_start": 0.3, "epochs": 50}


def from_first_gradient(seen: Seen, setting: Setting, *, blocks: tuple[int, ...] = lattices.BLOCKS) -> Floats:
    """(rows of the first batch,) guesses at the labels; sure ones are signs. The attacker knows all settings."""
    view = seen.views[0]
    columns = seen.reals(view.batch)
    equations, values = columns.T, -2 * seen.others(view)
    noise = setting.gradient_noise**2 + seen.kept_noise_std**2
    if setting.label_jitter == 0 and noise == 0:
        return _solved(equations, values, EXACT, blocks)
    covariance = 4 * setting.label_jitter**2 * columns.T @ columns + 4 * noise * np.eye(seen.columns)
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    return _solved(whiten @ equations, whiten @ values, 1.0, blocks)


def from_differences(
    seen: Seen, others_columns: int, weight: float, *, number: int = 0, blocks: tuple[int, ...] = lattices.BLOCKS
) -> Floats:
    """Do the same for batch `number`, for any weights at the start; the others must have fewer columns than the
    attacker.
    """
    views = seen.of_batch(number)
    columns = seen.reals(views[0].batch)
    # Only each row's rounding is inexact; in an orthonormal base of the columns it is the same in every equation.
    whiten = np.linalg.inv(np.linalg.cholesky(columns.T @ columns))
    gradients = np.array([whiten @ seen.others(view) for view in views])
    mean = gradients.mean(axis=0)
    across = complement(span(gradients - mean, others_columns)).T
    return _solved(across @ whiten @ columns.T, -2 * across @ mean, weight, blocks)


def beside_few_columns(seed: int) -> Data:
    """Return breast cancer columns with random labels, and FEW_COLUMNS at the active party."""
    return coins(np.random.default_rng(seed), breast(active=slice(0, FEW_COLUMNS - 1)))


def span(rows: Floats, dimensions: int) -> Floats:
    """(k, dimensions): an orthonormal base of the subspace in which the rows mostly lie."""
    return np.linalg.svd(rows, full_matrices=False)[2][:dimensions].T


def complement(base: Floats) -> Floats:
    """(k, k - dimensions): an orthonormal base of the orthogonal complement."""
    return np.linalg.qr(base, mode="complete")[0][:, base.shape[1] :]


def _solved(equations: Floats, values: Floats, weight: float, blocks: tuple[int, ...]) -> Floats:
    rows = lattices.reduced(
        equations, values, weight, blocks=blocks, done=lambda found: lattices.signs(found) is not None
    )
    found = lattices.signs(rows)
    return lattices.nearest(rows) if found is None else found
