"""A binary column, the only one of its party, read by a partner with 20 columns: with the defences off and on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.statistics.vertical import optimiser
from tests.attacks import lattice_features
from tests.attacks.lattice_features import EPOCHS, EXACT, Column, Reader, always_the_same, chance, most_right, telling
from tests.attacks.views import SMALL_BATCHES, Setting, without_defences

READERS = pytest.mark.parametrize("reader", lattice_features.READERS)
COLUMNS = pytest.mark.parametrize("column", [chance(0.3), telling], ids=["chance", "telling"])


@READERS
@COLUMNS
def test_without_noise_the_column_is_read_in_full(reader: Reader, column: Column) -> None:
    for setting in (
        without_defences(batch_rows=96, epochs=EPOCHS),
        Setting(gradient_noise=0.0, batch_rows=96, epochs=EPOCHS),
    ):
        seen, truth = lattice_features.train(reader, setting, column)
        assert most_right(seen, truth, 0.0, EXACT) == 1


@pytest.mark.soak
@READERS
@pytest.mark.parametrize("seed", range(5))
def test_without_noise_a_rarer_value_is_read_from_128_rows(reader: Reader, seed: int) -> None:
    seen, truth = lattice_features.train(
        reader, without_defences(seed=seed, batch_rows=128, epochs=EPOCHS), chance(0.1)
    )
    assert most_right(seen, truth, 0.0, EXACT) == 1


@READERS
@pytest.mark.parametrize(
    ("batch_rows", "column"),
    [(96, chance(0.3)), (96, telling), (SMALL_BATCHES.batch_rows, telling)],
    ids=["96-chance", "96-telling", "128-telling"],
)
def test_at_the_defaults_no_column_is_read(reader: Reader, column: Column, batch_rows: int) -> None:
    """Smaller batches reveal more: if a random column is safe with 96 rows, it is safe with 128."""
    setting = replace(SMALL_BATCHES, batch_rows=batch_rows, epochs=EPOCHS)
    seen, truth = lattice_features.train(reader, setting, column)
    found = lattice_features.most_right_in_noise(seen, truth, setting.gradient_noise)
    assert found <= always_the_same(truth) + 0.05


# --- label DP: its kept noise is the same in all of a batch's gradients, and cancels --------------------------

EPSILONS = pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])


@EPSILONS
@READERS
def test_under_label_dp_without_fresh_noise_the_column_is_read_in_full(reader: Reader, epsilon: float) -> None:
    setting = Setting(epsilon, gradient_noise=0.0, batch_rows=96, epochs=EPOCHS)
    seen, truth = lattice_features.train(reader, setting, chance(0.3))
    assert len(truth) == 95  # the last of five batches of 455 rows
    assert most_right(seen, truth, 0.0, EXACT) == 1


def not_read_under_label_dp(reader: Reader, column: Column, epsilon: float) -> None:
    setting = Setting(epsilon, batch_rows=96, epochs=EPOCHS)
    seen, truth = lattice_features.train(reader, setting, column)
    found = lattice_features.most_right_in_noise(seen, truth, setting.gradient_noise)
    assert found <= always_the_same(truth) + 0.05


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


@pytest.mark.parametrize(
    ("epsilon", "noise", "most"),
    [(None, 1, 25), (8.0, 1, 25), (1.0, 1, 40), (0.5, 1, 40), pytest.param(0.1, 3, 60, marks=pytest.mark.soak)],
)
def test_fresh_noise_leaves_a_column_most_of_its_bits(epsilon: float | None, noise: float, most: float) -> None:
    """50 epochs, 96 rows, a column of 90 bits that nearly is the label.

    Kept noise moves weights, and their moves are visible. A smaller epsilon shows more bits, unless fresh noise grows
    too."""
    setting = Setting(epsilon, gradient_noise=noise, batch_rows=96, epochs=EPOCHS)
    found = [
        lattice_features.bits_read(replace(setting, seed=seed), reader)
        for seed in range(2)
        for reader in lattice_features.READERS
    ]
    assert 5 < max(found) <= most


@READERS
def test_noise_hides_most_of_what_least_squares_sees(reader: Reader) -> None:
    def mean_auc(noise_std: float) -> float:
        noisy = replace(SMALL_BATCHES, gradient_noise=noise_std, epochs=EPOCHS)
        return float(np.mean([lattice_features.projected_auc(reader, replace(noisy, seed=seed)) for seed in range(5)]))

    assert mean_auc(1.0) < 0.65 < 0.7 < mean_auc(0.0)


# --- options: the proposer of the job chooses them -------------------------------------------------------------

HOSTILE: dict[str, dict[str, Any]] = {
    "a rate at which training swings": {"learning_rate": 3.0},
    "a rate at which it diverges": {"learning_rate": 1000.0, "schedule": "constant"},
    "a penalty that throws weights about": {"learning_rate": 1.0, "l2": 3.0, "schedule": "constant"},
    "momentum": {"learning_rate": 10.0, "optimiser": "momentum"},
    "sag": {"learning_rate": 10.0, "optimiser": "sag"},
}


def bits_by_options(options: dict[str, Any]) -> float:
    setting = Setting(batch_rows=96, epochs=EPOCHS)
    setting = replace(setting, optimiser=replace(setting.optimiser, **options))
    return max(lattice_features.bits_read(setting, reader) for reader in lattice_features.READERS)


@pytest.mark.parametrize("options", HOSTILE.values(), ids=HOSTILE)
def test_no_options_read_a_column(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The column has 91 bits. With the limit on moves less than half can be read; without it all can."""
    assert bits_by_options(options) < 45
    monkeypatch.setattr(optimiser, "MOST_MOVED", np.inf)
    assert bits_by_options(options) > 91
