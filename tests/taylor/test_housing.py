"""Linear regression on California Housing: as good as scikit-learn's, by the plain training that the encrypted one is.

The ratio is the promise's: a test error at most 1% above that of least squares on the same rows, standardised alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.vertical.housing import AIM, COLUMNS, FILE, Housing, Training, compare
from blindfit.algorithms.paillier.keys import PrivateKey

DATA = Path(__file__).parents[3] / "shared" / "data"
ROWS = 20_640


@pytest.fixture(scope="module")
def housing() -> Housing:
    if not (DATA / FILE).exists():
        pytest.skip(f"{DATA / FILE} is not there; benchmarks/vertical/housing.py says where it comes from")
    return Housing.read(DATA)


@pytest.fixture(scope="module")
def compared(housing: Housing) -> Callable[[int], dict[str, float]]:
    """Comparison by seed, each computed once."""
    return cache(lambda seed: compare(Training.of(housing, seed)))


def made_up(rows: int = 240) -> Housing:
    draw = np.random.default_rng(7)
    names = [name for party in COLUMNS.values() for name in party]
    columns = {name: 10 * draw.normal(size=rows) + 3 for name in names}
    return Housing(columns, 0.1 * sum(columns.values()) + draw.normal(size=rows))


@pytest.mark.parametrize("seed", range(3))
def test_the_defaults_are_as_good_as_least_squares(
    housing: Housing, compared: Callable[[int], dict[str, float]], seed: int
) -> None:
    assert len(housing.prices) == ROWS
    assert compared(seed)["ratio"] <= AIM


def test_they_are_so_on_clipped_columns_too(compared: Callable[[int], dict[str, float]]) -> None:
    """A split with a far district in its test rows is off by several percent in either direction: the test takes the
    middle of five.
    """
    found = [compared(seed) for seed in range(5)]
    assert np.median([each["ratio"] for each in found]) <= AIM
    assert np.median([each["clipped"] for each in found]) <= AIM


def test_a_training_that_has_hardly_begun_is_not(housing: Housing) -> None:
    assert compare(Training.of(housing, learning_rate=0.001, epochs=1))["ratio"] > AIM


def test_the_encrypted_training_has_the_same_weights(real_key: PrivateKey) -> None:
    training = Training.of(made_up(), epochs=2, batch_rows=64)
    plain, encrypted = training.plain(), training.encrypted(real_key)
    assert encrypted.epochs == plain.epochs == 2
    for party in COLUMNS:
        assert encrypted.weights[party].tolist() == plain.weights[party].tolist()
    assert training.mse(encrypted) < float(np.var(training.housing.prices))
