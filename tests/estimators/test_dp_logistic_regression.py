"""DPLogisticRegression: scikit-learn's own checks, what its options do, and an audit of whole fits.

The noise has no seed. A bound without a law next to it held in all of 25 to 100
draws under noise of three times the standard deviation. If at most a tenth of such draws lie beyond a point of a
Gaussian tail, the actual noise passes it with the ninth power of that chance: once in 1e9 runs.
"""

from __future__ import annotations

import math
import pickle
from itertools import count
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

from blindfit import BlindfitError, ConfigError, DataError, DPLogisticRegression, Pretrained, pretrain
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier, gaussian_epsilon
from blindfit.algorithms.statistics.dp_lr import descent
from blindfit.algorithms.statistics.dp_lr.descent import CLIP_STEPS, LOSS_BOUND
from blindfit.algorithms.statistics.linear.logistic import sigmoid
from tests.each_case import each_case
from tests.privacy.noise_checks import empirical_epsilon

DRAWS = count()  # names of releases, so that each is drawn


# By scikit-learn itself: of what is drawn, and without SCIPY_ARRAY_API.
SKIPPED = {"check_pipeline_consistency", "check_array_api_input"}


@each_case(
    "check",
    [check for _, check in estimator_checks_generator(DPLogisticRegression())],
    ids=lambda check: check.func.__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_check(check):
    try:
        check(DPLogisticRegression())
    except SkipTest:
        assert check.func.__name__ in SKIPPED


@pytest.fixture(scope="module")
def source():
    return make_classification(
        5300, 6, n_informative=4, n_redundant=0, n_clusters_per_class=1, flip_y=0.1, class_sep=1.2, random_state=1
    )


@pytest.fixture(scope="module")
def data(source):
    return source[0][:5000], source[1][:5000]


@pytest.fixture(scope="module")
def public(source):
    return source[0][5000:], source[1][5000:]


def test_the_tags_are_honest():
    tags = DPLogisticRegression().__sklearn_tags__()
    assert tags.non_deterministic
    assert tags.classifier_tags.poor_score
    assert not tags.classifier_tags.multi_class


def test_it_is_nearly_as_good_as_logistic_regression(data):
    plain = LogisticRegression().fit(*data).score(*data)
    assert DPLogisticRegression(epsilon=1.0).fit(*data).score(*data) > plain - 0.02


def test_another_release_draws_other_noise_and_the_same_gives_the_same_model(data):
    one, two, again = (DPLogisticRegression(release=name).fit(*data) for name in ("a", "b", "a"))
    # Noise of 6% of a weight, or more: a weight comes so near again once in 1e8 runs, one of six once in 2e7.
    assert not np.isclose(one.coef_, two.coef_, rtol=1e-9, atol=0).any()
    assert one.coef_.tobytes() == again.coef_.tobytes()
    assert one.intercept_ == again.intercept_


OTHERS = [
    {"epsilon": 1.1},
    {"delta": 2e-5},
    {"clip_norm": 1.5},
    {"n_iterations": 51},
    {"neighbours": "add-or-remove"},
    {"loss_share": 0.1},
    {"batch_fraction": 0.9},
    {"learning_rate": 0.5},
    {"feature_bounds": (-9, 9)},
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: min(other))
def test_other_options_are_another_release(data, other):
    """Otherwise the difference of two models would show what the same noise hides."""
    first, second = DPLogisticRegression().fit(*data), DPLogisticRegression(**other).fit(*data)
    assert not np.isclose(first.coef_, second.coef_, rtol=1e-9, atol=0).any()


def test_one_other_row_is_another_release(data):
    X, y = data[0].copy(), data[1]
    X[0, 0] += 1e-6
    first, second = DPLogisticRegression().fit(*data), DPLogisticRegression().fit(X, y)
    # Under the same noise all weights are that near; under another one is, once in 1e5 runs, and two once in 1e10.
    assert np.isclose(first.coef_, second.coef_, rtol=1e-6, atol=0).sum() < 2


def test_the_noise_has_no_seed():
    assert not {"random_state", "seed"} & set(DPLogisticRegression().get_params())


def test_less_epsilon_is_more_noise_and_smaller_steps(data):
    fits = [DPLogisticRegression(epsilon=e).fit(*data) for e in (0.01, 0.1, 1.0)]
    assert fits[0].noise_multiplier_ > fits[1].noise_multiplier_ > fits[2].noise_multiplier_
    assert fits[0].learning_rate_ < fits[1].learning_rate_ < fits[2].learning_rate_


# --- what is promised ----------------------------------------------------------------------------------------


def test_the_noise_is_the_formulas(data):
    model = DPLogisticRegression(epsilon=0.7, n_iterations=30).fit(*data)
    assert model.noise_multiplier_ == pytest.approx(math.sqrt(30) * analytic_noise_multiplier(0.7, 1e-5))
    assert model.epsilon_spent_ == 0.7
    assert model.n_iter_ == 30


def test_a_budget_for_each_iteration_reports_what_all_spent(data):
    model = DPLogisticRegression(epsilon=0.1, n_iterations=30, budget="iteration").fit(*data)
    assert model.noise_multiplier_ == pytest.approx(analytic_noise_multiplier(0.1, 1e-5))
    assert model.epsilon_spent_ == pytest.approx(gaussian_epsilon(model.noise_multiplier_ / math.sqrt(30), 1e-5))
    assert f"({model.epsilon_spent_:.6g}, 1e-05)-differential privacy" in model.privacy_statement_
    assert "each (0.1, 1e-05)-DP" in model.privacy_statement_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "is replaced by another; their number is public"),
        ({"neighbours": "add-or-remove"}, "is added or removed; the number by which sums are divided is public"),
        ({"batch_fraction": 0.5}, "of a Poisson sample of 0.5 of the rows"),
        ({"loss_share": 0.1}, "loss: released, paid from the same budget"),
        ({}, "loss: not released"),
    ],
)
def test_the_statement_says_what_was_done(data, options, words):
    model = DPLogisticRegression(n_iterations=20, **options).fit(*data)
    assert words in model.privacy_statement_
    assert model.privacy_statement_.startswith("(1, 1e-05)-differential privacy")


