"""Attacks on models: they succeed on an overfitted one, and find nothing where there is nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.estimators import private_descent
from blindfit.algorithms.statistics.linear.logistic import sigmoid
from blindfit.algorithms.statistics.quality.model_attacks import (
    Table,
    auc_with_interval,
    inversion,
    membership,
    row_losses,
)
from tests.audit import models, mutants

SEEDS = range(4)


def attacks(model, trained, others):
    column = model.standardiser.kept_columns[int(np.argmax(np.abs(model.weights)))]
    tables = [Table(table.features, table.labels) for table in (trained, others)]
    losses = [row_losses(table.labels, model.probabilities(table.features)) for table in tables]
    place = model.columns.index(column)
    return membership(*losses, 0.95), inversion(model.probabilities, *tables, place, column, 0.95)


def tables_of(seed):
    return models.rows(models.ROWS, 2 * seed), models.rows(models.ROWS, 2 * seed + 1)


def mean_figures(model_of):
    """Return means over the seeds: AUC of membership, of inversion, of inversion of non-members."""
    found = [attacks(model_of(tables_of(seed)[0], seed), *tables_of(seed)) for seed in SEEDS]
    return np.mean([(m.auc.value, i.members.value, i.non_members.value) for m, i in found], axis=0)


def test_an_overfitted_model_gives_its_rows_away():
    member, inverted, inverted_others = mean_figures(lambda trained, _: models.overfitted(trained))
    assert member > 0.8
    assert inverted > 0.7
    assert inverted_others < 0.62


def test_a_model_without_training_gives_nothing_away():
    figures = mean_figures(lambda _, seed: models.with_random_weights(seed))
    assert np.abs(figures - 0.5).max() < 0.1


def test_differential_privacy_takes_it_back(monkeypatch):
    """The noise is the same in every run: over draws, a figure has a standard deviation of 0.044."""
    monkeypatch.setattr(private_descent, "system_uniform", mutants.repeatable(1))
    figures = mean_figures(lambda trained, _: models.private(trained, 0.5))
    assert np.abs(figures - 0.5).max() < 0.1


def test_membership_figures_by_hand():
    members = np.append(np.full(50, 0.1), np.full(50, 1.0))
    others = np.append(np.full(25, 0.1), np.full(75, 1.0))
    found = membership(members, others, 0.95)
    assert found.auc.value == pytest.approx(0.5 + 0.25 / 2)
    assert found.advantage == pytest.approx(0.25)
    assert found.tpr_at_low_fpr == 0  # 25% of the others are taken with the first member
    assert found.advantage_by_chance == pytest.approx(math.sqrt(-math.log(0.05) / 100))
    assert membership(np.zeros(20), np.ones(20), 0.95).tpr_at_low_fpr == 1


def test_the_interval_covers_and_has_a_width_at_the_ends():
    rng = np.random.default_rng(0)
    truth = np.arange(60) < 30
    true_area = 0.7602499389  # Phi(1 / sqrt 2)
    areas = [auc_with_interval(truth, rng.standard_normal(60) + truth, 0.95) for _ in range(400)]
    assert np.mean([area.low <= true_area <= area.high for area in areas]) > 0.92
    perfect = auc_with_interval(truth, truth.astype(float), 0.95)
    assert perfect.value == perfect.high == 1
    assert 0.8 < perfect.low < 0.97


def test_advantage_by_chance_is_passed_as_rarely_as_it_says():
    rng = np.random.default_rng(2)
    found = [membership(rng.random(80), rng.random(60), 0.95) for _ in range(500)]
    passed = np.mean([one.advantage > one.advantage_by_chance for one in found])
    assert 0.005 < passed < 0.09  # 5% and four standard deviations


def test_inversion_weighs_values_by_how_common_they_are():
    """The model reveals nothing, so the guess is the more common value for every row."""
    rng = np.random.default_rng(3)
    tables = [Table((rng.random((200, 2)) < 0.3).astype(float), rng.random(200) < 0.5) for _ in range(2)]
    found = inversion(lambda features: np.full(len(features), 0.4), *tables, 1, "smoker", 0.95)
    assert found.accuracy == found.baseline > 0.6
    assert found.members.value == pytest.approx(0.5)


def test_inversion_by_bayes():
    """One binary feature: the belief is prior times likelihood, which puts the labels in the order of the truth."""
    features = np.array([[0.0]] * 50 + [[1.0]] * 50)
    table = Table(features, features[:, 0] > 0)
    found = inversion(lambda rows: sigmoid(6 * rows[:, 0] - 3), table, table, 0, "x", 0.95)
    assert found.accuracy == 1
    assert found.members.value == 1


def test_rows_too_few_and_a_column_that_says_nothing():
    with pytest.raises(DataError, match="9 members are too few"):
        membership(np.ones(9), np.ones(20), 0.95)
    table = Table(np.ones((20, 1)), np.arange(20) < 10)
    with pytest.raises(DataError, match="the same value in every non-member"):
        inversion(lambda rows: np.full(len(rows), 0.5), table, table, 0, "x", 0.95)
