"""The public grids of a Taylor training, on which its numbers lie.

All of them follow only from public parameters, so every party derives the same grids and every bound is known before
the first ciphertext.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import DataError, RangeError
from blindfit.algorithms.fixed_point import MAX_BITS
from blindfit.algorithms.statistics.vertical.loss import LOSSES, TaylorLoss
from blindfit.algorithms.statistics.vertical.row_plan import Rows

HIDING_BITS = 40
SCORE_TERM_BOUND = 64  # of one party's 2 a z: beyond it a model has long diverged
LABEL_TERM_BOUND = 16  # of b y and its jitter
LABEL_BOUND = 8.0  # of y; numbers further out, in standard deviations, are clipped
MOST_ROWS = 2**26
MOST_BATCH_ROWS = 2**20  # that a job may request


def min_batch_rows(n_train: int, needed: int) -> int | None:
    """Return the smallest `batch_rows` for which every batch has at least `needed` rows; None if no number serves.

    At most m = n_train // needed batches fit, and there are at most m if n_train / batch_rows < m + 1/2. Then the
    smallest batch has n_train // m rows or more, or `batch_rows` rows. Any larger `batch_rows` serves as well.
    """
    max_batches = n_train // needed
    if not max_batches:
        return None
    batch_rows = max(2 * n_train // (2 * max_batches + 1) + 1, 2 if max_batches == 1 else needed)
    return batch_rows if batch_rows <= MOST_BATCH_ROWS else None


@dataclass(frozen=True, slots=True)
class Grid:
    """Scales in bits and bounds in steps; every plaintext of the protocol lies on one of these.

    Attributes:
        feature_bits: fraction bits of features, which are clipped to feature_bound.
        residual_bits: fraction bits of residuals 2 a z - b y.
        score_bits, label_bits: fraction bits of scores and labels in the hold-out loss.
        factor_bits: fraction bits of a row's factor: 0 for a mask of 0 and 1, 8 for class weights.
    """

    model: str
    data_parties: int
    feature_bits: int = 12
    feature_bound: float = 8.0
    residual_bits: int = 20
    score_bits: int = 24
    label_bits: int = 16
    factor_bits: int = 0
    factor_bound: int = 1  # steps

    @property
    def loss(self) -> TaylorLoss:
        return LOSSES[self.model]

    # --- features

    def features(self, reals: npt.ArrayLike) -> Rows:
        """Convert (n, k) reals to integers in steps of 2^-feature_bits, clipped."""
        values = np.asarray(reals, dtype=np.float64)
        if np.isnan(values).any():
            raise DataError("a feature is not a number")
        clipped = np.clip(values, -self.feature_bound, self.feature_bound)
        return np.rint(np.ldexp(clipped, self.feature_bits)).astype(np.int64)

    @property
    def feature_steps(self) -> int:
        """The largest feature, in steps."""
        return round(math.ldexp(self.feature_bound, self.feature_bits))

    def reals(self, features: Rows) -> npt.NDArray[np.float64]:
        """Convert integers to the reals that they stand for."""
        return np.ldexp(features.astype(np.float64), -self.feature_bits)

    def scores(self, features: Rows, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return z of one party's columns."""
        return self.reals(features) @ weights

    def shrink(self, features: Rows, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Shrink one party's weights if a score of these rows would otherwise pass its bound.

        The loss of a diverging training is then the loss of weights within the protocol's range.
        """
        largest = float(np.abs(self.scores(features, weights)).max(initial=0.0))
        return weights * (self.largest_score / max(largest, self.largest_score))

    # --- residuals

    def score_terms(self, scores: npt.NDArray[np.float64]) -> Rows:
        """Return 2 a z in steps of 2^-residual_bits.

        Numbers past the bound are cut: if the job ended there instead, its end would reveal something about a row.
        """
        terms = np.clip(2 * self.loss.square * scores, -SCORE_TERM_BOUND, SCORE_TERM_BOUND)
        return np.rint(np.ldexp(terms, self.residual_bits)).astype(np.int64)

    def label_terms(self, y: npt.NDArray[np.float64], jitter: npt.NDArray[np.float64]) -> Rows:
        """Return -b y + jitter in the same steps; drawn once for each row, and the same in every epoch.

        A sum that a large jitter takes past the bound is cut: a job does not end by a number that a row happened to
        draw.

        Raises:
            RangeError: a label is too large.
        """
        if y.size and not float(np.abs(y).max()) <= LABEL_BOUND:
            raise RangeError(f"a label passes {LABEL_BOUND:g}: labels are standardised and clipped before training")
        terms = np.clip(-self.loss.cross * y + jitter, -LABEL_TERM_BOUND, LABEL_TERM_BOUND)
        return np.rint(np.ldexp(terms, self.residual_bits)).astype(np.int64)

    @property
    def residual_bound(self) -> int:
        """Bound of a residual before its factor, in steps."""
        return self.residual_bound_after(self.data_parties)

    def residual_bound_after(self, parties: int) -> int:
        """Return the bound after so many parties of the chain have added their terms."""
        return (parties * SCORE_TERM_BOUND + LABEL_TERM_BOUND) << self.residual_bits

    @property
    def weighted_residual_bits(self) -> int:
        return self.residual_bits + self.factor_bits

    # --- gradients

    @property
    def gradient_bits(self) -> int:
        """Fraction bits of a sum of features times residuals."""
        return self.feature_bits + self.weighted_residual_bits

    def gradient_bound(self, batch_rows: int) -> int:
        return batch_rows * self.feature_steps * self.residual_bound * self.factor_bound

    def hiding_bound(self, batch_rows: int) -> int:
        """Return the bound below which rho is uniform: it hides a gradient up to 2^-40."""
        return 1 << (self.gradient_bound(batch_rows).bit_length() + HIDING_BITS)

    def slot_bits(self, batch_rows: int) -> int:
        """Return the slot bits of a packed gradient with its mask."""
        return (self.gradient_bound(batch_rows) + self.hiding_bound(batch_rows)).bit_length() + 1

    # --- the hold-out loss

    @property
    def largest_score(self) -> float:
        """Largest score of one party."""
        return SCORE_TERM_BOUND / (2 * self.loss.square)

    @property
    def score_bound(self) -> int:
        """Largest score of one party, in steps of 2^-score_bits."""
        return int(self.largest_score) << self.score_bits

    @property
    def loss_bits(self) -> int:
        return 2 * self.score_bits + self.factor_bits

    @property
    def weight_bits(self) -> int:
        """Fraction bits of weights that multiply encrypted labels."""
        return 2 * self.score_bits - self.label_bits - self.feature_bits

    def loss_bound(self, rows: int) -> int:
        """Return a bound of the summed loss after any party of the chain, in steps.

        c + b |y z| + a z^2 <= y^2 + y z + z^2 at the bounds, as a, b <= 1. The error of rounding is far below the half
        of z^2 that a <= 1/2 leaves.
        """
        z = self.data_parties * self.score_bound
        y = LABEL_TERM_BOUND << self.score_bits
        return rows * self.factor_bound * (z * z + y * z + y * y)

    def partial_loss_bound(self, rows: int, columns: int) -> int:
        """Return the bound that follows from the operations that make the loss: the key must hold it."""
        before = rows * self.factor_bound * self.data_parties * self.score_bound
        labels = rows * self.feature_steps * self.factor_bound * (LABEL_TERM_BOUND << self.label_bits)
        return (
            2 * self.loss_bound(rows) + (SCORE_TERM_BOUND << self.score_bits) * before + (columns << MAX_BITS) * labels
        )

    def check(self) -> None:
        """Check that every number fits in 62 bits before it is encrypted.

        Raises:
            RangeError: a number may not fit.
        """
        z, y = self.largest_score, LABEL_TERM_BOUND
        loss = math.ceil(self.loss.square * z * z + self.loss.cross * y * z + y * y) << 2 * self.score_bits
        own = max(self.residual_bound_after(1), self.score_bound, LABEL_TERM_BOUND << self.label_bits)
        if max(own * self.factor_bound, loss, self.feature_steps << 9) >= 1 << MAX_BITS:
            raise RangeError(f"a number of the grid needs more than {MAX_BITS} bits", hint="use fewer fraction bits")
        if self.weight_bits < 1 or self.feature_steps < 1 or self.factor_bound < 1:
            raise RangeError("the grid leaves no bit for a weight, a feature or a factor")
