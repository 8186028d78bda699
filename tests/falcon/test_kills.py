"""Any process of a training in shares is killed at any step: it goes on to the same weights, or all stored them."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, PolicyRefused
from blindfit.parties.vertical.checkpoints import CHECK_BEGUN
from tests.falcon.project import REPEATABLE
from tests.vertical.cluster import TIMEOUTS, Cluster, Lost, running
from tests.vertical.victim import Order
from tests.world.vertical import DATA_PARTIES, ROLES, bank_and_shops_in_shares, weights

pytestmark = pytest.mark.timeout(300)  # parties start again after each kill
KILLS, AT_A_TIME = 200, 20  # kills of all parties together, in each backend
SHARES, ENCRYPTED = 'falcon.backend="shares"', 'falcon.backend="threshold"'
# Errors by shares' rounding (test_protocol.py has the bound), and twice that of encrypted weights (test_threshold.py).
CLOSE = {SHARES: 5e-4, ENCRYPTED: 1e-3}
SOME = {
    "bank": Order("send OpenedShares", 20),
    "shop-a": Order("write epoch-3.json"),
    "notary": Order("send Correction", 2),
}


@dataclass(frozen=True)
class Begun:
    """Running parties, and a training that was cut off after an epoch, with the result of an undisturbed run."""

    cluster: Cluster
    backend: str
    resume: str
    weights: dict[str, np.ndarray]

    def loses(self, victim: str, order: Order) -> None:
        self.cluster.restore_checkpoints()
        lost = self.cluster.lose(victim, order, self.resume)
        check(lost)
        self.goes_on_after(lost)

    def goes_on_after(self, lost: Lost) -> None:
        """Check that the training goes on to the same weights, or that a rule explains why not.

        Either every party had stored the weights before the victim was lost, or the victim was in the midst of a check.
        After that nothing goes on, and the same job begins again.
        """
        ended = lost.session.id
        with contextlib.suppress(PolicyRefused):
            ended = self.cluster.train(self.resume)
        if ended == lost.session.id and set(weights(self.cluster, ended)) != set(DATA_PARTIES):
            assert self.in_a_check()
            self.forget_answers()
            ended = self.cluster.train()
        self.same(ended)

    def same(self, session: str) -> None:
        found = weights(self.cluster, session)
        assert set(found) == set(self.weights)
        furthest = max(np.abs(found[name] - self.weights[name]).max() for name in self.weights)
        assert furthest <= CLOSE[self.backend]

    def in_a_check(self) -> bool:
        return any(self.cluster.path("state").glob(f"*/checkpoints/*/{CHECK_BEGUN}"))

    def forget_answers(self) -> None:
        """Remove the answers, so that the same question is trained again."""
        for name in DATA_PARTIES:
            shutil.rmtree(self.cluster.path("state", name, "answers"), ignore_errors=True)


@pytest.fixture(scope="module")
def in_shares(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    with begun(tmp_path_factory.mktemp("kills"), SHARES) as training:
        yield training


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    with begun(tmp_path_factory.mktemp("kills"), ENCRYPTED) as training:
        yield training


@contextlib.contextmanager
def begun(root: Path, backend: str) -> Iterator[Begun]:
    with running(bank_and_shops_in_shares(root, rows=96, epochs=3), (*TIMEOUTS, *REPEATABLE, backend)) as cluster:
        lost = cluster.lose("shop-b", Order("wrote epoch-1.json"))
        check(lost)
        cluster.save_checkpoints()
        resume = f"falcon.resume={lost.session.id}"
        expected = weights(cluster, cluster.train(resume))
        assert set(expected) == set(DATA_PARTIES)
        yield Begun(cluster, backend, resume, expected)


def check(lost: Lost) -> None:
    """Check that every party that did not finish reports which party was lost."""
    assert lost.exit_code == -signal.SIGKILL
    assert isinstance(lost.error, BlindfitError)
    assert f"cannot reach {lost.victim} at localhost:" in str(lost.error)
    for name, error in lost.session.ends.items():
        if name != lost.victim and error is not None:
            assert f"cannot reach {lost.victim} at localhost:" in str(error), f"{name}: {error}"


@pytest.mark.parametrize("victim", SOME)
def test_lost_in_training(in_shares: Begun, victim: str) -> None:
    in_shares.loses(victim, SOME[victim])


def test_lost_with_encrypted_weights(encrypted: Begun) -> None:
    encrypted.loses("shop-a", Order("send MaskedSums", 2))


@pytest.mark.soak
@pytest.mark.timeout(36000)
@pytest.mark.parametrize("first", range(0, KILLS, AT_A_TIME))
def test_kills_at_random(in_shares: Begun, first: int) -> None:
    kills_at_random(in_shares, first)


@pytest.mark.soak
@pytest.mark.timeout(36000)
@pytest.mark.parametrize("first", range(0, KILLS, AT_A_TIME))
def test_kills_at_random_with_encrypted_weights(encrypted: Begun, first: int) -> None:
    kills_at_random(encrypted, first)


def kills_at_random(begun: Begun, first: int) -> None:
    """Kill processes at random: a quarter in a training that begins, the rest in a resumed one.

    Half of the kills come up to 50 ms after a point.
    """
    cluster, draw = begun.cluster, random.Random(f"{begun.backend} {first}")
    begun.forget_answers()
    fresh_points = cluster.points()
    cluster.restore_checkpoints()
    later_points = cluster.points(begun.resume)
    for kill in range(AT_A_TIME):
        victim, fresh = draw.choice(list(ROLES)), kill % 4 == 0
        points = (fresh_points if fresh else later_points)[victim]
        order = Order("", draw.randint(1, len(points)), draw.choice([0.0, 0.05 * draw.random()]))
        begun.forget_answers()
        cluster.restore_checkpoints()
        lost = cluster.lose(victim, order, *([] if fresh else [begun.resume]))
        if lost.error is not None:  # otherwise the signal came when the job was done
            check(lost)
        if fresh:
            begun.same(cluster.train())
        else:
            begun.goes_on_after(lost)
