"""A released sum is paid for: whatever the noise made of it, it gives a model."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.statistics.logistic import QuantisedRows
from blindfit.algorithms.statistics.solvers import SolverSettings
from blindfit.algorithms.statistics.walr_fit import MuTreatment, fit_released

FRAC_BITS = 16


@pytest.mark.parametrize("treatment", ["clip", "project"])
@pytest.mark.parametrize("noise_std", [1e-9, 0.01, 0.3, 30.0])
def test_any_noise_leaves_a_model(treatment: MuTreatment, noise_std: float) -> None:
    draw = np.random.default_rng(7)
    columns = np.column_stack([draw.normal(size=(60, 2)), np.ones(60)]) / 4
    rows = QuantisedRows(np.round(columns * 2**FRAC_BITS).astype(np.int32), FRAC_BITS)
    for labels in (np.zeros(60), np.ones(60), draw.random(60) < 0.3):
        for _ in range(5):
            mu = columns.T @ labels / 60 + noise_std * draw.normal(size=3)
            found = fit_released(
                rows,
                mu,
                noise_std=noise_std,
                norm_bound=1.0,
                epsilon=1.0,
                settings=SolverSettings(l2=0.0, unpenalised=-1),
                treatment=treatment,
            )
            assert np.isfinite(found.result.weights).all()
