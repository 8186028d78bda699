"""The effect of noise on a training on secret shares: how large the noise is, and the loss in a trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.protocols.falcon import FalconParameters, Noise
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.coordinator.preflight.findings import Finding, Level
from blindfit.parties.falcon.data_party import make_held
from blindfit.parties.vertical.prepared import Prepared

WEAK_NOISE = 0.5  # standard deviation in a weight, for columns between -1 and 1
TRIALS = 3
SEED = 0  # only a forecast: it is not released

Floats = npt.NDArray[np.float64]


def findings(p: FalconParameters, noise: Noise, prepared: Mapping[str, Prepared]) -> Iterator[Finding]:
    of_gradient, of_weight = noise.mean_gradient_std(p.step(0, 0)), p.noise_in_weights(noise)
    text = (
        f"noise of {len(noise.row_bounds)} parties together: standard deviation {of_gradient:.2g} on each coordinate "
        f"of a batch's mean gradient; all noise together moves a weight by at most {of_weight:.2g}"
    )
    level: Level = "warning" if of_weight > WEAK_NOISE else "ok"
    advice = ": expect a weak model; use more rows or a larger privacy.epsilon" if level == "warning" else ""
    yield Finding(level, "noise", text + advice)
    yield _losses(p, noise, prepared)


def _losses(p: FalconParameters, noise: Noise, prepared: Mapping[str, Prepared]) -> Finding:
    held = [make_held(prepared[name], p, bound) for name, bound in zip(p.data_parties, noise.row_bounds, strict=True)]
    x: Floats = np.hstack([own.features for own in held]).astype(np.float64) * 2.0**-FEATURE_BITS
    y: Floats = np.zeros(len(x)) if held[0].labels is None else held[0].labels.astype(np.float64)
    draw = np.random.default_rng(SEED)
    with_noise = [_loss(x, y, _descent(p, noise, x, y, draw)) for _ in range(TRIALS)]
    without = _loss(x, y, _descent(p, None, x, y, draw))
    share = float(np.clip(y.mean(), 1e-9, 1 - 1e-9))
    constant = -share * np.log(share) - (1 - share) * np.log(1 - share)
    return Finding(
        "warning" if np.mean(with_noise) > constant else "note",
        "expected loss",
        f"loss of the training rows in {TRIALS} trials with this noise: {min(with_noise):.3f} to "
        f"{max(with_noise):.3f}; "
        f"without noise {without:.3f}, with only a constant {constant:.3f}",
    )


def _descent(p: FalconParameters, noise: Noise | None, x: Floats, y: Floats, draw: np.random.Generator) -> Floats:
    """Return the weights after the same steps on plain numbers."""
    w = velocity = np.zeros(x.shape[1])
    pulled = p.penalised.astype(np.float64)
    for epoch in range(p.epochs):
        for number, rows in enumerate(p.batches):
            step = p.step(epoch, number)
            gradient = x[rows].T @ (_sigmoid(x[rows] @ w) - y[rows]) / step.rows
            if noise is not None:
                gradient += noise.mean_gradient_std(step) * draw.standard_normal(len(w))
            velocity = step.momentum * velocity - step.rate * (gradient + step.l2 * pulled * w)
            w = w + velocity
    return w


def _sigmoid(z: Floats) -> Floats:
    return np.asarray((1 + np.tanh(z / 2)) / 2)


def _loss(x: Floats, y: Floats, w: Floats) -> float:
    z = x @ w
    return float(np.mean(np.logaddexp(0.0, z) - y * z))
