"""A released sum is paid for, so it gives a model for any noise."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from blindfit.algorithms.statistics.linear.logistic import Floats, QuantisedRows
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.walr import fit as walr_fit
from blindfit.algorithms.statistics.walr.fit import (
    FEW_CELLS,
    MuTreatment,
    Treatment,
    WalrFit,
    fit_released,
    treatment_of,
)
from tests.each_case import each_case

FRAC_BITS = 16


def fitted(rows: QuantisedRows, mu: Floats, noise_std: float, treatment: MuTreatment) -> WalrFit:
    settings = SolverSettings(l2=0.0, unpenalised=-1)
    return fit_released(
        rows, mu, noise_std=noise_std, norm_bound=1.0, epsilon=1.0, settings=settings, treatment=treatment
    )


def rows_of(columns: Floats) -> QuantisedRows:
    return QuantisedRows(np.round(columns * 2**FRAC_BITS).astype(np.int32), FRAC_BITS)


@pytest.mark.parametrize("treatment", ["clip", "project", "auto"])
@pytest.mark.parametrize("noise_std", [1e-9, 0.01, 0.3, 30.0])
def test_any_noise_leaves_a_model(treatment: MuTreatment, noise_std: float) -> None:
    draw = np.random.default_rng(7)
    columns = np.column_stack([draw.normal(size=(60, 2)), np.ones(60)]) / 4
    for labels in (np.zeros(60), np.ones(60), draw.random(60) < 0.3):
        for _ in range(5):
            mu = columns.T @ labels / 60 + noise_std * draw.normal(size=3)
            assert np.isfinite(fitted(rows_of(columns), mu, noise_std, treatment).result.weights).all()


def test_auto_projects_few_rows_and_clips_many(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    rows = rows_of(np.column_stack([draw.normal(size=(80, 3)), np.ones(80)]) / 4)
    mu = 0.3 * draw.normal(size=4)
    by_name = {name: fitted(rows, mu, 0.3, name).result.weights for name in get_args(Treatment)}
    assert not np.array_equal(by_name["project"], by_name["clip"])
    for few, treatment in ((80 * 4, "project"), (80 * 4 - 1, "clip")):
        monkeypatch.setattr(walr_fit, "FEW_CELLS", few)
        found = fitted(rows, mu, 0.3, "auto")
        assert found.treatment == treatment
        np.testing.assert_array_equal(found.result.weights, by_name[treatment])


@each_case("treatment", get_args(Treatment))
def test_who_names_a_treatment_has_it(treatment: Treatment) -> None:
    assert treatment_of(treatment, 1) == treatment_of(treatment, 2 * FEW_CELLS) == treatment
