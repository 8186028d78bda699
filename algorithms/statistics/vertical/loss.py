"""The Taylor loss: a quadratic in the score, so that its gradient is linear in the encrypted numbers.

    loss_i = c_i - b y_i z_i + a z_i^2          gradient of loss_i in z_i: 2 a z_i - b y_i   (the residual)

    logistic  y in {-1, 1}: log(1 + e^-yz) = log 2 - yz/2 + z^2/8 + O(z^4)     c = log 2, b = 1/2, a = 1/8
    linear    (z - y)^2 / 2, exactly                                          c = y^2/2, b = 1,   a = 1/2

Source: Hardy et al. 2017 (arXiv 1711.10677), equations 4 to 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import DataError

Floats = npt.NDArray[np.float64]
Model = Literal["logistic", "linear"]


@dataclass(frozen=True, slots=True)
class TaylorLoss:
    """a and b of the table above."""

    model: Model
    square: float
    cross: float

    def constants(self, y: Floats) -> Floats:
        """Return c_i of each row."""
        return np.full(len(y), math.log(2)) if self.model == "logistic" else y * y / 2

    def value(self, scores: Floats, y: Floats, row_weights: Floats | None = None) -> float:
        """Return the mean over the rows of weight x loss; (n,) each."""
        losses = self.constants(y) - self.cross * y * scores + self.square * scores**2
        return float(np.mean(losses if row_weights is None else row_weights * losses))


LOSSES: dict[str, TaylorLoss] = {
    "logistic": TaylorLoss("logistic", 1 / 8, 1 / 2),
    "linear": TaylorLoss("linear", 1 / 2, 1.0),
}


def refuse_one_class(labels: Floats) -> None:
    """Raise DataError if all labels are the same, so there is nothing to learn."""
    if len(np.unique(labels)) < 2:
        raise DataError("every label is the same: there is nothing to learn")


# --- leaks of a gradient ---------------------------------------------------------------------


def leverages(columns: Floats) -> Floats:
    """Return x_i^T (X^T X)^+ x_i of every row of one batch: how nearly its columns single out the row; (rows,)."""
    q, r = np.linalg.qr(columns)
    rank = np.abs(np.diag(r)) > 1e-10 * max(1.0, float(np.abs(r).max(initial=0.0)))
    if not rank.all():  # dependent columns: an orthonormal base of their span
        u, s, _ = np.linalg.svd(columns, full_matrices=False)
        q = u[:, s > 1e-10 * max(1.0, float(s.max(initial=0.0)))]
    return np.asarray(np.einsum("ij,ij->i", q, q))


def label_bits(n_columns: int, jitter: float, cross: float = 0.5) -> float:
    """Return a bound on the bits about labels that one kept batch reveals, under jitter of standard deviation nu.

    The columns project -b y + n on n_columns dimensions: a Gaussian channel of power b^2 and noise nu^2 in each. Its
    log2(1 + b^2 / nu^2) is written so that the smallest nu has one.

    Args:
        jitter: nu, in the units of b y.
        cross: b of the loss, for y of variance 1 at most.
    """
    if jitter <= 0:
        return math.inf
    return n_columns * (math.log2(math.hypot(cross, jitter)) - math.log2(jitter))
