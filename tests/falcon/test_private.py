"""Falcon jobs under differential privacy, between real nodes: charges, their time, place and number."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import (
    BlindfitError,
    BudgetExhausted,
    CannotTakePart,
    ConfigError,
    DataError,
    LedgerBehind,
)
from blindfit.algorithms.privacy.accountant import composed_epsilon
from blindfit.algorithms.privacy.events import WHOLE_ROWS, ReleaseEvent
from blindfit.algorithms.protocols.falcon import program, seats
from blindfit.coordinator.job.job import load_job
from blindfit.parties.falcon import data_party
from blindfit.parties.falcon.draws import Draws
from blindfit.parties.falcon.privacy import check_dataset
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store
from blindfit.parties.systems import load_party
from tests.falcon.private import PRIVATE, charged, charges, make
from tests.falcon.project import Begun, table
from tests.world import World
from tests.world.vertical import DATA_PARTIES, weights

RECEIPTS = "receipts"
ONCE, TWICE = dict.fromkeys(DATA_PARTIES, 1), dict.fromkeys(DATA_PARTIES, 2)


@pytest.fixture
def project(tmp_path: Path) -> World:
    return make(tmp_path)


def begun(root: Path, train: Callable[[World], str]) -> Begun:
    """Begin for a coordinator that keeps the receipts in the same folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(root / RECEIPTS))
        return Begun.by(root, train, make)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Begun, list[tuple[str, int]]]:
    """The job has run once; the list has each party that sent inputs, and how many charges its ledger had then."""
    tell, seen = seats.DataSeat._tell, []
    root = tmp_path_factory.mktemp("trained")

    async def noted(self: Any, values: Any) -> None:
        seen.append((self.me, charges(root)[self.me]))
        await tell(self, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seats.DataSeat, "_tell", noted)
        return begun(root, lambda project: project.run(*PRIVATE).id), seen


@pytest.fixture(scope="module")
def trained(watched: tuple[Begun, list[tuple[str, int]]]) -> Begun:
    return watched[0]


@pytest.fixture(scope="module")
def unopened(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """The job was lost before anything was opened."""
    return begun(tmp_path_factory.mktemp("unopened"), lambda project: lose(project, program, "_open_weights"))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """The job was lost once its weights had been opened."""
    return begun(tmp_path_factory.mktemp("opened"), lambda project: lose(project, data_party, "write_part"))


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Begun], World]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / RECEIPTS))
    return lambda begun: begun.copied(tmp_path)


@pytest.fixture
def again(trained: Begun, copied: Callable[[Begun], World]) -> World:
    """The project after the job has run once."""
    return copied(trained)


def lost(*_: Any) -> None:
    raise DataError("the disk is gone")


