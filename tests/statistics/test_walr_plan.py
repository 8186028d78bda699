"""A planner's simulation compared with releases that are made and fitted by the same law."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows, sigmoid, softplus, weighted_aggregate
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.walr import forecast as walr_plan
from blindfit.algorithms.statistics.walr.fit import fit_released
from blindfit.algorithms.statistics.walr.forecast import (
    Assumed,
    Case,
    Fitting,
    Forecast,
    forecast,
    min_epsilon,
    without_noise,
)
from tests.each_case import each_case

FRAC_BITS = 16
BOUND = 3.0
FITTING = Fitting(BOUND, SolverSettings(l2=0.0))


def rows_of(n: int, columns: int = 4) -> QuantisedRows:
    drawn = np.random.default_rng(2).normal(size=(n, columns))
    drawn[:, -1] = 1.0
    return QuantisedRows(np.round(drawn * 2**FRAC_BITS).astype(np.int32), FRAC_BITS)


def draw() -> np.random.Generator:
    return np.random.default_rng(5)


def test_weights_that_are_known_give_what_happens_with_their_labels() -> None:
    """The same, drawn and fitted here: means of 60 draws of either, of losses whose deviation is 0.02 at most."""
    rows, theta = rows_of(3000), np.array([0.8, -0.5, 0.0, 0.0])
    case, columns, generator = Case(1.0, 0.03, FITTING), rows_of(3000).take(slice(None)), draw()
    (found,) = forecast(rows, Assumed(0.2, theta=theta), [case], draws=60, generator=generator)
    z = columns @ theta
    shift = np.linspace(-4, 4, 8001)
    rates = [sigmoid(z + one).mean() for one in shift[::80]]
    constant = float(np.interp(0.2, rates, shift[::80]))
    p, losses = sigmoid(z + constant), []
    for _ in range(60):
        mu = columns.T @ (generator.random(3000) < p) / 3000 + 0.03 * generator.normal(size=4)
        fit = fit_released(
            rows, mu, noise_std=0.03, norm_bound=BOUND, epsilon=1.0, settings=FITTING.settings, treatment="clip"
        )
        scores = columns @ fit.result.weights
        losses.append(float((softplus(scores) - p * scores).mean()) / walr_plan.entropy(0.2))
    assert np.std(losses) < 0.05
    assert abs(found.mean - np.mean(losses)) < 6 * 0.05 / 60**0.5 * 2**0.5


def test_a_sample_forecasts_what_all_rows_do(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, cases = rows_of(6000), [without_noise(FITTING, 6000), Case(1.0, 0.02, FITTING)]
    whole = forecast(rows, Assumed(0.3, 1.0), cases, draws=40, generator=draw())
    monkeypatch.setattr(walr_plan, "MOST_FITTED_ROWS", 1500)
    sampled = forecast(rows, Assumed(0.3, 1.0), cases, draws=40, generator=draw())
    excess = [noisy.mean - exact.mean for exact, noisy in (whole, sampled)]
    assert excess[0] > 0
    assert 0.5 < excess[1] / excess[0] < 2
    assert abs(whole[0].mean - sampled[0].mean) < 0.02


def test_more_noise_loses_more_and_none_is_best() -> None:
    rows = rows_of(2000)
    cases = [without_noise(FITTING, 2000), *(Case(epsilon, 0.02 / epsilon, FITTING) for epsilon in (4.0, 1.0, 0.2))]
    losses = [one.mean for one in forecast(rows, Assumed(0.4, 1.5), cases, draws=10, generator=draw())]
    assert losses == sorted(losses)
    assert 0.5 < losses[0] < 0.95


@each_case("base_rate", [0.01, 0.5, 0.93])
def test_labels_have_the_assumed_rate_and_strength(base_rate: float) -> None:
    rows = rows_of(5000)
    p = walr_plan._probabilities(rows, Assumed(base_rate, 2.0), intercept=True, generator=draw())
    assert p.mean() == pytest.approx(base_rate, rel=1e-9)
    assert np.log(p / (1 - p)).std() == pytest.approx(2.0, rel=1e-6)


def test_the_same_noise_and_labels_in_every_case() -> None:
    rows, case = rows_of(500), Case(1.0, 0.1, FITTING)
    first, second = forecast(rows, Assumed(0.3, 1.0), [case, case], draws=3, generator=draw())
    assert first.losses.tolist() == second.losses.tolist()
    assert len(set(first.losses)) == 3


def test_a_fit_that_runs_away_is_a_loss_without_end() -> None:
    as_released = Fitting(BOUND, SolverSettings(l2=0.0), l2=0.0, treatment="as-released")
    (found,) = forecast(rows_of(50), Assumed(0.1, 1.0), [Case(0.01, 50.0, as_released)], draws=3, generator=draw())
    assert np.isinf(found.losses).any() or found.mean > 100


def test_the_anchor_counts_where_there_is_l2() -> None:
    theta = np.array([1.0, -1.0, 0.5, 0.0])
    anchored = Fitting(BOUND, SolverSettings(l2=0.0), init=theta)
    cases = [Case(0.1, 0.3, FITTING), Case(0.1, 0.3, anchored), without_noise(anchored, 1000), Case(1.0, 0.0, anchored)]
    plain, helped, *_ = forecast(rows_of(1000), Assumed(0.3, theta=theta), cases, draws=5, generator=draw())
    assert helped.mean < plain.mean


def of_losses(**losses: float) -> list[Forecast]:
    return [Forecast(Case(float(name[1:]), 0.0, FITTING), np.array([loss, loss])) for name, loss in losses.items()]


def test_the_least_epsilon_lies_between_two_forecasts() -> None:
    found = of_losses(e1=0.9, e4=0.8, e8=0.79)
    assert min_epsilon(found, 0.85) == pytest.approx(2.0)
    assert min_epsilon(found, 0.95) == 1.0
    assert min_epsilon(found, 0.8) == pytest.approx(4.0)
    assert min_epsilon(found, 0.7) is None


@each_case(
    ("values", "said"),
    [
        ({"base_rate": 0.0, "strength": 1.0}, "base rate must lie between 0 and 1, not 0"),
        ({"base_rate": float("nan"), "strength": 1.0}, "base rate must lie between 0 and 1, not nan"),
        ({"base_rate": 0.5, "strength": 11.0}, "at most 10, not 11"),
        ({"base_rate": 0.5}, "neither weights nor the strength"),
    ],
)
def test_what_cannot_be_assumed(values: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Assumed(**values)


def test_the_mean_of_the_sample_has_the_error_of_all_labels() -> None:
    """If only the labels of the sample were drawn, their error would be that of few labels."""
    rows = rows_of(40_000)
    worlds = [walr_plan._World.draw(rows, Assumed(0.5, 1.0), True, np.random.default_rng(seed)) for seed in range(20)]
    errors = [world.mu[-1] - weighted_aggregate(world.fitted, world.probabilities)[-1] for world in worlds]
    assert 0.3 < np.std(errors) / (0.44 / 40_000**0.5) < 2
