"""WALRClassifier: scikit-learn's own checks, and what its options do.

The noise has no seed. A bound without a law next to it held in all of 25 to 100
draws under noise of three times the standard deviation. If at most a tenth of such draws lie beyond a point of a
Gaussian tail, the actual noise passes it with the ninth power of that chance: once in 1e9 runs.
"""

from __future__ import annotations

from dataclasses import replace
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

import blindfit
from blindfit import BlindfitError, PrivacyBudget, WALRClassifier, pretrain
from tests.each_case import each_case

# By scikit-learn itself: of what is drawn, and without SCIPY_ARRAY_API.
SKIPPED = {"check_pipeline_consistency", "check_array_api_input"}


@each_case(
    "check", [check for _, check in estimator_checks_generator(WALRClassifier())], ids=lambda check: check.func.__name__
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_check(check):
    try:
        check(WALRClassifier())
    except SkipTest:
        assert check.func.__name__ in SKIPPED


@pytest.fixture(scope="module")
def data():
    return make_classification(20_000, 8, n_informative=5, flip_y=0.1, random_state=1)


def test_it_is_nearly_as_good_as_logistic_regression(data):
    x, y = data
    plain = LogisticRegression().fit(x, y).score(x, y)
    assert WALRClassifier(epsilon=1.0).fit(x, y).score(x, y) > plain - 0.02


def test_another_release_draws_other_noise_whatever_the_seed_and_the_same_gives_it_again(data):
    one, two, again = (WALRClassifier(seed=1, release=name).fit(*data).model_.weights for name in (1, 2, 1))
    # Noise of 11% of a weight, or more: one of nine comes so near again once in 5e7 runs.
    assert not np.isclose(one, two, rtol=1e-9, atol=0).any()
    assert one.tobytes() == again.tobytes()


def test_other_labels_or_another_epsilon_are_another_release(data):
    x, y = data
    other = y.copy()
    other[0] = 1 - other[0]
    first = WALRClassifier().fit(x, y).model_.weights
    for another in (WALRClassifier().fit(x, other), WALRClassifier(epsilon=1.01).fit(x, y)):
        # Under the same noise most weights would be near; under another two are once in 1e9 runs.
        assert np.isclose(first, another.model_.weights, rtol=1e-6, atol=0).sum() < 2


def test_less_epsilon_is_more_noise(data):
    x, y = data
    noise = [WALRClassifier(epsilon=e).fit(x, y).noise_std_ for e in (0.1, 1.0, 10.0)]
    assert noise[0] > noise[1] > noise[2]


@each_case(
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
    x, y = data[0][:2000], data[1][:2000]  # gradient descent takes thousands of steps over them
    assert WALRClassifier(epsilon=10.0, solver=solver, mu=mu).fit(x, y).score(x, y) > 0.7


def test_the_public_face_has_what_it_says():
    for name in blindfit.__all__:
        assert getattr(blindfit, name) is not None
    with pytest.raises(AttributeError):
        _ = blindfit.nothing_of_the_kind


# --- a public model to shrink towards


@pytest.fixture(scope="module")
def pretrained(data):
    """A model of rows that stand for public ones, at another scale."""
    x, y = data
    return pretrain(x[:500], y[:500])


def test_much_l2_leaves_the_public_weights(data, pretrained):
    model = WALRClassifier(epsilon=0.01, l2=1e7, init=pretrained).fit(*data).model_
    np.testing.assert_allclose(model.weights[:-1], pretrained.weights_for(model.standardiser)[:-1], atol=1e-4)


def test_without_an_intercept_too(data, pretrained):
    model = WALRClassifier(epsilon=0.01, l2=1e7, init=pretrained, intercept=False).fit(*data).model_
    np.testing.assert_allclose(model.weights, pretrained.weights_for(model.standardiser)[:-1], atol=1e-4)


def test_a_public_model_helps_where_noise_is_large(data, pretrained):
    x, y = data[0][500:2500], data[1][500:2500]
    some = data[0][::10], data[1][::10]
    without, with_it = (
        np.mean([WALRClassifier(epsilon=0.05, init=init, release=i).fit(x, y).score(*some) for i in range(24)])
        for init in (None, pretrained)
    )
    # 0.58 and 0.71, each +- 0.065 a draw: 5.8 standard errors of the difference of two means of 24, 4e-9.
    assert with_it > without + 0.02


def test_a_classifier_of_scikit_learns_will_do(data):
    x, y = data
    theirs = LogisticRegression().fit(x[:500], y[:500])
    model = WALRClassifier(epsilon=0.01, l2=1e7, init=theirs).fit(x, y).model_
    np.testing.assert_allclose(model.weights[:-1] / model.standardiser.std, theirs.coef_[0], atol=1e-3)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"l2": 0.0}, "does nothing with l2 = 0"),
        ({"init": "pretrained.json"}, "init must be a Pretrained"),
        ({"init": 1}, "init must be a Pretrained"),
    ],
)
def test_an_init_in_vain_is_refused_before_its_charge(data, pretrained, options, expected):
    with PrivacyBudget(10.0) as budget:
        with pytest.raises(BlindfitError, match=expected):
            WALRClassifier(**{"init": pretrained} | options).fit(*data)
        assert budget.releases == 0


def test_an_init_for_other_features_is_refused_before_its_charge(data, pretrained):
    huge = replace(pretrained, weights=(1e308,) * 8)
    with PrivacyBudget(10.0) as budget:
        with pytest.raises(BlindfitError, match="init was made for 8 features; these rows have 7"):
            WALRClassifier(init=pretrained).fit(data[0][:, 1:], data[1])
        with pytest.raises(BlindfitError, match="weights overflow in the scale of these rows"):
            WALRClassifier(init=huge).fit(data[0] * 1e9, data[1])
        assert budget.releases == 0
