"""WALRClassifier: scikit-learn's own checks, and what its options do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

import blindfit
from blindfit import BlindfitError, WALRClassifier

# These compare the predictions of two fits, and two fits draw different noise.
TWO_FITS = {"check_classifier_data_not_an_array", "check_supervised_y_2d", "check_fit_idempotent"}
CHECKS = [check for _, check in estimator_checks_generator(WALRClassifier()) if check.func.__name__ not in TWO_FITS]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.func.__name__)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_check(check):
    check(WALRClassifier())


@pytest.fixture(scope="module")
def data():
    return make_classification(20_000, 8, n_informative=5, flip_y=0.1, random_state=1)


def test_it_is_nearly_as_good_as_logistic_regression(data):
    x, y = data
    plain = LogisticRegression().fit(x, y).score(x, y)
    assert WALRClassifier(epsilon=1.0).fit(x, y).score(x, y) > plain - 0.02


def test_two_fits_draw_different_noise_whatever_the_seed(data):
    x, y = data
    one, two = (WALRClassifier(seed=1).fit(x, y).model_.weights for _ in range(2))
    assert not np.array_equal(one, two)


def test_less_epsilon_is_more_noise(data):
    x, y = data
    noise = [WALRClassifier(epsilon=e).fit(x, y).noise_std_ for e in (0.1, 1.0, 10.0)]
    assert noise[0] > noise[1] > noise[2]


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"delta": 1.0},
        {"mechanism": "classic", "epsilon": 1.0},
        {"mechanism": "magic"},
        {"norm_bound": -1.0},
        {"frac_bits": 60},
        {"solver": "magic"},
        {"l2": -1.0},
    ],
)
def test_options_are_refused_with_one_line(data, options):
    with pytest.raises(BlindfitError):
        WALRClassifier(**options).fit(*data)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "gradient-descent"])
@pytest.mark.parametrize("mu", ["as-released", "clip", "project"])
def test_every_solver_and_treatment_fits(data, solver, mu):
    x, y = data
    assert WALRClassifier(epsilon=2.0, solver=solver, mu=mu).fit(x, y).score(x, y) > 0.7


def test_the_public_face_has_what_it_says():
    for name in blindfit.__all__:
        assert getattr(blindfit, name) is not None
    with pytest.raises(AttributeError):
        _ = blindfit.nothing_of_the_kind
