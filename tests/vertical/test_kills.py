"""Any process is killed at any step: the others name it and the reason, and the training goes on to the
same weights.
"""

from __future__ import annotations

import contextlib
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, PolicyRefused
from tests.vertical.cluster import Cluster, Lost, running
from tests.vertical.victim import Order
from tests.world.vertical import DATA_PARTIES, ROLES, bank_and_shops, weights

pytestmark = pytest.mark.timeout(300)  # parties start again after each kill
DEADLINE_S = 10.0  # a cut may last two seconds, the report of an abort two more
STOP_S = 5.0
KILLS, AT_A_TIME = 200, 20  # kills of each party

# Without jitter, noise, a hold-out or a second batch, weights do not depend on the secret order of the rows.
REPEATABLE = (
    "taylor.jitter=0",
    "taylor.gradient_noise=0",
    'taylor.unsafe=["no-jitter", "no-gradient-noise"]',
    "taylor.validation_fraction=0",
    "taylor.batch_rows=1000",
    "taylor.epochs=2",
    "split.test_fraction=0",
)
ALIGNMENT = {"bank": "receive SetSizes", "shop-a": "send BlindedPoints", "notary": "send CommonRows"}
LATER = {
    "bank": [Order("send PartialLoss", 2), Order("write model.json")],
    "shop-a": [Order("send ChainedResiduals", 4), Order("wrote model.json")],
    "notary": [Order("send Verdict", 2), Order("send Stored", 2)],
}


ALLOWED = "taylor.unsafe=['label-bits']"  # another layout of small batches on the same snapshot


@dataclass(frozen=True)
class Begun:
    """Running parties, and a training that was cut off just after its begin, with the result of an undisturbed run."""

    cluster: Cluster
    resume: str
    undisturbed: str  # session of the undisturbed training
    weights: dict[str, np.ndarray]

    def goes_on_after(self, lost: Lost) -> None:
        """Check that the weights are those of the undisturbed training, or that every party had stored
        its own before.
        """
        ended = lost.session.id
        with contextlib.suppress(PolicyRefused):
            ended = self.cluster.train(self.resume)
        same(weights(self.cluster, ended), self.weights)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    with running(bank_and_shops(tmp_path_factory.mktemp("kills"), rows=96)) as cluster:
        lost = cluster.lose("shop-b", Order("receive HoldOutLabels"))
        check(lost)
        cluster.save_checkpoints()
        resume = f"taylor.resume={lost.session.id}"
        undisturbed = cluster.train(resume)
        expected = weights(cluster, undisturbed)
        assert set(expected) == set(DATA_PARTIES)
        yield Begun(cluster, resume, undisturbed, expected)


