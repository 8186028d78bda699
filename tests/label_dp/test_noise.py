"""A mechanism's noise profile agrees with its draws; debiasing takes the bias out of a regression."""

from __future__ import annotations

import random

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.estimators.label_noise import (
    MOST_POINTS,
    NoiseProfile,
    epsilon_of_row,
    event_of_unit,
    law_points,
)
from blindfit.algorithms.privacy.accountant import composed_epsilon
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier
from blindfit.algorithms.privacy.label_mechanisms import NAMES, LabelGrid, LabelMechanism, MechanismSettings, fit
from blindfit.algorithms.statistics.label_dp.fit import evaluate_released, fit_regression, mean_noise_variance
from tests.each_case import each_case

GRID = LabelGrid(0.0, 10.0, 2**12)
NEEDED = {"gaussian": {"delta": 1e-5}, "rp-banded": {"half_width": 2.0}}


def uniform(seed: int):
    return random.Random(seed).randrange


def mechanism_of(name: str, labels: np.ndarray, epsilon: float = 4.0) -> LabelMechanism:
    return fit(MechanismSettings(name, GRID, epsilon, **NEEDED.get(name, {})), labels, uniform(1)).mechanism


def data(n: int = 60_000) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(2)
    features = generator.normal(size=(n, 3))
    labels = np.clip(3 + features @ [1.0, -0.5, 0.0] + generator.normal(size=n), 0, 10)
    return features, labels


@pytest.mark.parametrize("name", NAMES)
def test_the_profile_is_what_draws_do(name):
    _, labels = data(2000)
    mechanism = mechanism_of(name, labels)
    profile = NoiseProfile.of(mechanism, debias=mechanism.can_debias)
    for place in (0, 5, 16):
        drawn = mechanism.randomise(np.full(40_000, profile.labels[place]), uniform(place))
        drawn = mechanism.debias(drawn) if mechanism.can_debias else drawn
        assert abs(drawn.mean() - profile.means[place]) <= 5 * drawn.std() / 200 + 1e-9
        spread = (drawn - drawn.mean()) ** 2
        assert abs(spread.mean() - profile.variances[place]) <= 5 * spread.std() / 200 + 1e-9


@pytest.mark.parametrize("name", ["rr-on-bins", "rp-banded"])
def test_what_cannot_be_debiased_is_refused(name):
    with pytest.raises(ConfigError, match="cannot be debiased"):
        NoiseProfile.of(mechanism_of(name, data(2000)[1]), debias=True)


def slope(labels: np.ndarray, features: np.ndarray, *, debiased: bool) -> float:
    fit = fit_regression(
        features, labels, columns=("a", "b", "c"), regressor="linear", options={}, seed=0, debiased=debiased
    )
    return fit.model.feature_weights["a"]


def test_debiasing_takes_the_bias_out_of_a_regression():
    """rp-with-prior pulls labels towards the middle of its interval by a known factor; so it does slopes."""
    features, labels = data()
    mechanism = mechanism_of("rp-with-prior", labels, epsilon=2.0)
    noisy = mechanism.randomise(labels, uniform(7))
    true, raw = slope(labels, features, debiased=True), slope(noisy, features, debiased=False)
    removed = slope(mechanism.debias(noisy), features, debiased=True)
    error = float(np.std(mechanism.debias(noisy) - labels)) / len(labels) ** 0.5
    assert raw < 0.6 * true
    assert abs(removed - true) < 4 * error < 0.25 * true


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("rr-on-bins", "rp-banded")])
def test_the_estimated_error_is_the_true_one(name):
    """Without a true label, for every mechanism that has no bias, or whose bias is removed."""
    _, labels = data()
    mechanism = mechanism_of(name, labels)
    released = mechanism.debias(mechanism.randomise(labels, uniform(8)))
    profile = NoiseProfile.of(mechanism, debias=True)
    predictions = labels + np.random.default_rng(9).normal(0, 0.7, len(labels))
    noise = mean_noise_variance(profile.means, profile.variances, released)
    found = evaluate_released(released, predictions, noise, constant=float(released.mean()))
    true = float(np.mean((predictions - labels) ** 2))
    assert abs(found["mse"] - true) < 4 * found["mse_error"] + 0.02  # the last: labels that the interval clips
    assert abs(found["gain"] - (np.var(labels) - true)) < 4 * found["gain_error"] + 0.02


@pytest.mark.parametrize("name", NAMES)
def test_a_drawn_law_is_one(name):
    drawn = law_points(mechanism_of(name, data(2000)[1]), 2.5)
    outputs, density = np.array(drawn["outputs"]), np.array(drawn["density"])
    total = density.sum() if drawn["discrete"] else (density * np.gradient(outputs)).sum()
    assert 0.9 < total < 1.001
    assert (density >= 0).all()
    assert len(outputs) <= MOST_POINTS
    assert drawn["discrete"] or name not in ("rr-on-bins", "unbiased")
    assert not (drawn["discrete"] and name in ("laplace", "gaussian", "staircase"))


@each_case("rows", [1, 2, 5, 49])
def test_rows_of_a_person_cost_what_the_job_asks_for_and_no_bit_more(rows):
    for epsilon in (0.1, 1.0, 1.5):
        together = rows * epsilon_of_row("laplace", epsilon, 0.0, rows)
        assert together == pytest.approx(epsilon)
        assert together <= epsilon
    row = epsilon_of_row("gaussian", 1.5, 1e-6, rows)
    unit = ReleaseEvent("gaussian", analytic_noise_multiplier(row, 1e-6) / rows**0.5, "x")
    assert 1.5 * (1 - 1e-6) < composed_epsilon([unit], 1e-6) <= 1.5


def test_the_event_of_the_preflight_is_that_of_the_server():
    assert event_of_unit("staircase", 0.7, 1e-5, "x") == ReleaseEvent.pure(0.7, "x")
    assert event_of_unit("gaussian", 0.7, 1e-5, "x").mechanism == "gaussian"
