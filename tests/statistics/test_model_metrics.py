from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as oracle
from sklearn.calibration import calibration_curve

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.quality.evaluation import evaluate_classes, evaluate_values
from blindfit.algorithms.statistics.quality.metrics import (
    accuracy,
    auc,
    calibration_table,
    gain_kept,
    log_loss,
    normalised_entropy,
)
from tests.each_case import each_case

Predictions = tuple[np.ndarray, np.ndarray]


@st.composite
def predictions(draw: st.DrawFn) -> Predictions:
    """Label of both classes, probabilities with ties and with the ends 0 and 1."""
    n_rows = draw(st.integers(2, 60))
    labels = np.array(draw(st.lists(st.integers(0, 1), min_size=n_rows, max_size=n_rows)))
    labels[:2] = 0, 1
    grid = st.sampled_from([0.0, 0.05, 0.3, 0.5, 0.7, 0.95, 1.0])
    values = draw(st.lists(grid | st.floats(0, 1), min_size=n_rows, max_size=n_rows))
    return labels, np.array(values)


@settings(deadline=None)
@given(predictions())
def test_metrics_agree_with_scikit_learn(both: Predictions) -> None:
    labels, values = both
    assert log_loss(labels, values) == pytest.approx(oracle.log_loss(labels, values), rel=1e-9, abs=1e-15)
    assert auc(labels, values) == pytest.approx(oracle.roc_auc_score(labels, values), abs=1e-12)
    assert accuracy(labels, values) == pytest.approx(oracle.accuracy_score(labels, values > 0.5))


def test_ties_count_half() -> None:
    assert auc([0, 1], [0.5, 0.5]) == 0.5
    assert auc([0, 1, 1, 0], [0.1, 0.4, 0.4, 0.4]) == 0.75
    assert auc([0, 1], [-30.0, 40.0]) == 1  # scores will do


def test_the_calibration_table_agrees_with_scikit_learn() -> None:
    generator = np.random.default_rng(6)
    values = generator.random(2000) ** 2
    labels = generator.random(2000) < values
    table = calibration_table(labels, values, n_bins=8)
    rates, means = calibration_curve(labels, values, n_bins=8)
    np.testing.assert_allclose([b.label_rate for b in table], rates)
    np.testing.assert_allclose([b.mean_probability for b in table], means)
    assert sum(b.n_rows for b in table) == 2000


def test_empty_bins_are_left_out_and_the_ends_belong() -> None:
    table = calibration_table([0, 1, 1], [0.0, 1.0, 0.5], n_bins=4)
    assert [(b.low, b.high, b.n_rows) for b in table] == [(0, 0.25, 1), (0.25, 0.5, 1), (0.75, 1, 1)]
    with pytest.raises(ConfigError, match="n_bins"):
        calibration_table([0], [0.5], n_bins=0)


def test_normalised_entropy_and_the_gain_kept() -> None:
    labels = [0, 0, 0, 1]
    assert normalised_entropy(labels, [0.25] * 4) == pytest.approx(1)
    assert normalised_entropy(labels, labels) == pytest.approx(0, abs=1e-12)
    assert gain_kept(private=0.5, non_private=0.4, constant=0.6) == pytest.approx(0.5)
    assert gain_kept(0.4, 0.4, 0.6) == 1
    assert gain_kept(0.8, 0.4, 0.6) == pytest.approx(-1)
    for worthless in (0.6, 0.7, float("nan")):
        with pytest.raises(DataError, match="no gain to keep"):
            gain_kept(0.5, worthless, 0.6)


@each_case("labels", [[], [1, 1], [0]])
def test_a_classifier_is_evaluated_on_rows_of_both_classes(labels: list[int]) -> None:
    with pytest.raises(DataError, match="an evaluation needs rows of both classes") as refused:
        evaluate_classes(np.array(labels), np.full(len(labels), 0.5), 0.5)
    assert refused.value.hint == "raise split.test_fraction"


def test_a_regression_is_evaluated_on_rows() -> None:
    with pytest.raises(DataError, match="an evaluation needs rows"):
        evaluate_values(np.zeros(0), np.zeros(0))


def test_bad_predictions_are_refused_by_row() -> None:
    with pytest.raises(DataError, match="row 1: the label"):
        log_loss([0, 2], [0.1, 0.2])
    for bad in (1.5, -0.1, float("nan")):
        with pytest.raises(DataError, match=r"row 1.*probability"):
            log_loss([0, 1], [0.1, bad])
    with pytest.raises(DataError, match=r"row 0.*finite score"):
        auc([0, 1], [np.inf, 0])
    for labels, values in (([], []), ([0, 1], [0.5]), ([[0, 1]], [[0.5, 0.5]])):
        with pytest.raises(DataError, match="shape"):
            accuracy(labels, values)
    for metric in (auc, normalised_entropy):
        with pytest.raises(DataError, match="both classes"):
            metric([1, 1], [0.2, 0.3])