def noise_of_sums(monkeypatch, data, **options):
    """Return the standard deviation of the noise on the sums, in clip norms, and the noise multiplier."""
    added = []
    descend = descent.descend

    def recording(*arguments, release_gradient, **rest):
        def record(sums):
            released = release_gradient(sums)
            added.extend(r - s for r, s in zip(released, sums, strict=True))
            return released

        return descend(*arguments, release_gradient=record, **rest)

    monkeypatch.setattr(descent, "descend", recording)
    model = DPLogisticRegression(n_iterations=400, **options).fit(*data)
    return np.std(added) / CLIP_STEPS, model.noise_multiplier_


@pytest.mark.parametrize(("neighbours", "sensitivity"), [("replace-one", 2), ("add-or-remove", 1)])
@pytest.mark.parametrize("batch_fraction", [1.0, 0.3])
def test_the_noise_is_over_the_sensitivity(monkeypatch, data, neighbours, sensitivity, batch_fraction):
    std, multiplier = noise_of_sums(monkeypatch, data, neighbours=neighbours, batch_fraction=batch_fraction)
    assert std == pytest.approx(sensitivity * multiplier, rel=0.08)  # 2800 draws: 6 standard errors, 2e-9


def fits_of_neighbours(fits, **options):
    """Return the weight of a column that only one row has, over fits of two data sets that differ in
    that row's label.
    """
    columns, labels = np.zeros((8, 1)), np.arange(8) % 2
    columns[0] = 50.0
    samples = []
    for label in (0, 1):
        labels[0] = label
        options = {"n_iterations": 2, "learning_rate": 1.0} | options
        samples.append(
            np.array(
                [
                    DPLogisticRegression(1.0, **options, release=next(DRAWS)).fit(columns, labels).coef_[0, 0]
                    for _ in range(fits)
                ]
            )
        )
    return samples


def largest_gap(samples):
    events = np.quantile(np.concatenate(samples), [0.5, 0.8, 0.95])
    counts = [[int((part > event).sum()) for part in samples] for event in events]
    return max(empirical_epsilon(max(pair), min(pair), len(samples[0]), 1e-5) for pair in counts)


