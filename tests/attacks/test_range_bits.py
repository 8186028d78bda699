"""Labels from where a training ends: the real job runs with the count on and off.

A passive party's columns are large only on two rows. The range reveals whether their two labels are equal, and the
party leaves before a weight is opened.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, DataError, PolicyRefused, ScoresOutOfRange
from blindfit.algorithms.protocols.falcon import Held
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.parties.falcon import data_party
from blindfit.parties.vertical.checkpoints import Checkpoints
from tests.world import World
from tests.world.vertical import bank_and_shops_in_shares, label_bits

ROWS = 112
LARGE = 400  # times itself over the rows, times half the rate, is far past what the waves reach
JOB = (
    "align.min_common=50",
    "falcon.epochs=3",
    "falcon.batch_rows=1000",
    "falcon.validation_fraction=0",
    "split.test_fraction=0",
)
UNSAFE = 'falcon.unsafe=["weight-bits"]'
READ, ASKED = 5, 4  # pairs of labels: both answers are among the first, and the rule has no room for so many


@pytest.fixture
def project(tmp_path: Path) -> World:
    """The labels of these rows have room for one training's weights, and little more."""
    return bank_and_shops_in_shares(tmp_path, rows=ROWS)


class Attack:
    """A shop's own code: it sends columns of its choice, and leaves when it has its answer."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.place, self.labels = 0, np.zeros(0)
        make_held, keep = data_party.make_held, Checkpoints.keep

        def chosen(prepared: Any, *public: Any) -> Held:
            held = make_held(prepared, *public)
            if held.labels is not None:
                self.labels = held.labels  # only for the test, which checks whether the shop was right
                return held
            features = np.zeros_like(held.features)
            features[[0, self.place], 0] = LARGE << FEATURE_BITS if prepared.rows.features[0, 0] in self.own else 0
            return replace(held, features=features)

        def leaves(checkpoints: Checkpoints, epoch: int, go_on: bool, state: Any) -> None:
            keep(checkpoints, epoch, go_on, state)
            if epoch == 2 and "/shop-b/" in str(checkpoints.directory):
                raise DataError("it has what it wanted")

        self.own: set[float] = set()
        patch.setattr(data_party, "make_held", chosen)
        patch.setattr(Checkpoints, "keep", leaves)

    def equal(self, project: World, place: int, *overrides: str) -> bool:
        """Return whether the labels of the first row and this one are equal, as the shop reads it."""
        self.place, self.own = place, columns_of(project, "shop-b")
        try:
            project.run(*JOB, *overrides)
        except ScoresOutOfRange:
            return True
        except PolicyRefused:
            raise
        except BlindfitError:
            return False
        raise AssertionError("the shop did not leave")


def columns_of(project: World, name: str) -> set[float]:
    lines = (project.root / f"{name}.csv").read_text().splitlines()
    place = lines[0].replace('"', "").split(",").index("x0")
    return {float(line.split(",")[place]) for line in lines[1:]}


def test_without_the_rule_every_pair_of_labels_is_read(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    attack = Attack(monkeypatch)
    said = [attack.equal(project, place, UNSAFE, f"falcon.l2={place / 1000}") for place in range(1, READ + 1)]
    assert said == [attack.labels[0] == attack.labels[place] for place in range(1, READ + 1)]
    assert len(set(said)) == 2


def test_with_the_rule_every_answer_is_counted_until_there_is_none(
    project: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each job with another name and other options is another question, and costs."""
    attack, answers = Attack(monkeypatch), list[bool]()

    def ask() -> None:
        for place in range(1, ASKED + 1):
            answers.append(attack.equal(project, place, f"falcon.l2={place / 1000}", f'name="job-{place}"'))

    with pytest.raises(PolicyRefused, match="with earlier trainings") as refused:
        ask()
    assert refused.value.party == "bank"
    assert 0 < len(answers) <= sum(label_bits(project)) <= 0.25 * ROWS
