"""Settings without an effect are refused, the two parts of epsilon add up, and strange labels are labels too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.privacy.label_mechanisms import (
    LabelGrid,
    MechanismSettings,
    Prior,
    fit,
    from_parameters,
    make_mechanism,
    uniform_prior,
)
from blindfit.algorithms.privacy.label_mechanisms.estimation import PRIOR_MECHANISMS, estimate_prior
from blindfit.algorithms.privacy.label_mechanisms.prior import MOST_PRIOR_CELLS
from blindfit.algorithms.privacy.label_mechanisms.rr_on_bins import MOST_NODES
from blindfit.algorithms.privacy.label_mechanisms.unbiased_program import _constraints
from tests.each_case import each_case
from tests.privacy.label_mechanisms import crime
from tests.privacy.label_mechanisms.examples import uniform

GRID = LabelGrid(0.0, 10.0, 500)
WITH_PRIOR = ("rr-on-bins", "unbiased", "rp-with-prior", "rp-banded")
NEEDED = {"gaussian": {"delta": 1e-4}, "rp-banded": {"half_width": 1.0}}


@each_case(
    ("name", "option"),
    [
        ("laplace", {"delta": 1e-5}),
        ("laplace", {"prior": uniform_prior(GRID)}),
        ("gaussian", {"delta": 1e-5, "epsilon_prior": 0.1}),
        ("staircase", {"half_width": 1.0}),
        ("rr-on-bins", {"optimal_for": "squared"}),
        ("rp-with-prior", {"rounding": 1.0}),
        ("rr-on-bins", {"output_cells": 10}),
        ("unbiased", {"prior": uniform_prior(GRID), "cell_width": 1.0}),
    ],
)
def test_an_option_that_does_nothing_is_refused(name, option):
    with pytest.raises(ConfigError, match=r"does not use|does nothing"):
        MechanismSettings(name, GRID, 1.0, **option)


@each_case(
    ("name", "option"),
    [
        ("none", {}),
        ("gaussian", {}),
        ("gaussian", {"delta": 1.0}),
        ("rp-banded", {}),
        ("rp-banded", {"half_width": "auto"}),
        ("rp-with-prior", {"half_width": "wide"}),
        ("rp-with-prior", {"half_width": 11.0}),
        ("rp-with-prior", {"epsilon_prior": 1.0}),
        ("rp-with-prior", {"prior_mechanism": "gaussian"}),
        ("rr-on-bins", {"cell_width": 1e-9}),
        ("rr-on-bins", {"rounding": -1.0}),
        ("unbiased", {"output_cells": 1}),
        ("unbiased", {"output_reach": 0.1}),
        ("unbiased", {"rounding": 0.02}),
        ("staircase", {"optimal_for": "most"}),
    ],
)
def test_settings_that_cannot_be_are_refused(name, option):
    with pytest.raises(ConfigError):
        fit(MechanismSettings(name, GRID, 1.0, **option), [1.0], uniform(1))


@pytest.mark.parametrize("how", PRIOR_MECHANISMS)
@pytest.mark.parametrize("name", WITH_PRIOR)
def test_epsilons_add_up(name, how):
    options = {"prior_mechanism": how, **NEEDED.get(name, {})}
    fitted = fit(MechanismSettings(name, GRID, 0.9, **options), np.linspace(0, 10, 300), uniform(2))
    assert fitted.epsilon_prior == pytest.approx(0.3)
    assert 0.9 - 1e-12 < fitted.epsilon <= 0.9
    assert fitted.mechanism.privacy_loss()[0] <= 0.6
    assert fitted.prior_mechanism == how
    assert (fitted.rows_outside is not None) == name.startswith("rp-")


@pytest.mark.parametrize("name", WITH_PRIOR)
def test_a_given_prior_costs_nothing(name):
    options = {"prior": uniform_prior(GRID), **NEEDED.get(name, {})}
    fitted = fit(MechanismSettings(name, GRID, 0.9, **options), [1.0, 2.0], uniform(2))
    assert (fitted.epsilon_prior, fitted.prior_mechanism, fitted.epsilon) == (0.0, None, 0.9)


def test_the_estimate_comes_near_the_labels_when_epsilon_is_large():
    steps = crime.GRID.steps(crime.LABELS)
    true = crime.prior().mass_below(np.linspace(0, 1, 21))
    for how in PRIOR_MECHANISMS:
        close = estimate_prior(how, crime.GRID, 30.0, steps, 0.05, uniform(4)).mass_below(np.linspace(0, 1, 21))
        far = estimate_prior(how, crime.GRID, 0.02, steps, 0.05, uniform(4)).mass_below(np.linspace(0, 1, 21))
        assert np.abs(close - true).max() < 0.05
        assert np.abs(far - true).max() > 2 * np.abs(close - true).max()


def test_the_estimate_hides_that_all_labels_are_one():
    grid = LabelGrid(0.0, 1.0, 1000)
    for how in ("laplace", "staircase"):
        noisy = estimate_prior(how, grid, 1.0, np.full(500, 500), None, uniform(9))
        assert noisy.masses[0] > 0.1  # most noisy labels were clipped to the ends
        assert noisy.masses[-1] > 0.1


@given(
    st.sampled_from(["laplace", "gaussian", "staircase", *WITH_PRIOR]),
    st.sampled_from([0.01, 0.5, 20.0]),
    st.sampled_from([[3.0], [3.0] * 40, [0.0, 10.0], [-1e300, 1e300], [1e-300] * 3]),
    st.integers(0, 2**32),
)
@settings(max_examples=30, deadline=None)
def test_strange_labels_are_released(name, epsilon, labels, seed):
    options = {"gaussian": {"delta": 1e-2}}.get(name, NEEDED.get(name, {}))
    fitted = fit(MechanismSettings(name, GRID, epsilon, **options), labels, uniform(seed))
    noisy = fitted.mechanism.randomise(labels, uniform(seed))
    assert noisy.shape == (len(labels),)
    assert np.isfinite(noisy).all()
    assert fitted.mechanism.privacy_loss()[0] <= epsilon
    assert from_parameters(fitted.mechanism.parameters()) == fitted.mechanism


@each_case(
    ("edges", "masses"),
    [([0, 1], []), ([0], []), ([0, 0], [1]), ([1, 0], [1]), ([0, 1], [0]), ([0, 1], [-1]), ([0, np.inf], [1])],
)
def test_priors_that_are_none_are_refused(edges, masses):
    with pytest.raises(DataError):
        Prior(np.array(edges, float), np.array(masses, float))


def test_a_prior_of_too_many_cells_is_refused():
    cells = MOST_PRIOR_CELLS + 1
    with pytest.raises(DataError, match=f"a prior has at most {MOST_PRIOR_CELLS} cells, not {cells}"):
        Prior(np.arange(cells + 1.0), np.ones(cells))


@each_case("width", [0.0, -1.0, np.nan, np.inf])
def test_cells_of_a_prior_that_have_no_width(width):
    with pytest.raises(ConfigError, match="the width of the prior's cells must be a finite number above 0"):
        MechanismSettings("rp-with-prior", GRID, 1.0, cell_width=width)


@each_case("name", WITH_PRIOR)
def test_a_mechanism_that_needs_a_prior_is_not_made_without(name):
    with pytest.raises(ConfigError, match=f"^{name} needs a prior$"):
        make_mechanism(MechanismSettings(name, GRID, 1.0, **NEEDED.get(name, {})), 1.0, None)


def test_a_rounding_that_leaves_too_many_labels():
    fine = LabelGrid(0.0, 10.0, 2 * MOST_NODES)
    with pytest.raises(ConfigError, match=f"rr-on-bins: {2 * MOST_NODES + 1} values are more than {MOST_NODES}"):
        MechanismSettings("rr-on-bins", fine, 1.0, prior=uniform_prior(fine), rounding=fine.step)


@each_case(
    ("name", "options", "expected"),
    [
        ("unbiased", {"rounding": 0.05}, "inputs and [0-9]+ outputs are more than the linear program can take"),
        ("unbiased", {"output_cells": 1000}, "inputs and [0-9]+ outputs are more than the linear program can take"),
        ("unbiased", {"output_reach": 0.01}, "outputs reach 0.01 past the range, too little"),
        ("rr-on-bins", {"rounding": 0.00001}, "a prior has up to .* cells"),
        ("unbiased", {"rounding": 0.5, "cell_width": 1e-9}, "a prior has up to .* cells"),
    ],
)
def test_what_no_prior_would_make_possible_are_no_settings(name, options, expected):
    """Otherwise a party would pay for an estimate of the prior, and get nothing."""
    with pytest.raises(ConfigError, match=expected):
        MechanismSettings(name, LabelGrid(0.0, 10.0), 1.0, **options)


@each_case(
    ("name", "short", "long"),
    [
        ("staircase", {}, {"optimal_for": "squared"}),
        ("rp-with-prior", {}, {"half_width": "auto"}),
        ("rp-with-prior", {}, {"prior_mechanism": "laplace", "epsilon_prior": 1 / 3}),
        ("rr-on-bins", {"rounding": 0.5}, {"rounding": 0.5, "prior_mechanism": "histogram", "cell_width": 0.5}),
    ],
)
def test_defaults_that_are_said_are_the_same_settings(name, short, long):
    one, other = (MechanismSettings(name, GRID, 1, **options) for options in (short, long))
    assert one.in_full == other.in_full != MechanismSettings(name, GRID, 1.5, **short).in_full
    assert one.in_full.in_full == one.in_full


@each_case("name", WITH_PRIOR)
def test_no_labels_are_no_bug(name):
    made = fit(MechanismSettings(name, GRID, 1.0, **NEEDED.get(name, {})), [])
    assert made.prior is not None


def test_a_linear_program_is_that_of_its_settings_whatever_was_solved_before():
    def made(epsilon, output_cells, rounding=2.5):
        of = {"prior": uniform_prior(GRID), "rounding": rounding, "output_cells": output_cells}
        settings = MechanismSettings("unbiased", GRID, epsilon, **of)
        return make_mechanism(settings, epsilon, settings.prior).parameters()

    asked = [(1.0, 8), (2.0, 8), (1.0, 9), (1.0, 8, 2.0)]
    alone = []
    for one in asked:
        _constraints.cache_clear()
        alone.append(made(*one))
    assert [made(*one) for one in [*asked, *reversed(asked)]] == [*alone, *reversed(alone)]
    assert len({str(parameters) for parameters in alone}) == len(asked)


def test_counts_that_the_noise_has_drowned_say_nothing():
    """Without labels every count is noise; if no count is above 0, the estimate is the uninformed one."""
    none = np.zeros(0, np.int64)
    found = [estimate_prior("histogram", GRID, 1.0, none, GRID.width / 2, uniform(seed)) for seed in range(20)]
    flat = [prior for prior in found if len(prior.masses) == 1]
    assert 0 < len(flat) < len(found)
    assert all(prior.edges.tolist() == [GRID.lo, GRID.hi] for prior in flat)


@each_case("share", [0.0, 0.005, 0.3, 0.995, 1.0])
def test_quantiles_are_inverse_to_masses(share):
    prior = crime.prior()
    assert prior.mass_below(prior.quantile(share)) == pytest.approx(share, abs=1e-12)