# Both audits: each event's two bounds are false alarms once in a million. The truth is so much further off that both
# would have to be wrong together, by many standard errors.


def test_an_audit_of_whole_fits_finds_no_more_than_epsilon():
    assert largest_gap(fits_of_neighbours(500)) < 1.0


def test_the_audit_finds_a_missing_clip(monkeypatch):
    def unclipped(columns, labels, weights, clip_norm):
        residuals = sigmoid(columns @ weights) - labels
        return (columns * residuals[:, None] * (CLIP_STEPS / clip_norm)).astype(np.int64)

    monkeypatch.setattr(descent, "clip_gradients", unclipped)
    # An event has 96% of one side's fits and 4% of the other's; 88% and 12% would still show 1.14: 6 deviations.
    assert largest_gap(fits_of_neighbours(250)) > 1.0


# --- the start ------------------------------------------------------------------------------------------------


def distance(model, other):
    return np.linalg.norm([*(model.coef_ - other.coef_)[0], *(model.intercept_ - other.intercept_)])


def test_with_a_tiny_epsilon_a_warm_start_keeps_the_public_model(data, public):
    """Noise moves the weights by 1 at most by default, in the root of the mean square; at a smaller rate by less."""
    start = LogisticRegression().fit(*public)
    model = DPLogisticRegression(epsilon=1e-4, init=start).fit(*data)
    # Seven weights, variances from 0.09 to 0.17: below 0.08 twice in 1e7, above 3 (and 0.03 below) once in 1e8.
    assert 0.08 < distance(model, start) < 3
    slow = DPLogisticRegression(epsilon=1e-4, init=start, learning_rate=model.learning_rate_ / 100).fit(*data)
    assert distance(slow, start) < 0.03
    assert slow.score(*data) > start.score(*data) - 0.02


def test_a_warm_start_helps_where_noise_is_large(data, public):
    few = data[0][:300], data[1][:300]
    cold, warm = (
        [DPLogisticRegression(epsilon=0.05, init=init, feature_bounds=(-4, 4), release=draw).fit(*few, *public)
         .score(*data) for draw in range(20)]
        for init in (None, "public")
    )  # fmt: skip
    # Cold scores are 0.59 +- 0.17 and warm ones 0.95 +- 0.001: a Chernoff bound of twenty cold ones is 1e-11.
    assert np.mean(warm) > np.mean(cold) + 0.1


def test_strong_shrinkage_recovers_the_public_model_whatever_the_rate(data, public):
    start = pretrain(*public)
    model = DPLogisticRegression(epsilon=0.01, init=start, shrinkage=1e6, learning_rate=5.0).fit(*data)
    np.testing.assert_allclose(model.coef_[0], list(start.raw_weights()[0].values()), atol=0.05)
    free = DPLogisticRegression(epsilon=0.01, init=start, learning_rate=5.0).fit(*data)
    # Six weights of standard deviations from 10 to 17, so all within 0.5 once in 1e9.
    assert np.abs(free.coef_ - model.coef_).max() > 0.5


def test_shrinkage_without_a_start_is_an_l2_penalty(data):
    """The optimum is scikit-learn's, with the intercept penalised as well."""
    features, labels = data
    model = DPLogisticRegression(epsilon=1e6, shrinkage=0.5, clip_norm=50.0, learning_rate=0.5, n_iterations=200)
    theirs = LogisticRegression(C=1 / (0.5 * len(labels)), fit_intercept=False, tol=1e-10)
    theirs.fit(np.column_stack([features, np.ones(len(labels))]), labels)
    ours = model.fit(features, labels)
    np.testing.assert_allclose([*ours.coef_[0], *ours.intercept_], theirs.coef_[0], atol=2e-3)


def test_public_rows_may_be_fitted_on_the_way(data, public):
    on_the_way = DPLogisticRegression(epsilon=1e-3, init="public", shrinkage=1e9).fit(*data, *public)
    before = DPLogisticRegression(epsilon=1e-3, init=pretrain(*public), shrinkage=1e9).fit(*data)
    np.testing.assert_allclose(on_the_way.coef_, before.coef_, atol=1e-5)


