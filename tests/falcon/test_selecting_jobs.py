"""Whole jobs that choose options by cross-validation in shares: chosen, counted, reported, refused."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from blindfit.algorithms.errors import ConfigError, PolicyRefused
from blindfit.algorithms.protocols.falcon import LEAST_TEST_ROWS, bits_of_opened_weight, program
from blindfit.algorithms.protocols.falcon.seats import DataSeat
from blindfit.algorithms.statistics.linear.weight_bits import choose_kept_bits
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.vertical.selection import LossSteps
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.jobs.party_page import render_party
from blindfit.coordinator.python.calls import run
from blindfit.parties.account.account import Account
from blindfit.parties.falcon import data_party
from blindfit.parties.falcon.weight_bits import SELECTION
from blindfit.parties.vertical.prepared import Prepared
from blindfit.parties.vertical.scored_rows import GRID
from tests.command import forked_parties
from tests.falcon.project import NO_TEST_ROWS, QUICK
from tests.hints.following import led_past, refused
from tests.world import World
from tests.world.loans import DATA_PARTIES as LENDERS
from tests.world.loans import loans
from tests.world.vertical import DATA_PARTIES, bank_and_shops_in_shares, label_bits

L2 = [3.0, 0.3, 0.02]
MOMENTUM = {"optimiser": "momentum", "schedule": "constant", "momentum": 0.8, "learning_rate": 0.3}


def selecting(root: Path, **select: Any) -> World:
    select = {"folds": 3, "grid": {"l2": L2}} | select
    falcon = {**QUICK, **MOMENTUM, "waves": "medium"}
    return bank_and_shops_in_shares(root, rows=600, epochs=25, falcon=falcon, split=NO_TEST_ROWS, select=select)


@dataclass(frozen=True)
class Done:
    world: World
    session: str
    prepared: Sequence[Prepared]  # prepared rows of each data party

    def report(self, party: str) -> dict[str, Any]:
        return json.loads(self.world.path("state", party, "models", self.session, "report.json").read_text())


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    world, prepared, make = selecting(tmp_path_factory.mktemp("selecting")), [], data_party.make_held
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_party, "make_held", lambda own, *more: (prepared.append(own), make(own, *more))[1])
        session = world.run().id
    return Done(world, session, prepared)


def test_the_chosen_penalty_is_the_one_that_scikit_learn_chooses_in_the_same_folds(done: Done) -> None:
    told, plan = done.report("bank")["selection"], done.prepared[0].plan
    x = np.hstack([own.columns[plan.train] for own in done.prepared])
    x = x[:, np.abs(x - 1).max(axis=0) > 0]  # without the intercept
    (y,) = [own.labels.y[plan.train] > 0 for own in done.prepared if own.labels.y is not None]
    expected = []
    for l2 in L2:
        losses = []
        for fold in np.array_split(np.arange(len(y)), 3):
            trained = np.delete(np.arange(len(y)), fold)
            model = LogisticRegression(C=1 / (l2 * len(trained)), tol=1e-8).fit(x[trained], y[trained])
            losses.append(log_loss(y[fold], model.predict_proba(x[fold])))
        expected.append((np.mean(losses), np.var(losses, ddof=1) / 3, np.abs(losses - np.mean(losses)).sum()))
    steps = LossSteps(len(y), 3)
    # allowed difference of a loss: rounding, and a descent that has not quite ended
    near = 2.0 ** (1 - steps.mean_bits)
    assert [own[0] for own in expected] == pytest.approx(told["figures"], abs=near)
    for (_, squared_error, deviations), error in zip(expected, told["errors"], strict=True):
        # Variance of three losses: each deviation is a third of the allowed difference.
        assert squared_error == pytest.approx(error**2, abs=steps.error(2) ** 2 + (deviations + 1.5 * near) * near / 3)
    assert told["chosen"] == int(np.argmin([own[0] for own in expected])) == 2
    assert told["points"] == ["l2 = 3.0", "l2 = 0.3", "l2 = 0.02"]


def test_each_party_knows_the_chosen_options_and_only_the_active_party_the_figures(done: Done) -> None:
    for name in DATA_PARTIES:
        report, part = done.report(name), done.world.written(name, done.session)
        assert part["options"] == {"l2": 0.02}
        assert report["selection"]["chosen"] == 2
        assert ("figures" in report["selection"]) == (name == "bank")
        assert VerticalModelPart.from_dict(part).options == {"l2": 0.02}


def test_all_that_the_grid_and_the_training_open_is_counted_at_the_beginning_and_once(done: Done) -> None:
    steps = LossSteps(600, 3)
    (begun,) = label_bits(done.world, SELECTION)
    (weights,) = label_bits(done.world, "weights")
    assert begun == pytest.approx(3 * steps.bits + math.log2(25 + 3 * 3 * 25 + 1))
    assert weights == 3 * bits_of_opened_weight(choose_kept_bits(600))
    assert begun < 3 * 3 * (weights + math.log2(25 + 1))  # as much as nine trainings whose weights are opened


def test_a_job_that_asks_again_gets_the_same_choice_for_nothing(done: Done) -> None:
    before = label_bits(done.world)
    again = done.world.run()
    assert label_bits(done.world) == before
    report = json.loads(done.world.path("state", "bank", "models", again.id, "report.json").read_text())
    assert report["selection"] == done.report("bank")["selection"]
    assert report["answered_in"] == done.session


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_grid_that_reveals_too_much_is_refused_before_the_first_fold_and_leaves_nothing_counted(
    tmp_path: Path,
) -> None:
    world = selecting(tmp_path, grid={"l2": [0.5**k for k in range(12)]})
    with refused("list at most {} grid points (select.grid)") as told:
        world.run()
    assert label_bits(world) == []
    assert "its weights and the figures of 12 grid points" in told.text
    fewer = [f"select.grid.l2={[0.5**k for k in range(int(told.parts[0]))]}", "falcon.epochs=2"]
    assert any(told.is_in(finding.text) for finding in world.check() if finding.level == "refuses")
    world.run(*fewer)


def test_a_grid_for_which_there_is_no_room_at_all_is_to_be_removed(tmp_path: Path) -> None:
    world = bank_and_shops_in_shares(tmp_path, rows=150, epochs=1, falcon=QUICK, split=NO_TEST_ROWS)
    with refused("remove [select]"):
        world.run("select.folds=3", "select.grid.l2=[0.1,1.0]")
    assert label_bits(world) == []
    world.run()


def test_folds_of_few_rows_are_refused_and_fewer_folds_are_not(tmp_path: Path) -> None:
    world = bank_and_shops_in_shares(tmp_path, rows=150, epochs=1, falcon=QUICK, split=NO_TEST_ROWS)
    with refused("set select.folds = {}, or ") as told:
        world.run("select.folds=10", "select.grid.l2=[0.1,1.0]")
    assert any(told.is_in(finding.text) for finding in world.check("select.folds=10", "select.grid.l2=[0.1,1.0]"))
    led_past(told, lambda: world.run(*told.sets, "select.grid.l2=[0.1,1.0]"))


def test_a_grid_that_fits_only_before_other_trainings_is_refused_before_the_first_fold(tmp_path: Path) -> None:
    world = selecting(tmp_path)
    world.publish("bank")
    with world.store("bank") as store, store.transaction() as transaction:
        account = Account.of(world.settings("bank"), "rows")
        entry = account.entry("labels", account.label, ["another-shop"], "weights", "earlier", 100.0)
        transaction.add_disclosure(entry)
    with pytest.raises(PolicyRefused, match="with earlier trainings on the same people"):
        world.run("falcon.epochs=2")
    assert label_bits(world) == [100.0]


def test_check_says_how_much_all_folds_and_the_training_reveal(tmp_path: Path) -> None:
    found = {finding.about: finding.text for finding in selecting(tmp_path).check()}
    assert found["select"].startswith(
        "9 trainings of folds (3 grid points, 3 folds) and 1 final training reveal at most 75 bits about labels. "
    )
    assert "225 epochs of folds, then 25 epochs" in found["time"]


def test_a_passive_party_counts_the_figures_of_the_grid_on_its_rows(tmp_path: Path) -> None:
    world = selecting(tmp_path)
    world.run("falcon.epochs=2")
    with world.store("shop-a") as store:
        entries = {entry.event: entry.bits for entry in store.reader().disclosures(subject="scores")}
    assert entries[GRID] == pytest.approx(3 * LossSteps(600, 3).bits / LEAST_TEST_ROWS)


def test_rows_that_hold_too_little_for_a_grid_refuse_it_before_the_first_fold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    select = program.select

    async def note(*arguments: Any) -> Any:
        if isinstance(arguments[0], DataSeat):  # the key node deals ahead
            begun.append(arguments[0].me)
        return await select(*arguments)

    monkeypatch.setattr(program, "select", note)
    world = loans(tmp_path, "falcon", rows=400, columns=(4, 8, 8))
    for name in world.roles:
        world.edit(f"{name}.toml", 'systems = ["falcon"]', 'systems = ["falcon"]\nunsafe = ["weight-bits"]')
    world.edit("shop.toml", 'models_per_row = "unlimited"', "models_per_row = 1")
    for name in LENDERS:
        world.publish(name, "loans")
    grid = [0.4 / k for k in range(1, 61)]
    sets = ('falcon.unsafe=["weight-bits"]', "split.test_fraction=0", "falcon.epochs=1", "select.folds=3")
    with refused("have the job list fewer grid points (select.grid), or ") as told:
        world.run(*sets, f"select.grid.l2={grid}")
    assert any(told.is_in(finding.text) for finding in world.check(*sets, f"select.grid.l2={grid}"))
    assert begun == []
    with world.store("shop") as store:
        assert store.reader().disclosures(subject="scores") == []
    world.run(*sets, f"select.grid.l2={grid[:3]}")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "one point": ({"select": {"grid": {"l2": [1.0]}}}, "it has one point, so there is nothing to choose"),
    "twice": ({"select": {"grid": {"l2": [1.0, 1]}}}, "a value occurs twice"),
    "many": ({"select": {"grid": {"l2": list(range(20)), "epochs": list(range(1, 20))}}}, "380 points, more than 100"),
    "folds": ({"select": {"folds": 4, "grid": {"l2": [1, 2]}}}, "select.folds: must be 3, 5 or 10"),
    "unknown": ({"select": {"grid": {"momentums": [1, 2]}}}, "select.grid.momentums is not an option"),
    "value": ({"select": {"grid": {"l2": [1.0, -1.0]}}}, "select.grid: l2 = -1.0: l2: Input should be greater"),
    "optimiser": ({"select": {"grid": {"optimiser": ["sgd", "sag"]}}}, "select.grid: optimiser = sag: optimiser: "),
    "figure": ({"select": {"by": "mse", "grid": {"l2": [1, 2]}}}, 'a logistic model takes "log_loss", "accuracy"'),
    "linear": (
        {"falcon": {"model": "linear"}, "select": {"by": "auc", "grid": {"l2": [1, 2]}}},
        'a linear model takes "mse"',
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_grid_that_means_nothing_is_refused(case: str) -> None:
    tables, text = WRONG[case]
    parties = {
        "a": {"role": "active", "dataset": "rows"},
        "b": {"role": "passive", "dataset": "rows"},
        "k": {"role": "key-node"},
    }
    with pytest.raises(ConfigError) as caught:
        Job({"protocol": "falcon", "parties": parties, **tables})
    assert text in caught.value.message


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_a_python_call_ends_in_a_typed_table_and_a_page(tmp_path: Path) -> None:
    world = bank_and_shops_in_shares(tmp_path, rows=600, epochs=2, falcon=QUICK, split=NO_TEST_ROWS)
    grid = {"l2": [0.5, 0.1], "optimiser": ["sgd"], "epochs": [2, 3]}
    job = Job(world.root / "job.toml", select={"folds": 3, "by": "auc", "grid": grid})
    with forked_parties():
        result = run(job, out=tmp_path / "out", progress=False)
    selected = result.report.selected
    assert [point.options for point in selected.points][1] == "l2 = 0.5, epochs = 3, optimiser = sgd"
    best = max(selected.points, key=lambda point: point.figure)
    assert selected.best.figure == best.figure > 0.5
    assert best.error > 0
    chosen = result.models["bank"].options
    assert ", ".join(f"{name} = {value}" for name, value in chosen.items()) == selected.best.options
    assert (result.report.job.falcon.l2, result.report.fit.epochs) == (chosen["l2"], chosen["epochs"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Cross-validation in 3 folds chose these options" in page
    assert page.count("l2 = 0.5, epochs = 3, optimiser = sgd") >= 2  # in the table and in the chart
    said = " ".join(str(result.document["privacy_statement"]).split())
    assert "the AUC of each of 4 grid points over 3 folds, rounded to a quarter of its standard error or less" in said
    render_party(tmp_path / "out" / "shop-a")
    own = (tmp_path / "out" / "shop-a" / "report.html").read_text()
    assert "The active party has the figures of the grid points." in own
