"""Labels by least squares, with the defences off and on: 2,000 rows, ten columns at each of two parties."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.statistics.vertical.gradient_leaks import label_auc, rows_for_labels
from tests.attacks.least_squares_labels import (
    COLUMNS,
    NONE,
    RESHUFFLED,
    ROWS,
    STRONG,
    WEAK,
    attack,
    auc_over,
    own_auc,
    retrained,
    train,
)
from tests.attacks.views import DEFAULTS, Setting, breast, coins, most_right_within, simulate, without_defences

FEWER_ROWS = 1000  # in batches of the same size: as many equations for each label, solved all at once


def test_reshuffled_batches_without_defences_give_nearly_every_label() -> None:
    setting = without_defences(**RESHUFFLED)
    training = train(setting, STRONG, rows=FEWER_ROWS)
    assert attack(training, setting).share > 0.9
    assert own_auc(training) < 0.8


def test_jitter_and_noise_do_not_help_where_batches_are_reshuffled() -> None:
    setting = Setting(**RESHUFFLED)
    training = train(setting, STRONG, rows=FEWER_ROWS)
    assert attack(training, setting).auc > own_auc(training) + 0.1


def mean_gain(setting: Setting, signal: tuple[float, float], seeds: int) -> float:
    """Return the gain of the attack over the party's own score."""
    trainings = [train(setting, signal, seed) for seed in range(seeds)]
    return float(np.mean([attack(training, setting).auc - own_auc(training) for training in trainings]))


def test_at_the_defaults_it_gives_little_more_than_the_own_score() -> None:
    assert mean_gain(DEFAULTS, STRONG, seeds=3) <= 0.03


@pytest.mark.soak
def test_at_the_defaults_it_gives_little_more_twenty_times() -> None:
    assert mean_gain(DEFAULTS, STRONG, seeds=20) <= 0.03


@pytest.mark.parametrize(("signal", "most"), [(STRONG, 0.01), (WEAK, 0.02), (NONE, 0.05)], ids=["strong", "weak", "no"])
def test_larger_batches_leave_less_whatever_the_own_score_tells(signal: tuple[float, float], most: float) -> None:
    assert mean_gain(Setting(batch_rows=512), signal, seeds=3) <= most


@pytest.mark.parametrize("batch_rows", [128, 256, 512])
def test_on_coins_it_gives_what_the_formula_says(batch_rows: int) -> None:
    """In the worst case a party's own columns reveal nothing about the labels."""
    setting = Setting(batch_rows=batch_rows)
    found = [attack(train(setting, NONE, seed), setting).auc for seed in range(3)]
    assert np.mean(found) == pytest.approx(label_auc(COLUMNS, batch_rows, setting.jitter), abs=0.025)


def test_several_trainings_are_like_reshuffled_batches() -> None:
    """One training cannot prevent this, as docs/explanation/gradient_leaks.md explains."""
    trainings = retrained(10, looked_at=[0, 9])
    gains = [auc_over(trainings[:count]) - own_auc(trainings[0]) for count in (1, 10)]
    assert gains[0] < 0.05
    assert gains[1] > 0.1


def test_too_few_rows_for_the_columns_give_the_labels_and_are_refused() -> None:
    found = []
    for seed in range(3):
        setting = Setting(batch_rows=24, shorten=False, seed=seed)
        training = simulate(coins(np.random.default_rng(seed), breast()), setting)
        found.append(attack(training, setting).auc)
        assert rows_for_labels(training.seen[1].columns, setting.jitter) > 24
    assert np.mean(found) > 0.9


# --- label DP -----------------------------------------------------------------------------------------------


def test_under_label_dp_it_guesses_no_better_than_epsilon_allows() -> None:
    setting = Setting(epsilon=0.5)
    training = train(setting, NONE)
    assert attack(training, setting).share <= most_right_within(0.5, ROWS)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_under_label_dp_it_gives_little_more_than_the_own_score(epsilon: float) -> None:
    assert mean_gain(Setting(epsilon), STRONG, seeds=2) <= 0.03