def test_a_fitted_classifier_is_a_start(data, public):
    theirs = LogisticRegression().fit(*public)
    model = DPLogisticRegression(epsilon=1e-3, init=theirs, shrinkage=1e9).fit(*data)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-5)
    again = DPLogisticRegression(epsilon=1e-3, init=model, shrinkage=1e9, feature_bounds=(-8, 8)).fit(*data)
    np.testing.assert_allclose(again.coef_, theirs.coef_, atol=1e-4)


def test_columns_of_a_data_frame_go_by_name(data, public):
    frame = pd.DataFrame(data[0], columns=list("abcdef"))
    start = pretrain(public[0][:, ::-1], public[1], columns=list("fedcba"))
    model = DPLogisticRegression(epsilon=1e-3, init=start, shrinkage=1e9).fit(frame, data[1])
    np.testing.assert_allclose(model.coef_[0], list(pretrain(*public).raw_weights()[0].values()), atol=1e-5)
    other = pretrain(*public, columns=list("zbcdef"))
    with pytest.raises(DataError, match="it lacks a; only it has z"):
        DPLogisticRegression(init=other).fit(frame, data[1])


@each_case(
    ("init", "expected"),
    [
        (lambda x, y: pretrain(x[:, :5], y), "init was made for 5 features; these rows have 6"),
        (lambda x, y: LogisticRegression(), "init must be"),
        (lambda x, y: LogisticRegression().fit(x, y + 1), "other classes"),
        (lambda x, y: "private", "init must be"),
        (lambda x, y: "public", 'init = "public" needs public rows'),
        (lambda x, y: 3, "init must be"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(data, public, init, expected):
    with pytest.raises(BlindfitError, match=expected):
        DPLogisticRegression(init=init(*public)).fit(*data)


def test_a_start_that_is_not_a_number_is_refused(data, public):
    broken = LogisticRegression().fit(*public)
    broken.coef_[0, 0] = np.nan
    with pytest.raises(DataError, match="finite"):
        DPLogisticRegression(init=broken).fit(*data)


# --- the scale of the features ----------------------------------------------------------------------------------


def test_bounds_make_the_unit_of_a_feature_irrelevant(data):
    features, labels = data
    unit = np.array([1, 1e-4, 1e4, 1, 10, 1])
    model = DPLogisticRegression(epsilon=50.0, feature_bounds=(-4 * unit, 4 * unit)).fit(features * unit, labels)
    plain = DPLogisticRegression(epsilon=50.0, feature_bounds=(-4, 4)).fit(features, labels)
    np.testing.assert_allclose(model.coef_ * unit, plain.coef_, atol=0.1)


def test_one_row_far_away_spoils_nothing(data):
    features, labels = data[0].copy(), data[1]
    features[0] = 1e9
    model = DPLogisticRegression(epsilon=5.0).fit(features, labels)
    assert model.score(features[1:], labels[1:]) > LogisticRegression().fit(*data).score(*data) - 0.03


def test_bounds_that_make_a_number_overflow_fail_no_fit(data):
    features, labels = data[0].copy(), data[1]
    features[0] = [1e300, -1e300, 1e300, 0.0, 1.0, -1.0]
    model = DPLogisticRegression(epsilon=1e-6, feature_bounds=(-1e-290, 1e-290), loss_share=0.1).fit(features, labels)
    assert np.isfinite(model.decision_function(features)).all()
    assert np.isfinite(model.loss_curve_).all()


def test_scores_are_those_of_the_coefficients(data, public):
    for options in ({}, {"init": pretrain(*public)}, {"feature_bounds": (-5, 5)}):
        model = DPLogisticRegression(**options).fit(*data)
        np.testing.assert_allclose(model.decision_function(data[0]), data[0] @ model.coef_[0] + model.intercept_)
        np.testing.assert_allclose(model.predict_proba(data[0])[:, 1], sigmoid(model.decision_function(data[0])))


def test_a_norm_bound_shortens_scores_and_keeps_classes(data):
    model = DPLogisticRegression(norm_bound=2.0).fit(*data)
    linear = data[0] @ model.coef_[0] + model.intercept_
    scores = model.decision_function(data[0])
    long = np.linalg.norm(data[0], axis=1) > 2
    assert (np.abs(scores[long]) < np.abs(linear[long])).all()
    np.testing.assert_array_equal(scores > 0, linear > 0)


# --- the loss ---------------------------------------------------------------------------------------------------


def test_no_loss_is_released_unless_paid_for(data):
    assert DPLogisticRegression().fit(*data).loss_curve_ is None


def test_a_paid_loss_is_near_the_true_one_and_its_noise_comes_from_the_budget(data):
    free, paid = (DPLogisticRegression(epsilon=20.0, loss_share=share).fit(*data) for share in (0.0, 0.2))
    assert paid.noise_multiplier_ == pytest.approx(free.noise_multiplier_ / math.sqrt(0.8))
    assert len(paid.loss_curve_) == 50
    # Of noise: the loss's multiplier, twice LOSS_BOUND / 2, over the rows; six standard deviations.
    slack = 6 * free.noise_multiplier_ / math.sqrt(0.2) * LOSS_BOUND / len(data[1])
    assert paid.loss_curve_[0] == pytest.approx(math.log(2), abs=slack)
    assert slack < 0.1
    assert paid.loss_curve_[-1] < paid.loss_curve_[0] - 0.1


def test_a_loss_of_samples_estimates_that_of_all_rows(data):
    model = DPLogisticRegression(epsilon=20.0, loss_share=0.3, batch_fraction=0.5).fit(*data)
    # samples and noise deviate by 0.013: 15 deviations
    assert model.loss_curve_[0] == pytest.approx(math.log(2), abs=0.2)


def test_public_rows_show_the_loss_for_nothing(data, public):
    model = DPLogisticRegression(epsilon=5.0).fit(*data, *public)
    assert model.noise_multiplier_ == DPLogisticRegression(epsilon=5.0).fit(*data).noise_multiplier_
    assert len(model.loss_curve_) == 51
    assert model.loss_curve_[0] == pytest.approx(math.log(2))
    probabilities = model.predict_proba(public[0])[np.arange(len(public[1])), public[1]]
    assert model.loss_curve_[-1] == pytest.approx(-np.log(probabilities).mean())


# --- what is refused ----------------------------------------------------------------------------------------------


@each_case(
    "options",
    [
        {"epsilon": 0},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"delta": 0.0},
        {"clip_norm": 0.0},
        {"clip_norm": math.nan},
        {"clip_norm": 2.7e-304},
        {"expected_rows": 0.0},
        {"n_iterations": 0},
        {"learning_rate": 0.0},
        {"learning_rate": "fast"},
        {"batch_fraction": 1.1},
        {"neighbours": "add"},
        {"budget": "week"},
        {"shrinkage": -1.0},
        {"norm_bound": 0.0},
        {"loss_share": 1.0},
        {"loss_share": -0.1},
        {"feature_bounds": (1, 1)},
        {"feature_bounds": ([0, 1], [2, 3])},
        {"feature_bounds": (0, math.inf)},
        {"feature_bounds": 5},
        {"classes": (0, 1, 2)},
        {"classes": (0, 1, 0)},
        {"classes": (1, 1)},
        {"classes": (0,)},
        {"classes": 5},
        {"classes": [[0, 1]]},
    ],
)
def test_options_are_refused_with_one_line(data, options):
    with pytest.raises(BlindfitError) as refused:
        DPLogisticRegression(**options).fit(*data)
    assert "\n" not in str(refused.value)


def test_public_rows_that_do_not_go_along_are_refused(data, public):
    with pytest.raises(ConfigError, match="go together"):
        DPLogisticRegression().fit(*data, X_public=public[0])
    with pytest.raises(ConfigError, match="set loss_share = 0, or pass no public rows"):
        DPLogisticRegression(loss_share=0.1).fit(*data, *public)
    with pytest.raises(DataError, match="labels that y does not have: 2"):
        DPLogisticRegression().fit(*data, public[0], public[1] + 1)


def test_it_is_cloned_and_stored_whole(data, public):
    model = clone(DPLogisticRegression(init=pretrain(*public))).fit(*data)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(data[0]), model.predict_proba(data[0])
    )
    assert isinstance(model.init, Pretrained)
