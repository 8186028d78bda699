"""Taylor jobs that choose options by cross-validation: chosen, counted, refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.protocols.taylor.messages import GridChoice
from blindfit.algorithms.protocols.taylor.selection import derive_noise_key
from blindfit.algorithms.statistics.vertical.loss import LOSSES
from blindfit.algorithms.statistics.vertical.selection import LossSteps
from blindfit.parties.taylor import data_party
from blindfit.parties.taylor.label_layouts import LAYOUT, SELECTION
from blindfit.parties.vertical.scored_rows import OPENED_FIT
from blindfit.parties.wire.channel import LocalChannel
from tests.hints.following import refused
from tests.quick_keys import quick_keys
from tests.vertical.in_process import finished
from tests.world import World
from tests.world.vertical import DATA_PARTIES, bank_and_shops, label_bits

GRID = ("select.folds=3", "select.grid.l2=[3.0,0.1]")
# Without noise, so that plain steps give the same losses.
PLAIN = (
    *GRID,
    "taylor.jitter=0",
    "taylor.gradient_noise=0",
    'taylor.unsafe=["no-jitter","no-gradient-noise","label-bits"]',
    "taylor.validation_fraction=0",
    "split.test_fraction=0",
    "taylor.epochs=3",
)


@pytest.fixture(autouse=True)
def keys() -> Iterator[None]:
    with quick_keys():
        yield


def report_of(world: World, session: str, party: str) -> dict[str, Any]:
    return json.loads(world.path("state", party, "models", session, "report.json").read_text())


def test_figures_are_the_losses_of_the_rows_that_each_fold_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, made = bank_and_shops(tmp_path, rows=300), []
    make = data_party.Taylor._make_seat

    def note(self: Any, agreed: Any, settings: Any, plan: Any, parameters: Any) -> Any:
        seat = make(self, agreed, settings, plan, parameters)
        made.append((seat.name, seat, plan, agreed.prepared))
        return seat

    monkeypatch.setattr(data_party.Taylor, "_make_seat", note)
    session = world.run(*PLAIN).id
    told = report_of(world, session, "bank")["selection"]
    by_party = {name: [one for one in made if one[0] == name] for name in DATA_PARTIES}
    losses = []
    final = by_party["bank"][-1][2]
    for training in range(2 * 3):
        plan = by_party["bank"][training][2]
        whole = {tuple(batch) for batch in plan.batches}
        assert whole < {tuple(batch) for batch in final.batches}  # their gradients reveal nothing new of a label
        assert sorted([*plan.train, *plan.validation]) == sorted(final.train)
        seats = [by_party[name][training] for name in DATA_PARTIES]
        tested = seats[0][2].validation
        z = sum(prepared.columns[tested] @ seat.optimiser.weights for _, seat, _, prepared in seats)
        (y,) = [prepared.labels.y[tested] for _, _, _, prepared in seats if prepared.labels.y is not None]
        losses.append(LOSSES["logistic"].value(z, y))
    points = np.array(losses).reshape(2, 3)
    steps = LossSteps(300, 3)
    assert told["figures"] == pytest.approx(points.mean(axis=1), abs=2.0**-steps.mean_bits)
    expected = points.std(axis=1, ddof=1) / math.sqrt(3)
    assert [e**2 for e in told["errors"]] == pytest.approx(expected**2, abs=steps.error(2) ** 2)
    assert told["chosen"] == int(np.argmin(points.mean(axis=1))) == 1
    for name in DATA_PARTIES:
        assert world.written(name, session)["options"] == {"l2": 0.1}
        assert ("figures" in report_of(world, session, name)["selection"]) == (name == "bank")


def test_folds_are_made_of_the_batches_of_the_final_training_and_no_two_trainings_share_noise(tmp_path: Path) -> None:
    keys = {derive_noise_key(b"key", point, fold) for point in range(12) for fold in range(12)}
    assert len(keys) == 144
    assert b"key" not in keys
    world = bank_and_shops(tmp_path, rows=300)
    first = world.run("split.test_fraction=0", "taylor.patience=0")
    layout = label_bits(world, LAYOUT)
    assert first
    world.run(*GRID, "split.test_fraction=0", "taylor.patience=0")
    assert label_bits(world, LAYOUT) == layout  # the folds' gradients reveal nothing new of a label
    (figures,) = label_bits(world, SELECTION)
    assert figures == pytest.approx(2 * LossSteps(255, 3).bits)


def test_each_training_of_a_fold_is_a_model_on_each_row(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=300)
    world.run(*GRID, "split.test_fraction=0")
    for name in DATA_PARTIES:
        with world.store(name) as store:
            entries = [e for e in store.reader().disclosures(subject="scores") if e.event == OPENED_FIT]
        assert len({entry.about for entry in entries}) == len(entries) == 2 * (3 - 1) + 1


def test_rows_that_hold_too_little_refuse_a_grid_before_the_first_fold_and_say_what_would_do(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=300)
    world.edit("bank.toml", 'models_per_row = "unlimited"', "models_per_row = 3")
    never_published = world.check(*GRID)
    for name in DATA_PARTIES:
        world.publish(name)
    with refused(
        '{}; the smallest grid, 2 points in {} folds, needs {}: have the job train with protocol = "falcon", or have '
        "its operator set datasets.{}.models_per_row = {}"
    ) as told:
        world.run(*GRID, "split.test_fraction=0")
    for findings in (never_published, world.check(*GRID)):
        assert any(told.is_in(finding.text) for finding in findings if finding.level == "refuses")
    assert label_bits(world) == []
    assert "datasets.rows.models_per_row = 5" in told.text
    world.edit("bank.toml", "models_per_row = 3", "models_per_row = 5")
    with refused(
        "{}: have the job list fewer grid points (select.grid) or use fewer folds (select.folds), or train with "
        'protocol = "falcon", or have its operator set datasets.{}.models_per_row = {}'
    ):
        world.run("select.folds=3", "select.grid.l2=[0.1,0.2,0.3]", "split.test_fraction=0")
    world.run(*GRID, "split.test_fraction=0")


def test_check_says_how_much_all_folds_and_the_training_reveal(tmp_path: Path) -> None:
    findings = bank_and_shops(tmp_path, rows=300).check(*GRID)
    found = {finding.about: finding.text for finding in findings if finding.level == "note"}
    assert found["select"].startswith("6 trainings of folds (2 grid points, 3 folds) and 1 final training reveal at")
    assert found["select"].endswith("Each row has 5 models")


def test_check_warns_of_columns_that_any_number_of_trainings_may_reveal(tmp_path: Path) -> None:
    """Each training draws its own noise, so many trainings average it out."""
    world = bank_and_shops(tmp_path, rows=300)
    warned = [finding.text for finding in world.check(*GRID) if (finding.level, finding.about) == ("warning", "select")]
    assert len(warned) == 1
    assert "reveal more of the columns of bank" in warned[0]
    assert not [finding for finding in world.check() if finding.about == "select"]
    for name in DATA_PARTIES:
        world.set("datasets.rows.models_per_row", 5, name)
    assert not [finding for finding in world.check(*GRID) if (finding.level, finding.about) == ("warning", "select")]


def test_a_grid_that_reveals_too_much_of_labels_is_refused_before_the_first_fold(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=300)
    many = f"select.grid.l2={[0.9**k for k in range(8)]}"
    with refused("list fewer grid points (select.grid), or remove [select]"):
        world.run("select.folds=3", many, "taylor.jitter=2.0", "taylor.patience=0", "split.test_fraction=0")
    assert label_bits(world) == []
    world.run(*GRID, "taylor.jitter=2.0", "taylor.patience=0", "split.test_fraction=0")


def test_folds_of_which_some_would_have_no_batch_are_refused(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=300)
    with refused("set select.folds = {}") as told:
        world.run("select.folds=10", "select.grid.l2=[3.0,0.1]")
    assert any(told.is_in(finding.text) for finding in world.check("select.folds=10", "select.grid.l2=[3.0,0.1]"))
    world.run(*told.sets[:1], "select.grid.l2=[3.0,0.1]", "taylor.epochs=1")


def test_a_grid_in_one_batch_is_refused_and_smaller_batches_are_not(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=300)
    one_batch = ("taylor.batch_rows=240", "split.test_fraction=0", "taylor.epochs=1", *GRID)
    with refused("set taylor.batch_rows = {}") as told:
        world.run(*one_batch)
    world.run(*one_batch, told.set("taylor.batch_rows"))


def test_a_point_that_the_grid_does_not_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, insecure_test_key: PrivateKey
) -> None:
    send = LocalChannel.send

    async def lie(self: LocalChannel, to: str, message: object) -> None:
        await send(self, to, GridChoice(2) if isinstance(message, GridChoice) else message)

    monkeypatch.setattr(LocalChannel, "send", lie)
    project = bank_and_shops(tmp_path, rows=300)
    with pytest.raises(MalformedMessage, match="point: is not in the grid"):
        finished(project, *PLAIN, key=insecure_test_key, session="s1")
