"""No uncharged answer depends on a label: a refusal without a charge comes before any estimate of a prior."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import (
    BlindfitError,
    BudgetExhausted,
    CannotAnswer,
    ComputeFailed,
    ConfigError,
    PolicyRefused,
)
from blindfit.algorithms.privacy.charges import Charges
from blindfit.algorithms.privacy.label_mechanisms import MechanismSettings, Prior, fitting, make_mechanism
from blindfit.algorithms.privacy.ledger import Budget, Receipt, verify_chain
from blindfit.algorithms.protocols.label_dp.messages import FittedRelease
from blindfit.algorithms.protocols.label_dp.release import RollCall
from blindfit.parties.measurement import release_labels
from blindfit.parties.measurement.charging import ApprovedJob
from blindfit.parties.measurement.release_labels import LOST, NOT_MADE, LabelReleases, LabelsDesk
from blindfit.parties.settings import PolicySettings
from blindfit.parties.store.database import Writes
from tests.fork_server import forks
from tests.hints.following import refused
from tests.measurement.house import House
from tests.measurement.serving import serving
from tests.release_labels import dying
from tests.release_labels.asking import ask, authority
from tests.release_labels.dying import RP, STEPS
from tests.release_labels.house import GRID, LAPLACE, NAMES, WIDE, Counter, make_labels

__all__ = ["authority"]  # a fixture

OpenCounter = Callable[..., Counter]
ASKED, TRIES = [f"r{i}" for i in range(120)], 3
POLICY = PolicySettings(min_rows=100, max_epsilon=1.0)


@pytest.fixture
def estimates(monkeypatch: pytest.MonkeyPatch) -> list[Prior]:
    """All priors as they are estimated."""
    made: list[Prior] = []
    estimate = fitting.estimate_prior

    def noting(*asked: Any) -> Prior:
        made.append(estimate(*asked))
        return made[-1]

    monkeypatch.setattr(fitting, "estimate_prior", noting)
    return made


# --- too few rows that count ----------------------------------------------------------------------------

NEARLY_ALL_FOR_THE_PRIOR = MechanismSettings(
    "rp-banded", GRID, 1.0, half_width=1.0, epsilon_prior=0.95, prior_mechanism="histogram", cell_width=10 / 64
)
SPREAD, EQUAL = [10 * i / 400 for i in range(400)], [0.8] * 400


def of_persons(directory: Path, open_counter: OpenCounter, labels: list[float]) -> Counter:
    """Return a house where 60 of 120 requested rows count: one of each person."""
    table = {f"r{i}": label for i, label in enumerate(labels)}
    dataset = make_labels(directory, table, [f"p{i // 2}" for i in range(400)], max_rows_per_person=1)
    return open_counter(datasets={"prices": dataset}, policy=POLICY)


class FitsFirst(LabelsDesk):
    """A desk without the defence: it counts rows after it made a mechanism, and reports a fit that fails."""

    def release(self, roll: RollCall) -> FittedRelease:
        if self._releases._fit_to_labels(roll.request, self._dataset) is None:
            self._charging.refuse("mechanism", NOT_MADE)
        return super().release(roll)


def fails_where_labels_are_equal(settings: MechanismSettings, epsilon: float, prior: Prior | None) -> Any:
    """Make a mechanism, or fail: here the outcome depends on the prior in the plainest way."""
    assert prior is not None
    if np.max(prior.masses) > 0.3 * np.sum(prior.masses):
        raise ComputeFailed(backend="fit", reason="it took too long")
    return make_mechanism(settings, epsilon, prior)


def told(counter: Counter, make_desk: type[LabelsDesk]) -> set[type[BlindfitError]]:
    """Return the errors of a server whose mechanisms are made as above."""
    errors = set()
    for number in range(TRIES):
        request = counter.request(ASKED, NEARLY_ALL_FOR_THE_PRIOR, release=str(number))
        with pytest.raises(BlindfitError) as caught:
            counter.send(ASKED, request, make_desk=make_desk)
        errors.add(type(caught.value))
    assert counter.charges == 0
    return errors


@pytest.mark.parametrize("labels", [SPREAD, EQUAL], ids=["spread", "equal"])
def test_too_few_rows_that_count_are_refused_before_a_prior_is_estimated(
    tmp_path: Path,
    open_counter: OpenCounter,
    estimates: list[Prior],
    monkeypatch: pytest.MonkeyPatch,
    labels: list[float],
) -> None:
    """200 labels count, in 64 cells with noise of 2/0.95: the fullest cell has 200 of them, or 4."""
    counter = of_persons(tmp_path, open_counter, labels)
    monkeypatch.setattr(counter.releases, "_make_mechanism", fails_where_labels_are_equal)
    assert told(counter, LabelsDesk) == {CannotAnswer}
    assert estimates == []
    assert counter.house.spent() == 0
    seen = told(counter, FitsFirst)  # the distribution of labels is read, and nothing is paid
    assert seen == {PolicyRefused if labels is EQUAL else CannotAnswer}
    assert len(estimates) == TRIES


async def test_nothing_is_estimated_for_refusals_of_a_real_server(
    tmp_path: Path, open_counter: OpenCounter, authority: Path, estimates: list[Prior]
) -> None:
    counter = of_persons(tmp_path, open_counter, SPREAD)
    async with serving(counter.house, authority) as world:
        for number in range(TRIES):
            with pytest.raises(CannotAnswer):
                await ask(world, ASKED, NEARLY_ALL_FOR_THE_PRIOR, release=str(number))
        assert (counter.charges, estimates) == (0, [])
        every = [f"r{i}" for i in range(400)]
        assert (await ask(world, every, NEARLY_ALL_FOR_THE_PRIOR)).kept.sum() == 200
        assert (counter.charges, len(estimates)) == (1, 1)
        for _ in range(TRIES):  # the refusal stays after rows were released
            with pytest.raises(CannotAnswer):
                await ask(world, ASKED, NEARLY_ALL_FOR_THE_PRIOR)
        assert (counter.charges, len(estimates)) == (1, 1)


# --- one charge, before anything ------------------------------------------------------------------------


def test_the_charge_is_on_the_disk_when_a_prior_is_estimated(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    estimate, charged, answered = fitting.estimate_prior, [], []

    def looking(*asked: Any) -> Prior:
        with sqlite3.connect(counter.house.database) as other:  # sees only what is on the disk
            charged.extend(other.execute("SELECT position FROM ledger").fetchall())
            answered.extend(other.execute("SELECT request_id FROM answers").fetchall())
        return estimate(*asked)

    monkeypatch.setattr(fitting, "estimate_prior", looking)
    counter.ask(settings=RP)
    assert charged == [(1,)]
    assert answered == [(counter.request(settings=RP).request_id,)]


@pytest.fixture
def both_at_once(monkeypatch: pytest.MonkeyPatch) -> threading.Barrier:
    """Two releases of one active party have passed every check before either is charged."""
    both, release = threading.Barrier(2), LabelReleases._make

    def together(*asked: Any) -> None:
        both.wait(60)
        release(*asked)

    monkeypatch.setattr(LabelReleases, "_make", together)
    return both


async def test_the_slower_of_two_that_take_the_rest_estimates_nothing(
    open_counter: OpenCounter, authority: Path, estimates: list[Prior], both_at_once: threading.Barrier
) -> None:
    counter = open_counter(budget=Budget(1.5, 1e-6))
    async with serving(counter.house, authority) as world:
        asked = [ask(world, settings=RP, release=name) for name in ("one", "other")]
        results = await asyncio.gather(*asked, return_exceptions=True)
    assert not both_at_once.broken
    assert sorted(type(result).__name__ for result in results) == ["BudgetExhausted", "ReleasedLabels"]
    assert (counter.charges, len(estimates)) == (1, 1)


async def test_an_approved_job_has_one_estimate(
    open_counter: OpenCounter, authority: Path, estimates: list[Prior], both_at_once: threading.Barrier
) -> None:
    policy = PolicySettings(min_rows=1, max_epsilon=50.0, approve="ask")
    counter = open_counter(policy=policy, approved_job=lambda *_: ApprovedJob("prices", 1.0, 1e-6))
    async with serving(counter.house, authority) as world:
        asked = [ask(world, settings=RP, release=name, session="job-1") for name in ("one", "other")]
        results = await asyncio.gather(*asked, return_exceptions=True)
    assert not both_at_once.broken
    assert sorted(type(result).__name__ for result in results) == ["PolicyRefused", "ReleasedLabels"]
    assert (counter.charges, len(estimates)) == (1, 1)


# --- between charge and answer ----------------------------------------------------------------------------


def refused_as_lost(counter: Counter, **asked: Any) -> None:
    with refused("never drawn again: set privacy.release to another name for new noise, which is charged") as told:
        counter.ask(**asked)
    assert f"release: {LOST}" in told.text


def forked(work: Callable[..., None], *arguments: Any) -> Any:
    process = forks.Process(target=work, args=arguments, daemon=False)
    process.start()
    return process


@pytest.mark.parametrize("where", STEPS)
def test_one_that_is_killed_is_charged_once_and_never_drawn_again(
    tmp_path: Path, estimates: list[Prior], where: str
) -> None:
    settings, process = STEPS[where][0], forked(dying.dies, tmp_path, where)
    process.join(60)
    assert process.exitcode == -9
    counter = Counter(House(tmp_path, {"prices": make_labels(tmp_path)}, dying.BUDGET))
    try:
        for consumer in ("shop", "bank"):
            for ids in (NAMES, NAMES[:7]):
                refused_as_lost(counter, ids=ids, settings=settings, consumer=consumer)
                assert counter.sent == ["LabelsOpen"]  # before any id
        assert (counter.charges, estimates) == (1, [])
        assert list((tmp_path / "label_releases").glob("release-*")) == []
        verify_chain(counter.house.entries)
        other = counter.ask(settings=settings, release="another")
        receipt = Receipt.from_statement(other.release.receipt)  # proves what was lost, too
        assert (receipt.position, receipt.charges) == (2, Charges(((other.release.event, 2),)))
        counter.restart()
        refused_as_lost(counter, settings=settings)
        assert counter.ask(settings=settings, release="another").steps.tolist() == other.steps.tolist()
        assert (counter.charges, len(estimates)) == (2, int(settings is RP))
    finally:
        counter.house.close()


def test_the_same_that_lost_a_race_to_a_process_that_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release was admitted when no process had made it, then charged in vain: the other process's
    draw is not repeated.
    """
    counter, charge = Counter(House(tmp_path, {"prices": make_labels(tmp_path)}, dying.BUDGET)), LabelReleases._charge

    def charge_late(*asked: Any) -> Any:
        process = forked(dying.dies, tmp_path, "remembers")
        process.join(60)
        assert process.exitcode == -9
        return charge(*asked)

    monkeypatch.setattr(LabelReleases, "_charge", charge_late)
    refused_as_lost(counter)
    assert counter.charges == 1
    counter.house.close()


