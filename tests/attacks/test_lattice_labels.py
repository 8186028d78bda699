"""Labels by lattice reduction, with the defences off and on."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.statistics.quality.metrics import auc
from blindfit.algorithms.statistics.vertical.gradient_leaks import label_auc
from tests.attacks import lattice_labels
from tests.attacks.lattice_labels import FEW_COLUMNS, PRECISION, SECRET_START
from tests.attacks.views import (
    SMALL_BATCHES,
    Setting,
    breast,
    coins,
    most_right_within,
    simulate,
    without_defences,
)

ROWS = 128  # rows of a batch; the passive party has 20 columns
COINS_ROWS = 96


def first_gradient_gives_all(seed: int) -> bool:
    setting = without_defences(seed=seed, batch_rows=ROWS, epochs=1)
    training = simulate(breast(), setting)
    found = lattice_labels.from_first_gradient(training.seen[1], setting)
    return np.array_equal(found, training.y[training.plan.batches[0]])


def test_without_defences_the_first_gradient_gives_every_label() -> None:
    assert first_gradient_gives_all(seed=0)


@pytest.mark.soak
def test_without_defences_the_first_gradient_gives_every_label_in_five_batches() -> None:
    assert all(first_gradient_gives_all(seed) for seed in range(5))


def test_without_defences_it_gives_labels_that_nothing_else_tells() -> None:
    setting = without_defences(batch_rows=COINS_ROWS, epochs=1)
    training = simulate(coins(np.random.default_rng(0), breast()), setting)
    found = lattice_labels.from_first_gradient(training.seen[1], setting)
    assert np.array_equal(found, training.y[training.plan.batches[0]])


def test_at_the_defaults_it_gives_no_more_than_the_own_score() -> None:
    training = simulate(breast(), SMALL_BATCHES)
    passive, batch = training.seen[1], training.plan.batches[0]
    found = lattice_labels.from_first_gradient(passive, SMALL_BATCHES)
    assert auc(training.y[batch] > 0, found) <= passive.own_auc(batch, training.y) + 0.03
    assert not np.array_equal(found, training.y[batch])


@pytest.mark.parametrize(
    "setting", [SMALL_BATCHES, without_defences(jitter=0.25, batch_rows=ROWS)], ids=["defaults", "jitter alone"]
)
def test_with_jitter_the_lattice_finds_no_more_than_least_squares(setting: Setting) -> None:
    """The labels are coins, about which the own score reveals nothing."""
    found = []
    for seed in range(5):
        training = simulate(coins(np.random.default_rng(seed), breast()), setting)
        passive, batch = training.seen[1], training.plan.batches[0]
        found.append(auc(training.y[batch] > 0, lattice_labels.from_first_gradient(passive, setting)))
    assert np.mean(found) <= label_auc(passive.columns, len(batch), setting.jitter) + 0.03
    assert max(found) < 0.8


def from_differences(setting: Setting, seed: int) -> float:
    """Return the share of labels that the attack gets right."""
    training = simulate(lattice_labels.beside_few_columns(seed), setting)
    found = lattice_labels.from_differences(training.seen[1], FEW_COLUMNS, PRECISION)
    return float(np.mean(np.sign(found) == training.y[training.plan.batches[0]]))


def test_a_secret_start_does_not_help() -> None:
    assert from_differences(without_defences(**SECRET_START), seed=0) == 1


def test_jitter_helps_with_a_secret_start_and_without_noise() -> None:
    setting = without_defences(**SECRET_START, jitter=SMALL_BATCHES.jitter)
    assert from_differences(setting, seed=0) < 0.8


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_under_label_dp_it_guesses_no_better_than_epsilon_allows(epsilon: float) -> None:
    setting, right = Setting(epsilon, batch_rows=COINS_ROWS, epochs=1), []
    for seed in range(3):
        training = simulate(coins(np.random.default_rng(seed), breast()), setting)
        found = lattice_labels.from_first_gradient(training.seen[1], setting)
        right += (np.sign(found) == training.y[training.plan.batches[0]]).tolist()
    assert np.mean(right) <= most_right_within(epsilon, len(right))
