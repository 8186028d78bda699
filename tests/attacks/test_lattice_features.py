"""A binary column, the only one of its party, read by a partner with 20 columns: with the defences off and on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from blindfit.algorithms.statistics.metrics import auc
from tests.attacks import lattice_features
from tests.attacks.views import (
    SMALL_BATCHES,
    Data,
    Floats,
    Seen,
    Setting,
    Training,
    breast,
    simulate,
    with_intercept,
    without_defences,
)

Reader = Literal["active", "passive"]
Column = Callable[[np.random.Generator, Floats], NDArray[np.bool_]]
READERS = pytest.mark.parametrize("reader", ["active", "passive"])
EPOCHS = 50
WEIGHTS = (0.5, 1.0, 2.0, 4.0, 8.0)  # of noisy equations: the attacker tries them all


def chance(ones: float) -> Column:
    return lambda rng, y: rng.random(len(y)) < ones


def telling(rng: np.random.Generator, y: Floats) -> NDArray[np.bool_]:
    """The label in four rows of five: its weight moves more, which shows more of it."""
    return (y > 0) ^ (rng.random(len(y)) < 0.2)


COLUMNS = pytest.mark.parametrize("column", [chance(0.3), telling], ids=["chance", "telling"])


def train(reader: Reader, setting: Setting, column: Column) -> tuple[Seen, Floats]:
    """What the reader sees, and the other party's column in the first batch as signs."""
    training, ones = trained(reader, setting, column)
    seen = training.seen[0 if reader == "active" else 1]
    return seen, 2 * ones[training.plan.batches[0], 0] - 1


def trained(reader: Reader, setting: Setting, column: Column) -> tuple[Training, Floats]:
    data = breast()
    ones = column(np.random.default_rng([setting.seed, 7]), data.y).astype(float)[:, None]
    wide = data.parts[1]
    parts = (with_intercept(wide), ones) if reader == "active" else (with_intercept(ones), wide)
    return simulate(Data(parts, data.y), setting), ones


def most_right(seen: Seen, truth: Floats, noise_std: float, weight: float, *, candidates: int = 3) -> float:
    """The share of rows that the best candidate has right, chosen with the column in hand; 0 without a candidate."""
    found = lattice_features.binary_column(seen, noise_std, weight, candidates=candidates)
    return max((max(np.mean(guess == truth), np.mean(guess == -truth)) for guess in found), default=0.0)


@READERS
@COLUMNS
def test_without_noise_the_column_is_read_in_full(reader: Reader, column: Column) -> None:
    for setting in (
        without_defences(batch_rows=96, epochs=EPOCHS),
        Setting(gradient_noise=0.0, batch_rows=96, epochs=EPOCHS),
    ):
        seen, truth = train(reader, setting, column)
        assert most_right(seen, truth, 0.0, lattice_features.EXACT) == 1


@pytest.mark.soak
@READERS
@pytest.mark.parametrize("seed", range(5))
def test_without_noise_a_rarer_value_is_read_from_128_rows(reader: Reader, seed: int) -> None:
    seen, truth = train(reader, without_defences(seed=seed, batch_rows=128, epochs=EPOCHS), chance(0.1))
    assert most_right(seen, truth, 0.0, lattice_features.EXACT) == 1


@READERS
@COLUMNS
def test_at_the_defaults_no_column_is_read(reader: Reader, column: Column) -> None:
    for batch_rows in (96, SMALL_BATCHES.batch_rows):
        setting = replace(SMALL_BATCHES, batch_rows=batch_rows, epochs=EPOCHS)
        seen, truth = train(reader, setting, column)
        always_the_same = max(np.mean(truth > 0), np.mean(truth < 0))
        for weight in WEIGHTS:
            assert most_right(seen, truth, setting.gradient_noise, weight, candidates=60) <= always_the_same + 0.05


# --- label DP: its kept noise is the same in all of a batch's gradients, and cancels --------------------------

EPSILONS = pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])


@EPSILONS
@READERS
def test_under_label_dp_without_fresh_noise_the_column_is_read_in_full(reader: Reader, epsilon: float) -> None:
    setting = Setting(epsilon, gradient_noise=0.0, batch_rows=96, epochs=EPOCHS)
    seen, truth = train(reader, setting, chance(0.3))
    assert len(truth) == 96
    assert most_right(seen, truth, 0.0, lattice_features.EXACT) == 1


def not_read_under_label_dp(reader: Reader, column: Column, epsilon: float) -> None:
    setting = Setting(epsilon, batch_rows=96, epochs=EPOCHS)
    seen, truth = train(reader, setting, column)
    always_the_same = max(np.mean(truth > 0), np.mean(truth < 0))
    for weight in WEIGHTS:
        assert most_right(seen, truth, setting.gradient_noise, weight, candidates=60) <= always_the_same + 0.05


@pytest.mark.parametrize(("reader", "epsilon"), [("active", 0.5), ("passive", 1.0), ("active", 8.0)])
def test_under_label_dp_with_fresh_noise_no_column_is_read(reader: Reader, epsilon: float) -> None:
    not_read_under_label_dp(reader, telling, epsilon)


@pytest.mark.soak
@READERS
@COLUMNS
@EPSILONS
def test_under_label_dp_with_fresh_noise_no_column_is_read_by_anyone(
    reader: Reader, column: Column, epsilon: float
) -> None:
    not_read_under_label_dp(reader, column, epsilon)


def nearly_the_label(rng: np.random.Generator, y: Floats) -> NDArray[np.bool_]:
    return (y > 0) ^ (rng.random(len(y)) < 0.05)


@pytest.mark.parametrize(
    ("epsilon", "most"), [(None, 25), (8.0, 25), (1.0, 40), (0.5, 40), pytest.param(0.1, 60, marks=pytest.mark.soak)]
)
def test_fresh_noise_leaves_a_column_most_of_its_bits(epsilon: float | None, most: float) -> None:
    """At worst: 50 epochs, 96 rows, a column that nearly is the label, of 88 bits. Kept noise moves weights, and what
    moves is seen: the smaller epsilon, the more bits."""
    found = []
    for seed in range(2):
        for place, reader in enumerate(get_args(Reader)):
            setting = Setting(epsilon, batch_rows=96, epochs=EPOCHS, seed=seed)
            training, _ = trained(reader, setting, nearly_the_label)
            seen, other = training.seen[place], training.seen[1 - place]
            found.append(lattice_features.bits_given_away(seen, other, setting.gradient_noise))
    assert 5 < max(found) <= most


@READERS
def test_noise_hides_most_of_what_least_squares_sees(reader: Reader) -> None:
    def seen_share(noise_std: float) -> float:
        found = []
        for seed in range(5):
            seen, truth = train(
                reader, replace(SMALL_BATCHES, gradient_noise=noise_std, epochs=EPOCHS, seed=seed), chance(0.3)
            )
            one_way = auc(truth > 0, lattice_features.projected(seen, noise_std))
            found.append(max(one_way, 1 - one_way))
        return float(np.mean(found))

    assert seen_share(1.0) < 0.65 < 0.7 < seen_share(0.0)
