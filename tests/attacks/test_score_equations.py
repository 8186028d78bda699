"""A partner reads a party's features from scores, with the count and the rounding off and at the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError, PolicyRefused
from tests.attacks.score_equations import read_binary, read_columns
from tests.hints.following import refused
from tests.predict.pair import Pair

LIFTED = {"models_per_row": "unlimited"}
ROWS, KNOWN = 2000, 32


@pytest.fixture
def pairs(tmp_path: Path) -> Iterator[Any]:
    made: list[Pair] = []

    def make(features: np.ndarray, **options: Any) -> Pair:
        made.append(Pair(tmp_path, features, **options))
        return made[-1]

    yield make
    for pair in made:
        pair.close()


def read_in_full(features: np.ndarray, scores: np.ndarray) -> float:
    """Return the share of unknown rows that are read in full."""
    found = read_binary(features[:KNOWN], scores)
    return float((found == features).all(axis=1)[KNOWN:].mean())


@pytest.fixture
def binary() -> np.ndarray:
    return (np.random.default_rng(0).random((ROWS, 8)) < 0.5).astype(float)


WEIGHTS = np.random.default_rng(1).normal(size=8)


def test_one_models_exact_scores_tell_eight_binary_columns_of_every_row(pairs: Any, binary: np.ndarray) -> None:
    pair = pairs(binary, dataset=LIFTED)
    pair.train("one", WEIGHTS)
    assert read_in_full(binary, pair.scores("one")) == 1.0


def test_columns_that_one_score_would_tell_are_not_published_without_a_declaration(
    pairs: Any, binary: np.ndarray
) -> None:
    pair = pairs(binary)
    with pytest.raises(ConfigError, match="none of its 8 columns has more than 16 values"):
        pair.train("one", WEIGHTS)


def test_a_party_that_gives_no_scores_says_so_of_whatever_rows(pairs: Any, binary: np.ndarray) -> None:
    rich = np.random.default_rng(5).normal(size=binary.shape)
    said = []
    for features in (binary, rich):
        pair = pairs(features, dataset={"models_per_row": 0})
        pair.train("one", WEIGHTS)
        with pytest.raises(PolicyRefused) as caught:
            pair.scores("one")
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "no scores of rows are given" in said[0]


def test_scores_of_half_of_a_rows_bits_tell_few_rows(pairs: Any, binary: np.ndarray) -> None:
    """Eight columns of one bit give four bits of a score. A row with columns of other kinds is left with as much."""
    pair = pairs(binary, dataset=LIFTED)
    pair.train("one", WEIGHTS, rounding=42)  # to whole numbers
    scores = pair.scores("one")
    assert len(np.unique(scores.round(6))) <= 2**4
    assert read_in_full(binary, scores) < 0.1


def columns_read(features: np.ndarray, scores: list[np.ndarray]) -> float:
    """Return the root mean square error of the guesses over unknown rows, in the columns' deviations."""
    known = len(features[0]) + 1
    wrong = read_columns(features[:known], np.array(scores)) - features
    return float(np.sqrt(np.mean((wrong[known:] / features.std(axis=0)) ** 2)))


def test_three_models_tell_three_columns_of_everybody(pairs: Any) -> None:
    draw = np.random.default_rng(2)
    features = draw.normal(size=(200, 3))
    pair = pairs(features, dataset=LIFTED)
    for name in "abc":
        pair.train(name, draw.normal(size=3))
    assert columns_read(features, [pair.scores(name) for name in "abc"]) < 1e-3


def test_three_columns_are_not_published_without_a_declaration(pairs: Any) -> None:
    pair = pairs(np.random.default_rng(2).normal(size=(200, 3)))
    with pytest.raises(ConfigError, match="it has 3 columns that vary, fewer than 4"):
        pair.train("a", np.ones(3))


def test_rows_of_few_values_allow_few_models(pairs: Any) -> None:
    """Eight columns of 128 values have 56 bits, and half of them are enough for two models. 81 values
    allow one model.
    """
    features = np.random.default_rng(4).integers(0, 128, size=(2000, 8)).astype(float)
    pair = pairs(np.minimum(features, 80))
    with refused("set {}.models_per_row = {}") as told:
        pair.train("one", WEIGHTS)
    assert "its rows hold enough for scores of 1 model, not of 2" in told.text
    assert told.text.endswith("set datasets.rows.models_per_row = 1")
    pairs(np.minimum(features, 80), dataset={"models_per_row": 1}).train("one", WEIGHTS)
    pairs(features).train("two", WEIGHTS)


@pytest.mark.parametrize(("dataset", "models"), [({}, 1), ({"models_per_row": 1}, 1), ({"models_per_row": 2}, 2)])
def test_fewer_models_than_half_of_the_columns_and_no_more(pairs: Any, dataset: dict[str, int], models: int) -> None:
    """Seven columns allow one model by default, and at most three. An attacker reads no more than it could guess."""
    draw = np.random.default_rng(3)
    features = draw.normal(size=(200, 7))
    pair = pairs(features, dataset=dataset)
    scores = []
    for number in range(models):
        pair.train(f"t{number}", draw.normal(size=7))
        scores.append(pair.scores(f"t{number}"))
    pair.train("more", draw.normal(size=7))
    with pytest.raises(PolicyRefused, match=f"models_per_row: some of these rows have had scores of {models} model"):
        pair.scores("more")
    np.testing.assert_array_equal(pair.scores("t0"), scores[0])  # the same question has the same answer
    assert columns_read(features, scores) > 0.7


def test_the_number_of_models_is_that_of_the_columns(pairs: Any) -> None:
    """Fifteen columns allow three models by default. Their content only decides whether they are published."""
    draw = np.random.default_rng(3)
    pair = pairs(draw.normal(size=(5000, 15)))
    for number in range(3):
        pair.train(f"t{number}", draw.normal(size=15))
        pair.scores(f"t{number}")
    pair.train("more", draw.normal(size=15))
    with pytest.raises(PolicyRefused, match="have had scores of 3 models"):
        pair.scores("more")


def test_more_models_than_the_rows_allow_are_not_published(pairs: Any) -> None:
    draw = np.random.default_rng(3)
    pair = pairs(draw.normal(size=(5000, 7)), dataset={"models_per_row": 4})
    with pytest.raises(ConfigError, match="its rows hold enough for scores of 3 models, not of 4"):
        pair.train("t0", draw.normal(size=7))
