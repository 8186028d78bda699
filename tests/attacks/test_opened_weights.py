"""The attack on opened weights, through the real job: with the rule off it reads every label, with it on it cannot."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.statistics.linear.weight_bits import choose_kept_bits
from tests.attacks.opened_weights import candidates
from tests.falcon.project import REPEATABLE, table
from tests.world import World
from tests.world.vertical import DATA_PARTIES, bank_and_shops_in_shares, weights

ROWS, RATE = 14, 0.5
SMALL = (
    "align.min_common=10",
    "falcon.epochs=1",
    "falcon.batch_rows=100",
    "falcon.validation_fraction=0",
    "split.test_fraction=0",
)


@pytest.fixture
def project(tmp_path: Path) -> World:
    """The parties accept a training of so few rows."""
    project = bank_and_shops_in_shares(tmp_path, rows=ROWS)
    project.set("policy.min_common", 10, *DATA_PARTIES)
    return project


def own_columns(project: World) -> tuple[np.ndarray, np.ndarray]:
    """Return the second shop's standardised columns, and the labels that it does not know."""
    x, y = table(project.root)
    mine = x[:, 6:]
    return (mine - mine.mean(axis=0)) / mine.std(axis=0), y


def test_without_the_rule_one_epoch_gives_every_label_away(project: World) -> None:
    session = project.run(*SMALL, *REPEATABLE)
    columns, y = own_columns(project)
    found = candidates(columns, weights(project, session.id)["shop-b"], RATE, step=2e-4)
    assert len(found) == 1
    assert np.array_equal(found[0], y)


def test_with_the_rule_the_job_is_refused(project: World) -> None:
    with pytest.raises(PolicyRefused, match="weight bits") as refused:
        project.run(*SMALL)
    assert refused.value.party == "bank"


def test_rounded_weights_leave_many_label_vectors(project: World) -> None:
    """If the rule accepted so few rows, only the rounding would protect them: weights reveal at most k b
    bits of them.
    """
    columns, y = own_columns(project)
    step = 2.0 ** -choose_kept_bits(ROWS)
    exact = RATE / ROWS * (y - 0.5) @ columns
    opened = np.floor(exact / step) * step
    left = candidates(columns, opened, RATE, step)
    assert any(np.array_equal(one, y) for one in left)
    assert len(left) > 2**ROWS / 2 ** (3 * 3)


def test_under_differential_privacy_the_nearest_labels_are_not_the_right_ones(project: World) -> None:
    """The noise is a hundred times what a label does to a weight.

    By chance the nearest labels are right, once in about 2^14; from the weights of both shops, whose noise differs,
    once in 2^28."""
    for name in ("shop-a", "shop-b"):
        path = project.path(f"{name}.toml")
        project.edit(path.name, 'id = "id"\n', 'id = "id"\npopulation = "people"\n')
        path.write_text(path.read_text() + "[populations.people]\nepsilon = 3.0\ndelta = 1e-5\n")
    session = project.run(*SMALL, "privacy.epsilon=1", 'falcon.feature_bounds=["*:-4:4"]')
    x, y = table(project.root)
    every = np.array(list(itertools.product((0, 1), repeat=ROWS)))
    opened = weights(project, session.id)
    nearest = []
    for name, own in (("shop-a", slice(3, 6)), ("shop-b", slice(6, 9))):
        expected = RATE / ROWS * (every - 0.5) @ x[:, own] / 4
        nearest.append(every[np.linalg.norm(expected - opened[name], axis=1).argmin()])
    assert not all(np.array_equal(labels, y) for labels in nearest)


ONE_STEP = ("falcon.epochs=3", 'falcon.schedule="exponential"', "falcon.decay=5")  # the steps after the first are tiny


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("falcon.epochs=3",), ("falcon.epochs=4", "falcon.l2=0.02")),
        (("falcon.epochs=1",), ("falcon.epochs=1", "falcon.l2=0.02")),
        (("falcon.epochs=1",), ("falcon.epochs=2",)),
        (ONE_STEP, (*ONE_STEP, "falcon.l2=0.02")),
    ],
)
def test_trainings_that_differ_by_a_gradient_are_counted_together(
    tmp_path: Path, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    """Weights after one epoch are a gradient, and openings after T and T + 1 epochs differ by one gradient.

    For any number of epochs, both together must stay below the limit."""
    nodes = World(bank_and_shops_in_shares(tmp_path, rows=160).root)
    fixed = ("split.test_fraction=0", "falcon.validation_fraction=0")
    nodes.run(*fixed, *first)
    with pytest.raises(PolicyRefused, match="with earlier trainings"):
        nodes.run(*fixed, *second)