def lose(project: World, where: object, what: str, *overrides: str) -> str:
    """Interrupt a training there, and return its session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, what, lost)
        with pytest.raises(BlindfitError):
            project.run(*PRIVATE, *overrides)
    folders = sorted((project.root / "state/bank/checkpoints").iterdir(), key=lambda path: path.stat().st_mtime)
    return folders[-1].name


# --- what is charged ------------------------------------------------------------------------------------------------


def test_every_data_party_is_charged_for_whole_rows_as_promised(trained: Begun) -> None:
    for name, entries in charged(trained.root).items():
        (entry,) = entries
        event = ReleaseEvent.from_canonical(entry.event)
        assert event.neighbours == WHOLE_ROWS["replace-one"]
        assert composed_epsilon([event], 1e-5) == pytest.approx(1.0, rel=1e-9)
        told: Any = World(trained.root).written(name, trained.session, "report.json")
        assert (told["privacy"]["epsilon"], told["privacy"]["spent_epsilon"]) == (1.0, pytest.approx(1.0))
        assert told["evaluation"] is None
        assert told["weights"] == {"opened_bits": None, "label_bits": None}


def test_nothing_is_put_in_before_this_partys_charge_is_on_the_disk(
    watched: tuple[Begun, list[tuple[str, int]]],
) -> None:
    seen = watched[1]
    assert {name for name, _ in seen} == set(DATA_PARTIES)
    assert {count for _, count in seen} == {1}


def test_the_same_question_has_the_same_answer_and_costs_nothing(trained: Begun, again: World) -> None:
    other = again.run(*PRIVATE, 'name="another-name"')
    assert charges(again.root) == ONCE
    for name in DATA_PARTIES:
        assert np.array_equal(weights(again, trained.session)[name], weights(again, other.id)[name])


@pytest.mark.parametrize("another", ["privacy.epsilon=0.5", 'privacy.release="second"', "falcon.epochs=3"])
def test_another_question_is_charged(again: World, another: str) -> None:
    assert charges(again.root) == ONCE
    again.run(*PRIVATE, another)
    assert charges(again.root) == TWICE


def test_another_snapshot_is_charged_at_all(trained: Begun, again: World) -> None:
    """Only one party publishes, and its rows have not changed: nobody else can know."""
    again.publish("shop-a")
    second = again.run(*PRIVATE)
    assert charges(again.root) == TWICE
    assert not np.array_equal(weights(again, trained.session)["bank"], weights(again, second.id)["bank"])


# --- lost trainings -------------------------------------------------------------------------------------------------


def test_a_training_that_opened_nothing_has_paid_for_the_next_one(
    unopened: Begun, copied: Callable[[Begun], World]
) -> None:
    """The training may be resumed or not, and its name may change: nobody saw the noise that was drawn."""
    project = copied(unopened)
    assert charges(project.root) == ONCE
    project.run(*PRIVATE, 'name="another-name"')
    assert charges(project.root) == ONCE
    project.run(*PRIVATE, f'falcon.resume="{unopened.session}"')  # the opening uses another draw
    assert charges(project.root) == TWICE


def test_a_resumed_training_has_paid_where_nothing_was_opened(
    unopened: Begun, copied: Callable[[Begun], World]
) -> None:
    project = copied(unopened)
    project.run(*PRIVATE, f'falcon.resume="{unopened.session}"')
    assert charges(project.root) == ONCE


@pytest.mark.parametrize("resumes", [False, True])
def test_weights_that_were_opened_and_lost_are_charged_again(
    opened: Begun, copied: Callable[[Begun], World], resumes: bool
) -> None:
    project = copied(opened)
    assert charges(project.root) == ONCE
    project.run(*PRIVATE, *([f'falcon.resume="{opened.session}"'] if resumes else []))
    assert charges(project.root) == TWICE


def test_two_sessions_of_a_question_at_once_open_two_draws_for_two_charges(
    project: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Draws.open

    def overtaken(self: Draws) -> None:
        real(self)
        real(self)

    monkeypatch.setattr(Draws, "open", overtaken)
    project.run(*PRIVATE)
    assert charges(project.root) == TWICE


def test_who_cannot_pay_for_a_second_opening_opens_nothing(opened: Begun, copied: Callable[[Begun], World]) -> None:
    project = copied(opened)
    project.set("populations.people.epsilon", 1.2, "shop-b")
    with pytest.raises(BudgetExhausted) as refused:
        project.run(*PRIVATE)
    assert refused.value.population == "people"
    assert charges(project.root) == ONCE


# --- what is refused ------------------------------------------------------------------------------------------------


def test_a_budget_that_is_short_anywhere_ends_the_job_before_anybody_is_charged(project: World) -> None:
    project.set("populations.people.epsilon", 0.5, "shop-b")
    with pytest.raises(BudgetExhausted, match="people") as refused:
        project.run(*PRIVATE)
    assert "\n" not in str(refused.value)
    assert charges(project.root) == dict.fromkeys(DATA_PARTIES, 0)


def test_a_budget_that_an_earlier_job_has_spent_anywhere_ends_another_one_before_anybody_is_charged(
    again: World,
) -> None:
    """The proposal may be a repeat, which is free: only its draws show that it is another question."""
    spent = charges(again.root)
    with again.store("shop-b") as store:
        budget = sum(entry.epsilon for entry in store.reader().ledger("people"))
    again.set("populations.people.epsilon", budget, "shop-b")
    with pytest.raises(BudgetExhausted, match="people"):
        again.run(*PRIVATE, "falcon.l2=0.02")
    assert charges(again.root) == spent


def test_a_ledger_that_was_restored_refunds_nothing(again: World) -> None:
    for path in (again.root / "state/bank").glob("party.sqlite*"):
        path.unlink()
    with pytest.raises(ConfigError, match="the database was lost or is an older one"):
        again.run(*PRIVATE)
    done = again.blindfit("ledger", "bank.toml", "--acknowledge", "the disk was lost")
    assert done.returncode == 0, done.stderr
    with pytest.raises(LedgerBehind):
        again.run(*PRIVATE)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("split.test_fraction=0.2", "split.test_fraction: with privacy.epsilon no figure of test rows is opened"),
        ("falcon.validation_fraction=0.1", "falcon.validation_fraction: with privacy.epsilon no loss is opened"),
        ('falcon.unsafe=["weight-bits"]', "falcon.unsafe: weight-bits does nothing with privacy.epsilon"),
        ("falcon.threshold=0.4", "falcon.threshold does nothing with privacy.epsilon"),
        ("falcon.feature_bounds=[]", "falcon.feature_bounds is missing"),
        ('falcon.feature_bounds=["age"]', "falcon.feature_bounds: 'age' is not of the form"),
        ('privacy.mechanism="classic"\nprivacy.epsilon=0.5', "privacy.mechanism does nothing in a falcon job"),
        ("privacy.max_rows_per_person=2", "privacy.max_rows_per_person does nothing in a falcon job"),
    ],
)
def test_what_privacy_does_not_go_with(project: World, override: str, said: str) -> None:
    with pytest.raises(BlindfitError, match=said):
        load_job(project.root / "job.toml", [*PRIVATE, *override.split("\n")])


@pytest.mark.parametrize("option", ["falcon.norm_bound=0.5", 'falcon.feature_bounds=["*:-1:1"]'])
def test_its_options_do_nothing_without_it(project: World, option: str) -> None:
    with pytest.raises(BlindfitError, match=r"does nothing without privacy\.epsilon"):
        load_job(project.root / "job.toml", [option])


def check_dataset_of(project: World, name: str, *options: str) -> None:
    """Check the snapshot as the party does."""
    settings, job = load_party(project.root / f"{name}.toml"), load_job(project.root / "job.toml", list(options))
    with contextlib.closing(Store.of(settings, project.root)) as store:
        source = Snapshots(settings, project.root, store).publish("rows", other_people=True).source()
    check_dataset(job.parameters, source, settings.datasets["rows"])


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("population", None, "population is missing"),
        ("missing", "mean", 'missing = "mean": one row would then change others'),
        ("person", "x0", "a falcon job with privacy.epsilon protects rows"),
    ],
)
def test_datasets_that_would_let_rows_move_each_other(
    project: World, option: str, value: str | None, said: str
) -> None:
    check_dataset_of(project, "shop-a", *PRIVATE)
    project.set(f"datasets.rows.{option}", value, "shop-a")
    if option == "population":
        project.set("populations", None, "shop-a")
    with pytest.raises(ConfigError, match=said):
        check_dataset_of(project, "shop-a", *PRIVATE)


def test_levels_are_declared_by_whoever_promises_something_about_rows(project: World) -> None:
    rows = len(project.table("shop-a")["id"])
    project.columns("shop-a", ward=[("north", "south")[i % 2] for i in range(rows)])
    project.set("datasets.rows.categories", ["ward"], "shop-a")
    with pytest.raises(ConfigError, match=r"datasets\.rows\.categories: levels from the rows"):
        check_dataset_of(project, "shop-a", *PRIVATE)
    project.set("datasets.rows.categories", {"ward": ["north"]}, "shop-a")
    check_dataset_of(project, "shop-a", *PRIVATE)


def test_a_column_without_bounds_is_refused(project: World) -> None:
    bounds = 'falcon.feature_bounds=["x0:-4:4", "x1:-4:4"]'
    with pytest.raises(ConfigError, match=r"falcon\.feature_bounds: x2 has no bounds"):
        check_dataset_of(project, "shop-a", *PRIVATE, bounds)
    with pytest.raises(CannotTakePart):
        project.run(*PRIVATE, bounds)


# --- the model ------------------------------------------------------------------------------------------------------


def test_with_little_noise_it_is_the_model_of_the_bounded_rows(project: World) -> None:
    """Scaled by the bounds, not by the rows, and clipped with the intercept."""
    given = [option for option in PRIVATE if "epsilon" not in option]
    nodes = World(project.root, ["policy.max_epsilon=50"])
    project.set("populations.people.epsilon", 60.0, *DATA_PARTIES)
    session = nodes.run(*given, "privacy.epsilon=50", "falcon.security=malicious", "falcon.norm_bound=0.5")
    found, expected = weights(project, session.id), plain_descent(project.root, epochs=2)
    fit: Any = project.written("bank", session.id, "report.json")["fit"]
    std = fit["weight_noise_std"]
    assert 0.001 < std < 0.02
    assert np.abs(np.concatenate([found[name] for name in DATA_PARTIES]) - expected).max() < 6 * std
    part = project.written("bank", session)
    assert part["row_bound"] == 4096  # 0.5 times the root of three columns and the intercept, in steps of 2^-12
    assert part["standardiser"]["mean"]["x0"] == 0.0
    assert part["standardiser"]["std"]["x0"] == 4.0


def plain_descent(root: Path, *, epochs: int) -> np.ndarray:
    x, y = table(root)
    blocks = np.split(x / 4, 3, axis=1)
    blocks[0] = np.column_stack([blocks[0], np.ones(len(x))])
    clipped = [
        block * np.minimum(1, 0.5 * np.sqrt(block.shape[1]) / np.linalg.norm(block, axis=1))[:, None]
        for block in blocks
    ]
    rows = np.hstack(clipped)
    w = np.zeros(rows.shape[1])
    for epoch in range(epochs):
        w = w - 0.5 / (1 + 0.1 * epoch) * rows.T @ (1 / (1 + np.exp(-rows @ w)) - y) / len(y)
    return w


def test_new_rows_are_scored_with_it(trained: Begun, again: World) -> None:
    predicted = again.run(f'predict.session="{trained.session}"', job="predict.toml")
    lines = (again.root / f"state/bank/predictions/{predicted.id}/scores.csv").read_text().splitlines()
    assert len(lines) == 301
