"""The plain training that a training in shares must equal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import log_loss

from blindfit.algorithms.protocols.falcon import Trained
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from tests.falcon.local import Case

Floats = NDArray[np.float64]


MOMENTUM = OptimiserSettings(learning_rate=0.3, l2=0.02, optimiser="momentum", momentum=0.5, schedule="constant")


def weights_of(case: Case, trained: dict[str, Trained]) -> Floats:
    return np.concatenate([trained[name].weights for name in case.parameters.data_parties])


def bound(case: Case, epochs: int) -> float:
    """Bound the error, as tests/sharing/test_descent.py does.

    Each step adds a residual's error times rows and the rounding of its divisions. A step with a rate below 2 /
    curvature makes no error larger.
    """
    p, x = case.parameters, case.whole
    step, lengths = p.step(0, 0), np.linalg.norm(x, axis=1)
    assert p.optimiser.learning_rate * (np.linalg.eigvalsh(x.T @ x / len(x)).max() / 4 + p.optimiser.l2) < 2
    factors = step.factor * p.waves.sigmoid
    residual = step.factor * p.waves.sigmoid_error + p.scales.waves.error(p.waves, factors)
    residual += 2.0**-p.scales.residual_bits
    k = math.sqrt(x.shape[1])
    each = max(p.batch_rows) * residual * lengths.max() + 3 * k * 2.0**-24 + k * 2.0**-p.scales.decay_bits * 10
    return epochs * len(p.batches) * each / (1 - p.optimiser.momentum_of)


def plain_epochs(case: Case) -> int:
    """Return the epoch at which the rule stops on plain numbers."""
    p, best, since = case.parameters, math.inf, 0
    for epoch in range(1, p.epochs + 1):
        z = (case.whole @ case.plain(epoch))[p.validation]
        loss = log_loss(case.labels[p.validation], 1 / (1 + np.exp(-z)))
        best, since = (loss, 0) if loss < best - p.tolerance else (best, since + 1)
        if since >= p.patience:
            return epoch
    return p.epochs


def uniform_p_value(elements: Any) -> float:
    """Test the highest 6 bits by chi-square: a value that is small, or in the field's middle, stands out there."""
    counts = np.bincount((elements >> np.uint64(55)).astype(np.int64), minlength=64)
    return float(stats.chisquare(counts).pvalue)
