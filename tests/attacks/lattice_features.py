"""A partner's binary column from differences of gradients, by lattice reduction.

The labels' part of a kept batch's gradient never changes, so differences lie in X_own^T X_other. If the other party
has only one column, they are multiples of X_own^T (b + constant); vectors orthogonal to that and to the constant give
Q X_own^T b = 0, and b is a short integer vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from fpylll import BKZ, LLL, IntegerMatrix
from numpy.typing import NDArray

from blindfit.algorithms.statistics.quality.metrics import auc
from tests.attacks.lattice_labels import complement, span
from tests.attacks.lattices import BLOCKS, FINE, Integers
from tests.attacks.views import Data, Seen, Setting, Training, breast, simulate, with_intercept

Floats = NDArray[np.float64]
Reader = Literal["active", "passive"]
READERS: tuple[Reader, ...] = get_args(Reader)
Column = Callable[[np.random.Generator, Floats], NDArray[np.bool_]]
EXACT = 2.0**28  # two values of a score round in two ways, so that rounding leaves the equations exact
ROUNDING = 2.0**-20  # rounding of a residual
CANDIDATES, MANY_CANDIDATES = 3, 60
WEIGHTS = (0.5, 1.0, 2.0, 4.0, 8.0)  # weights of noisy equations: the attacker tries them all
EPOCHS = 50


def binary_column(
    seen: Seen,
    noise_std: float,
    weight: float,
    *,
    number: int = 0,
    candidates: int = CANDIDATES,
    blocks: tuple[int, ...] = BLOCKS,
) -> list[Floats]:
    """Guess at the column in the batch as signs, up to which value is which: short vectors of exactly two values.

    Args:
        noise_std: standard deviation of the key node's noise, which is public.
        weight: weight of the equations: 1 / their error.
    """
    columns, whiten, base = _moved(seen, noise_std, number)
    equations = complement(np.linalg.qr(base)[0]).T @ whiten @ columns.T
    equations -= equations.mean(axis=1, keepdims=True)
    fine = FINE if weight < FINE else 1
    n = len(columns)
    rows = np.hstack([fine * np.eye(n), np.rint(fine * weight * equations.T)]).astype(np.int64)
    basis = IntegerMatrix.from_matrix(rows.tolist())
    LLL.reduction(basis)
    found = _two_valued(basis, n, fine, candidates)
    for block in blocks:
        if found:
            break
        BKZ.reduction(basis, BKZ.Param(block, flags=BKZ.AUTO_ABORT))
        found = _two_valued(basis, n, fine, candidates)
    return found


def projected(seen: Seen, noise_std: float, *, number: int = 0) -> Floats:
    """(rows of the batch,) the part of the column in the span of the attacker's own, up to its sign, by
    least squares.
    """
    columns, whiten, base = _moved(seen, noise_std, number)
    return np.asarray(columns @ np.linalg.solve(columns.T @ columns, np.linalg.solve(whiten, base[:, 1])))


def _moved(seen: Seen, noise_std: float, number: int) -> tuple[Floats, Floats, Floats]:
    """Return the batch's own columns, a whitening matrix for the errors, and in that base two directions.

    The directions are that of the constant, and that in which gradients move."""
    views = seen.of_batch(number)
    columns = seen.reals(views[0].batch)
    errors = ROUNDING**2 * columns.T @ columns + noise_std**2 * np.eye(seen.columns)
    whiten = np.linalg.inv(np.linalg.cholesky(errors / np.trace(errors) * seen.columns))
    gradients = np.array([whiten @ seen.others(view) for view in views])
    constant = whiten @ columns.sum(axis=0)
    constant /= np.linalg.norm(constant)
    moved = (gradients - gradients.mean(axis=0)) @ (np.eye(seen.columns) - np.outer(constant, constant))
    return columns, whiten, np.column_stack([constant, span(moved, 1)])


def _two_valued(basis: IntegerMatrix, n: int, fine: int, candidates: int) -> list[Floats]:
    rows: Integers = np.array([[basis[i, j] for j in range(n)] for i in range(candidates)], dtype=np.int64) // fine
    return [np.where(row == row.max(), 1.0, -1.0) for row in rows if len(np.unique(row)) == 2]


def bits_given_away(seen: Seen, other: Seen, noise_std: float, *, number: int = 0) -> float:
    """Bound the bits of the other party's only column that the reader's gradients of one batch reveal in all epochs.

    The reader knows how that column's weight moved. The bound is the capacity of a Gaussian channel with as many
    dimensions as the reader has columns.
    """
    weights = np.array([view.weights[0] for view in other.of_batch(number)])
    slope = 2 * seen.grid.loss.square
    moved = slope**2 * float(np.square(weights - weights.mean()).sum())
    batch = seen.of_batch(number)[0].batch
    power = np.linalg.eigvalsh(seen.reals(batch).T @ seen.reals(batch)) * other.reals(batch)[:, 0].var()
    return float(np.log2(1 + np.maximum(power, 0.0) * moved / noise_std**2).sum() / 2)


# --- breast cancer, a party with only one column, and its reader with 20 columns -----------------------------


def chance(ones: float) -> Column:
    return lambda rng, y: rng.random(len(y)) < ones


def label_but(flipped: float) -> Column:
    """Return the label in most rows: its weight moves more, which shows more of it."""
    return lambda rng, y: (y > 0) ^ (rng.random(len(y)) < flipped)


telling, nearly_the_label = label_but(0.2), label_but(0.05)


def trained(reader: Reader, setting: Setting, column: Column) -> tuple[Training, Floats]:
    data = breast()
    ones = column(np.random.default_rng([setting.seed, 7]), data.y).astype(float)[:, None]
    wide = data.parts[1]
    parts = (with_intercept(wide), ones) if reader == "active" else (with_intercept(ones), wide)
    return simulate(Data(parts, data.y), setting), ones


def train(reader: Reader, setting: Setting, column: Column) -> tuple[Seen, Floats]:
    """Return the reader's view, and the other party's column in the first batch as signs."""
    training, ones = trained(reader, setting, column)
    return training.seen[READERS.index(reader)], 2 * ones[training.plan.batches[0], 0] - 1


def most_right(
    seen: Seen,
    truth: Floats,
    noise_std: float,
    weight: float,
    *,
    candidates: int = CANDIDATES,
    blocks: tuple[int, ...] = BLOCKS,
) -> float:
    """Return the share of rows that the best candidate has right, chosen by the true column; 0 without a candidate."""
    found = binary_column(seen, noise_std, weight, candidates=candidates, blocks=blocks)
    return float(max((max(np.mean(guess == truth), np.mean(guess == -truth)) for guess in found), default=0.0))


def most_right_in_noise(seen: Seen, truth: Floats, noise_std: float, *, blocks: tuple[int, ...] = BLOCKS) -> float:
    return max(
        most_right(seen, truth, noise_std, weight, candidates=MANY_CANDIDATES, blocks=blocks) for weight in WEIGHTS
    )


def always_the_same(truth: Floats) -> float:
    """Return the share of right values of a guess that is one value in all rows."""
    return float(max(np.mean(truth > 0), np.mean(truth < 0)))


def projected_auc(reader: Reader, setting: Setting) -> float:
    """Return how well least squares reads a random column."""
    seen, truth = train(reader, setting, chance(0.3))
    one_way = auc(truth > 0, projected(seen, setting.gradient_noise))
    return max(one_way, 1 - one_way)


def bits_read(setting: Setting, reader: Reader) -> float:
    """Bound the bits read of a column that nearly is the label."""
    seen = trained(reader, setting, nearly_the_label)[0].seen
    place = READERS.index(reader)
    return bits_given_away(seen[place], seen[1 - place], setting.gradient_noise)


def bits_held(truth: Floats) -> float:
    """Return the entropy of a column with this share of ones."""
    ones = float(np.mean(truth > 0))
    return -len(truth) * (ones * math.log2(ones) + (1 - ones) * math.log2(1 - ones))