def test_who_waits_for_one_that_is_killed_is_told_that_it_is_lost(
    tmp_path: Path, estimates: list[Prior], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = forked(dying.hangs, tmp_path, "draws")
    dataset, waits, lock = make_labels(tmp_path / "own"), threading.Event(), release_labels._lock
    while not (tmp_path / "hangs").exists():
        assert process.exitcode is None
        process.join(0.01)

    def noticed(directory: Path, how: int) -> Any:
        waits.set()
        return lock(directory, how)

    counter = Counter(House(tmp_path, {"prices": dataset}, dying.BUDGET))
    monkeypatch.setattr(release_labels, "_lock", noticed)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(refused_as_lost, counter)
        try:
            assert waits.wait(60)
            assert not waiting.done()
        finally:
            process.kill()
        waiting.result(60)
    assert (counter.charges, estimates) == (1, [])
    counter.house.close()


def test_who_asks_for_one_that_is_under_way_waits_and_gets_the_same(
    tmp_path: Path, open_counter: OpenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds for any active party, even if nothing is left of the budget."""
    counter = open_counter(budget=Budget(1.0, 1e-6))
    begun, waits, ends = (threading.Event() for _ in range(3))
    freeze, ended = release_labels.freeze, LabelReleases._wait_for_end

    def slow(*asked: Any) -> str:
        begun.set()
        assert ends.wait(60)
        return freeze(*asked)

    def noticed(*asked: Any) -> Any:
        waits.set()
        return ended(*asked)

    monkeypatch.setattr(release_labels, "freeze", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(counter.ask)
        assert begun.wait(60)
        monkeypatch.setattr(LabelReleases, "_wait_for_end", noticed)
        other = pool.submit(Counter(counter.house).ask, NAMES[::-1], consumer="bank")
        try:
            assert waits.wait(60)
            with pytest.raises(BudgetExhausted):
                counter.ask(release="another")
            assert not other.done()
        finally:
            ends.set()
        assert other.result(60).steps.tolist() == first.result(60).steps.tolist()[::-1]
        assert other.result().release == first.result().release
    assert counter.charges == 1


def full(*_: Any) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def no_room(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def no_working_files(*_: Any) -> None:
    raise ConfigError("the directory has no space for 8 bytes of working files")


@pytest.mark.parametrize(
    ("place", "name", "fails"),
    [
        (release_labels, "freeze", no_room),
        (release_labels, "freeze", no_working_files),
        (Writes, "end_label_release", full),
    ],
)
def test_a_disk_that_is_full_after_the_charge(
    counter: Counter, monkeypatch: pytest.MonkeyPatch, place: Any, name: str, fails: Callable[..., None]
) -> None:
    """No message claims that nothing was charged, and the operator gets the reason."""
    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr(place, name, fails)
        refused_as_lost(counter)
    (line,) = [line for line in logs if line["log_level"] == "error"]
    assert (line["event"], line["dataset"]) == ("a release was charged and is lost", "prices")
    assert counter.charges == 1
    refused_as_lost(counter)
    counter.ask(release="second")
    assert counter.charges == 2


@pytest.mark.parametrize("settings", [LAPLACE, RP], ids=["laplace", "rp"])
def test_a_snapshot_that_is_removed_while_its_labels_are_released(
    counter: Counter, monkeypatch: pytest.MonkeyPatch, settings: MechanismSettings
) -> None:
    """The command `blindfit snapshot --remove-older` removes it: open files are read to their end, charged labels are
    made.
    """
    charge, directory = LabelReleases._charge, counter.house.service.datasets["prices"].index.directory

    def removed(releases: LabelReleases, *asked: Any) -> Any:
        charged = charge(releases, *asked)
        shutil.rmtree(directory)
        return charged

    monkeypatch.setattr(LabelReleases, "_charge", removed)
    first = counter.ask(settings=settings)
    assert counter.charges == 1
    assert not directory.exists()
    assert counter.ask(settings=settings).steps.tolist() == first.steps.tolist()


def test_a_disk_that_is_full_before_the_charge(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Writes, "add_label_release", full)
        with pytest.raises(BlindfitError, match="this step released nothing and charged nothing"):
            counter.ask()
    assert counter.charges == 0
    counter.ask()
    assert counter.charges == 1


def test_what_fails_without_a_label_costs_nothing(open_counter: OpenCounter, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit that does not use an estimate comes before the charge."""
    counter = open_counter(budget=WIDE)

    def fails(*_: Any) -> Any:
        raise ComputeFailed(backend="fit", reason="it took too long")

    monkeypatch.setattr(counter.releases, "_make_mechanism", fails)
    with pytest.raises(PolicyRefused, match="it took too long"):
        counter.ask(settings=LAPLACE)
    assert counter.charges == 0
    with pytest.raises(PolicyRefused, match="the estimate was charged"):
        counter.ask(settings=RP)
    assert counter.charges == 1
