"""Reasons to refuse, or warn about, jobs with a measurement server and trainings under differential privacy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from blindfit import pretrain
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import Budget, check_budget
from blindfit.coordinator.label_dp.preflight import trees_on_noise
from blindfit.parties.label_dp.consumer import mechanism_settings
from blindfit.parties.label_dp.settings import LabelDPJob, LabelDPSettings
from blindfit.protos.measurement_pb2 import DatasetDescription
from tests.each_case import each_case
from tests.hints.following import Told, found, not_found, refused, refused_command, says
from tests.hints.measured import POPULATIONS, alone, measured
from tests.world import World

# --- what the pre-flight finds ------------------------------------------------------------------------------------


def test_an_aggregate_with_much_noise(tmp_path: Path) -> None:
    project = measured(tmp_path, "walr")
    told = found(
        "{}: expect a weak model; use more rows or a larger privacy.epsilon", project.check("privacy.epsilon=0.05")
    )
    assert Told(says("default l2 {}")).is_in(told.text)
    not_found(told, project.check("privacy.epsilon=20"))
    project = measured(tmp_path, "walr", rows=6000)
    not_found(told, project.check("privacy.epsilon=1"))


@each_case("protocol", ["walr", "evaluate"])
def test_labels_and_the_trust_that_goes_with_them(tmp_path: Path, protocol: str) -> None:
    project = measured(tmp_path, protocol, **({"evaluate": {"session": "s1"}} if protocol == "evaluate" else {}))
    project.server("probe", project.table("meter"), about={"label": "y"}, policy={"systems": [protocol]})
    project.set("parties.probe", {"role": "measurement", "config": "probe.toml", "dataset": "rows"}, "job")
    told = found('set {} = "{}" or "{}", or name another dataset', project.check(f"{protocol}.trust=two-servers"))
    project.set("parties.probe", None, "job")
    not_found(told, project.check(told.set(f"{protocol}.trust")))


def test_numbers_that_are_asked_for_as_an_aggregate(tmp_path: Path) -> None:
    project = measured(tmp_path, "label-dp")
    project.columns("meter", y=(project.table("meter")["y"] > 5).astype(int))
    project.set("datasets.rows.label_kind", None, "meter")
    project.set("datasets.rows.label_range", None, "meter")
    told = found('{} has no labels that are numbers: set protocol = "walr"', project.check())
    project.set("policy.systems", ["walr"])
    not_found(told, project.check("protocol=walr"))


@each_case(("kind", "refuses"), [("binary", True), ("number", False)])
def test_a_server_that_has_no_numbers(kind: str, refuses: bool) -> None:
    job = LabelDPJob.model_validate({"privacy": {"epsilon": 1.0}})
    described = DatasetDescription(dataset="rows", label_kind=kind, label_lo=0.0, label_hi=1.0)
    if refuses:
        with refused('binary labels are released as an aggregate: set protocol = "walr"'):
            mechanism_settings(job, described, server="meter")
    else:
        mechanism_settings(job, described, server="meter")


def test_labels_with_much_noise(tmp_path: Path) -> None:
    project = measured(tmp_path, "label-dp", label_dp={"mechanism": "laplace"})
    told = found(
        ": expect a weak model; use more rows, fewer columns or a larger privacy.epsilon",
        project.check("privacy.epsilon=0.05"),
    )
    not_found(told, project.check("privacy.epsilon=20"))


def test_trees_on_noise() -> None:
    forest = LabelDPSettings(regressor="random-forest", options={"min_samples_leaf": 2})
    told = Told('Set label_dp.regressor = "ridge", or raise label_dp.options.min_samples_leaf above {}')
    told.hear(trees_on_noise(forest, 1000, 0.5))
    assert not trees_on_noise(LabelDPSettings(regressor="ridge"), 1000, 0.5)
    (above,) = re.findall(r"above ([\d,]+)", told.text)
    least = int(above.replace(",", ""))
    larger = LabelDPSettings(regressor="random-forest", options={"min_samples_leaf": 8 * least})
    assert not told.is_in(trees_on_noise(larger, 1000, 0.5))


def test_the_grid_of_an_evaluation(tmp_path: Path) -> None:
    project = measured(tmp_path, "evaluate", evaluate={"session": "s1", "frac_bits": 8})
    told = found(
        'with {} the noise is not 2^16 grid steps wide: set evaluate.frac_bits = "auto", or more', project.check()
    )
    for mend in (told.set("evaluate.frac_bits"), "evaluate.frac_bits=20"):
        not_found(told, project.check(mend))


def test_where_a_private_descent_starts(tmp_path: Path) -> None:
    project = alone(tmp_path)
    told = found("{}: set dp_lr.feature_bounds, or scale by public rows (dp_lr.init)", project.check())
    not_found(told, project.check('dp_lr.feature_bounds=["*:-4:4"]'))
    blindfit_pretrains(project, known_rows(project))
    not_found(told, project.check("dp_lr.init=pretrained.json"))


@each_case("protocol", ["dp-lr", "walr"])
def test_a_start_that_no_declaration_covers(tmp_path: Path, protocol: str) -> None:
    project = alone(tmp_path) if protocol == "dp-lr" else measured(tmp_path, "walr")
    known = known_rows(project)
    (tmp_path / "pretrained.json").write_text(
        pretrain({name: known[name] for name in ("x0", "x1", "x2")}, known["y"]).to_json()
    )
    start = "dp_lr.init=pretrained.json" if protocol == "dp-lr" else "walr.init=pretrained.json"
    texts = {
        "dp-lr": says(
            "epsilon does not cover what the start reveals about the rows that it was fitted to. If these rows are "
            "public, their owner sets datasets.NAME.public = true and makes the file by `blindfit pretrain`"
        ),
        "walr": says(
            "{}, which no declaration covers: epsilon does not bound what they reveal, and `blindfit verify` reports "
            "this. "
            "Take the file of `blindfit pretrain`, or a model.json with its release.json next to it"
        ),
    }
    told = found(texts[protocol], project.check(start), "warning")
    blindfit_pretrains(project, known)
    not_found(told, project.check(start))


def known_rows(project: World) -> dict[str, np.ndarray]:
    """Return 80 rows of other people, with labels that follow from the features."""
    features = {name: project.table("shop")[name][:80] for name in ("x0", "x1", "x2")}
    ids = np.array([f"k{i}" for i in range(80)])
    return {"id": ids, **features, "y": (features["x0"] + features["x1"] > 0).astype(int)}


def blindfit_pretrains(project: World, known: dict[str, np.ndarray]) -> None:
    about = {"url": "csv:known.csv", "id": "id", "label": "y", "features": "rest"}
    project.set("datasets.known", about, "shop")
    project.write_table("known", known)
    command = ("pretrain", "shop.toml", "--dataset", "known", "--out", "pretrained.json")
    told = refused_command(
        "if every row is public, its owner sets datasets.{}.public = true in the party's file",
        project.blindfit(*command),
    )
    assert told.options == {"datasets.known.public": True}
    project.set("datasets.known.public", True, "shop")
    done = project.blindfit(*command)
    assert done.returncode == 0, done.stderr


def test_a_private_descent_in_much_noise(tmp_path: Path) -> None:
    project = alone(tmp_path, feature_bounds=["*:-4:4"])
    told = found(
        ": the model will be hardly more than its start; use more rows, fewer columns or a larger privacy.epsilon",
        project.check("privacy.epsilon=0.01"),
    )
    not_found(told, project.check("privacy.epsilon=20"))
    more = alone(tmp_path, rows=20_000, feature_bounds=["*:-4:4"])
    not_found(told, more.check("privacy.epsilon=0.1"))


def test_a_dataset_that_has_changed_is_published(tmp_path: Path) -> None:
    project = alone(tmp_path, feature_bounds=["*:-4:4"])
    project.publish("shop")
    project.columns("shop", x0=project.table("shop")["x0"] + 1.0)
    told = found("`blindfit snapshot {} {}`", project.check())
    assert project.blindfit(*told.commands[0]).returncode == 0
    not_found(told, project.check())


# --- what settings of a dataset do not go with ---------------------------------------------------------------------


@each_case(
    ("wrong", "text", "mend"),
    [
        (
            {"population": None},
            says("set datasets.{}.population to a table of [populations], which has its epsilon and delta"),
            {"population": "people"},
        ),
        ({"features": None}, says('set datasets.{}.features = "rest"'), {"features": "rest"}),
        (
            {"categories": ["town"]},
            says("name the levels that are known without the rows, such as datasets.{}.categories = {"),
            {"categories": {"town": ["north", "south"]}},
        ),
    ],
)
def test_a_dataset_of_a_private_training(
    tmp_path: Path, wrong: dict[str, Any], text: str, mend: dict[str, Any]
) -> None:
    project = alone(tmp_path, feature_bounds=["*:-4:4"])
    if "categories" in wrong:
        project.columns("shop", town=["north", "south"] * 150)
    for option, value in wrong.items():
        project.set(f"datasets.rows.{option}", value, "shop")
    if "population" in wrong:
        project.set("populations", None, "shop")
    told = found(text, project.check())
    project.set("populations", POPULATIONS, "shop")
    for option, value in mend.items():
        project.set(f"datasets.rows.{option}", value, "shop")
    not_found(told, project.check())


def test_features_of_another_system(tmp_path: Path) -> None:
    project = measured(tmp_path, "label-dp")
    project.set("datasets.rows.features", None, "shop")
    told = found('set datasets.{}.features = "rest"', project.check())
    project.set("datasets.rows.features", "rest", "shop")
    not_found(told, project.check())


def test_a_budget_that_does_not_hold_a_release(tmp_path: Path) -> None:
    project = alone(tmp_path, feature_bounds=["*:-4:4"])
    project.publish("shop")
    event, budget = ReleaseEvent("gaussian", 1.0, "replace"), Budget(1.0, 1e-5)
    with refused("lower privacy.epsilon; `blindfit ledger PARTY.TOML` at that party shows what was spent") as told:
        check_budget([], event, budget, "people")
    check_budget([], ReleaseEvent("gaussian", 20.0, "replace"), budget, "people")
    (command,) = told.commands
    assert project.blindfit(*(word.replace("PARTY.TOML", "shop.toml") for word in command)).returncode == 0


@each_case("way", ["rows", "zero", "refuse"])
def test_rows_that_a_measurement_server_does_not_know(tmp_path: Path, way: str) -> None:
    project = measured(tmp_path, "walr")
    labels = project.table("meter")
    project.write_table("meter", {name: column[10:] for name, column in labels.items()})
    told = found('; or, if a missing id means label 0, set {} = "zero" in the file of {}', project.check(), "refuses")
    assert "take these rows out of shop's table" in told.text
    if way == "rows":
        project.write_table("shop", {name: column[10:] for name, column in project.table("shop").items()})
    else:
        assert 'set datasets.rows.unknown_rows = "zero" in the file of meter' in told.text
        project.set("datasets.rows.unknown_rows", "zero", "meter")
    not_found(told, project.check())
    if way == "refuse":  # the hint of the caution about the same rows
        told = found('{}: they count as label 0 (unknown_rows = "zero")', project.check(), "warning")
        project.write_table("meter", labels)
        not_found(told, project.check())