def same(weights: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(weights) == set(expected)
    assert max(np.abs(weights[name] - expected[name]).max() for name in expected) <= 1e-9


def check(lost: Lost) -> None:
    """Check that every party that did not finish reports which party was lost, and why."""
    assert lost.exit_code == -signal.SIGKILL
    assert isinstance(lost.error, BlindfitError)
    assert f"cannot reach {lost.victim} at localhost:" in str(lost.error)
    for name, error in lost.session.ends.items():
        if name != lost.victim and error is not None:
            assert isinstance(error, BlindfitError)
            assert f"cannot reach {lost.victim} at localhost:" in str(error), f"{name}: {error}"


# --- some of each role -----------------------------------------------------------------------------------


def test_lost_while_rows_are_aligned(begun: Begun) -> None:
    """The job cannot be resumed yet: the same job begins again."""
    expected = weights(begun.cluster, begun.cluster.train(*REPEATABLE))
    for victim, label in ALIGNMENT.items():
        lost = begun.cluster.lose(victim, Order(label), *REPEATABLE)
        check(lost)
        assert not weights(begun.cluster, lost.session.id)
    same(weights(begun.cluster, begun.cluster.train(*REPEATABLE)), expected)


@pytest.mark.parametrize("victim", LATER)
def test_lost_in_training_and_lost_again_when_it_is_stored(begun: Begun, victim: str) -> None:
    begun.cluster.restore_checkpoints()
    for order in LATER[victim]:
        lost = begun.cluster.lose(victim, order, begun.resume)
        check(lost)
    begun.goes_on_after(lost)


def terminated(begun: Begun, victim: str) -> Lost:
    begun.cluster.restore_checkpoints()
    label = "receive NoisyGradient" if victim != "notary" else "receive MaskedGradient"
    return begun.cluster.lose(victim, Order(label, 2, signal=signal.SIGTERM), begun.resume)


@pytest.mark.parametrize("victim", ALIGNMENT)
def test_sigterm_ends_a_party_in_the_middle_of_a_training(begun: Begun, victim: str) -> None:
    lost = terminated(begun, victim)
    assert lost.exit_code == 0
    assert victim in str(lost.error)
    assert all(error is not None for error in lost.session.ends.values())


def test_lost_in_a_training_on_linked_rows(begun: Begun) -> None:
    """The encrypted mask is kept too; the rows of the third party do not matter."""
    cluster, job = begun.cluster, {"job": "linkage.toml"}
    cluster.restore_checkpoints()
    lost = cluster.lose("shop-a", Order("send MaskedGradient"), ALLOWED, **job)
    check(lost)
    resume = f"taylor.resume={lost.session.id}"
    cluster.save_checkpoints("linked")
    expected = weights(cluster, cluster.train(resume, ALLOWED, **job))
    assert set(expected) == {"bank", "shop-a"}
    cluster.restore_checkpoints("linked")
    check(cluster.lose("notary", Order("send Verdict", 2), resume, ALLOWED, **job))
    same(weights(cluster, cluster.train(resume, ALLOWED, **job)), expected)


# --- prediction ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("victim", "label"), [("shop-a", "send MaskedScores"), ("bank", "write scores.csv")])
def test_lost_while_new_rows_are_scored(begun: Begun, victim: str, label: str) -> None:
    cluster = begun.cluster
    job = {"job": "predict.toml"}
    model = f"predict.session={begun.undisturbed}"
    check(cluster.lose(victim, Order(label), model, **job))
    predictions = cluster.path("state", "bank", "predictions")
    assert not list(predictions.glob("*/*scores*"))
    scored = cluster.train(model, **job)
    assert len((predictions / scored / "scores.csv").read_text().splitlines()) == 97
    (predictions / scored / "scores.csv").unlink()


# --- the full figures, and seconds, on a machine that has nothing else to do -----------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("victim", ALIGNMENT)
def test_sigterm_ends_a_party_within_5_seconds(begun: Begun, victim: str) -> None:
    assert terminated(begun, victim).stopped_s < STOP_S


@pytest.mark.soak
@pytest.mark.timeout(36000)
@pytest.mark.parametrize("first", range(0, KILLS, AT_A_TIME))
@pytest.mark.parametrize("victim", ROLES)
def test_kills_at_random(begun: Begun, victim: str, first: int) -> None:
    """A quarter of each party's kills come before there is anything to resume, the rest at any later point.

    Half of them come up to 50 ms later, in the middle of what was computed then."""
    cluster, draw = begun.cluster, random.Random(f"{victim} {first}")
    expected = weights(cluster, cluster.train(*REPEATABLE))
    before = cluster.points(*REPEATABLE)[victim]
    before = before[: before.index("write base.json")]
    cluster.restore_checkpoints()
    later = cluster.points(begun.resume)[victim]
    for kill in range(AT_A_TIME):
        fresh = kill % 4 == 0
        order = Order("", draw.randint(1, len(before if fresh else later)), draw.choice([0.0, 0.05 * draw.random()]))
        cluster.restore_checkpoints()
        lost = cluster.lose(victim, order, *(REPEATABLE if fresh else [begun.resume]))
        if lost.error is not None:  # otherwise the signal came when the job was done
            check(lost)
            assert lost.took_s < DEADLINE_S
        if fresh:
            same(weights(cluster, cluster.train(*REPEATABLE)), expected)
        else:
            begun.goes_on_after(lost)
