"""Reasons to refuse a Taylor training, and the change that each refusal proposes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from blindfit.algorithms.protocols.taylor import TaylorParameters, check_parameters
from blindfit.algorithms.statistics.vertical.grid import Grid
from tests.each_case import each_case
from tests.hints.following import found, not_found, refused, says
from tests.vertical.in_process import seated
from tests.world import World
from tests.world.loans import DATA_PARTIES, loans, with_columns
from tests.world.vertical import bank_and_shops, write_rows


def refusals(project: World, *sets: str) -> list[str]:
    return [finding.text for finding in project.check(*sets) if finding.refuses]


# --- batches -------------------------------------------------------------------------------------------------


def test_one_batch_size_passes_every_rule_at_every_party(tmp_path: Path) -> None:
    """There are 80 columns and 700 training rows: one rule needs 320 rows in each batch, and the other 372."""
    project = loans(tmp_path, "taylor", rows=1077, columns=(3, 80, 2))
    told = found("set taylor.batch_rows = {}", project.check())
    assert told.options["taylor.batch_rows"] == 467
    assert not refusals(project, told.set("taylor.batch_rows"))


def test_a_run_refuses_and_takes_what_the_check_does(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path, rows=400)
    for name in ("bank", "shop-a", "shop-b"):
        path = tmp_path / f"{name}.toml"
        path.write_text(re.sub(r"unsafe = \[.*\]\n", "", path.read_text()))
    lines = (tmp_path / "shop-a.csv").read_text().splitlines()
    draw = np.random.default_rng(3).normal(size=(400, 30)).round(3)
    wide = [",".join([line, *map(str, row)]) for line, row in zip(lines[1:], draw, strict=True)]
    (tmp_path / "shop-a.csv").write_text("\n".join([",".join([lines[0], *(f"z{j}" for j in range(30))]), *wide]) + "\n")
    with refused("set taylor.batch_rows = {}") as told:
        seated(project)
    assert "shop-a has 33 columns" in told.text
    seated(project, told.set("taylor.batch_rows"), session="s2")


def test_many_passive_columns_take_larger_batches_or_more_jitter(tmp_path: Path) -> None:
    project = loans(tmp_path, "taylor", columns=(3, 20, 20))
    told = found("taylor.jitter = {}", project.check())
    assert not refusals(project, told.set("taylor.jitter"))
    assert not refusals(project, told.set("taylor.batch_rows"))


def test_where_no_batch_is_large_enough(tmp_path: Path) -> None:
    """The test closes each way: fewer columns with one batch of all rows, and fewer test rows."""
    project = loans(tmp_path, "taylor", rows=400, columns=(3, 66, 2))
    told = found("no taylor.batch_rows is enough for {} training rows", project.check())
    _, columns, test_rows, _ = told.text.partition(" allows it")[0].split("; or ")
    fewer = found("set taylor.batch_rows = {} and {}", project.check())
    assert columns in fewer.text
    with_columns(project, "post", int(re.findall(r"at most (\d+) of these columns", columns)[0]))
    (batch_rows,) = re.findall(r"taylor.batch_rows = (\d+)", columns)
    not_found(told, project.check(f"taylor.batch_rows={batch_rows}"))
    with_columns(project, "post", 66)
    sets = [f"{name}={value}" for name, value in re.findall(r"(\w+\.\w+) = ([\d.]+)", test_rows)]
    not_found(told, project.check(*sets))


def test_a_flag_lets_small_batches_pass(tmp_path: Path) -> None:
    project = loans(tmp_path, "taylor", rows=800, columns=(3, 40, 2))
    told = found('{}: {}; taylor.unsafe = ["{}"] allows it', project.check())
    assert told.options["taylor.unsafe"] == ["leverage"]
    project.set("policy.unsafe", ["leverage"])
    not_found(told, project.check(told.set("taylor.unsafe"), "taylor.jitter=2"))


def test_a_layout_that_was_used_before_is_used_again(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path)
    write_rows(project, 210)
    for number, rows in enumerate((64, 66, 68)):
        seated(project, f"taylor.batch_rows={rows}", session=f"first-{number}")
    with refused(
        "keep the snapshots, parties, fractions and taylor.batch_rows of an earlier training, or set privacy.epsilon"
    ):
        seated(project, "split.test_fraction=0.1", session="fourth")
    seated(project, "taylor.batch_rows=66", session="again")
    seated(project, "split.test_fraction=0.1", "privacy.epsilon=1", session="private")


# --- other rules about gradients ------------------------------------------------------------------------------


@each_case(
    ("wrong", "text"),
    [
        ("taylor.gradient_noise=0.5", says("set taylor.gradient_noise = {}, or more")),
        ("taylor.jitter=0", says("set taylor.jitter = 0.25")),
        ("taylor.validation_fraction=0.05", says("set {} = {}, or more, or {} = 0")),
        ("split.test_fraction=0.05", says("set {} = {}, or more, or {} = 0")),
    ],
)
def test_a_defence_is_set_as_the_refusal_says(tmp_path: Path, wrong: str, text: str) -> None:
    project = loans(tmp_path, "taylor", rows=200)
    told = found(text, project.check(wrong))
    ways = [way for way in told.sets if way.startswith(wrong.partition("=")[0])]
    assert ways
    for way in ways:
        not_found(told, project.check(wrong, way))


def test_no_fraction_of_few_rows_is_enough(tmp_path: Path) -> None:
    project = loans(tmp_path, "taylor", rows=20)
    told = found("use more rows, or set {} = 0", project.check("align.min_common=20"))
    options = [way for way in told.sets if way.endswith("_fraction=0")]
    assert options
    not_found(told, project.check("align.min_common=20", "split.test_fraction=0", "taylor.validation_fraction=0"))
    more = loans(tmp_path, "taylor", rows=400)
    not_found(told, more.check())


def test_class_weights_are_left_out(taylor: World) -> None:
    told = found(
        'set taylor.class_weights = "none", and lower taylor.threshold', taylor.check("taylor.class_weights=balanced")
    )
    assert not refusals(taylor, told.set("taylor.class_weights"), "taylor.threshold=0.3")


def test_a_match_rate_that_nobody_knows(tmp_path: Path) -> None:
    project = linked(tmp_path)
    told = found("set align.match_rate = {}, or less", project.check("align.match_rate=0.8"))
    not_found(told, project.check(told.set("align.match_rate")))


def linked(directory: Path) -> World:
    project = loans(directory, "taylor")
    project.set("datasets.loans.quasi_identifiers", {"name": "name"}, "bank", "post")
    for name in ("bank", "post"):
        project.columns(name, name=project.table(name)["id"])
    return project.job("taylor", parties=("bank", "post", "notary"), align={"method": "linkage", "fields": ["name"]})


# --- rows, and what they allow ---------------------------------------------------------------------------------


def test_rows_that_are_all_held_out(tmp_path: Path) -> None:
    project = loans(tmp_path, "taylor", rows=6)
    wrong = ("align.min_common=1", "split.test_fraction=0.5", "taylor.validation_fraction=0.5")
    project.set("policy.min_common", 1, *DATA_PARTIES)
    told = found("lower split.test_fraction or {}", project.check(*wrong))
    for lower in ("split.test_fraction=0.2", "taylor.validation_fraction=0.2"):
        not_found(told, project.check(*wrong, lower))


def test_rows_that_are_too_few_to_hold_one_out(tmp_path: Path) -> None:
    project = loans(tmp_path, "taylor", rows=9)
    project.set("policy.min_common", 1, *DATA_PARTIES)
    wrong = ("align.min_common=1", "taylor.validation_fraction=0.05")
    told = found("set {} = 0, or raise it", project.check(*wrong))
    not_found(told, project.check(*wrong, told.set("taylor.validation_fraction")))
    not_found(told, project.check(*wrong, "taylor.validation_fraction=0.1"))


def test_too_few_rows_in_common(taylor: World) -> None:
    told = found("set align.min_common = {}, or less", taylor.check("align.min_common=500"))
    assert not refusals(taylor, told.set("align.min_common"))


def test_parties_that_bring_fewer_ids_than_rows_must_be_common(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path, rows=400)
    with refused("{} must bring more ids; or set a lower align.min_common, which may not be below any party") as told:
        seated(project, "align.min_common=5000")
    assert "bank, shop-a, shop-b must bring" in told.text
    seated(project, "align.min_common=20", session="s2")


def test_few_rows_for_many_columns(tmp_path: Path) -> None:
    project = loans(tmp_path, "taylor", columns=(3, 15, 15))
    told = found("use at most {} columns; a larger {} lets you use more of them", project.check())
    most = int(re.findall(r"use at most (\d+) columns", told.text)[0])
    with_columns(project, "post", 15 - (34 - most))
    not_found(told, project.check())


def test_few_test_rows(taylor: World) -> None:
    told = found("set split.test_fraction = {}, or more", taylor.check("split.test_fraction=0.1"))
    not_found(told, taylor.check(told.set("split.test_fraction")))


# --- privacy, and time -----------------------------------------------------------------------------------------


def test_label_dp_that_leaves_little(taylor: World) -> None:
    taylor.set("policy.max_epsilon", 50.0)
    taylor.set("populations.customers.epsilon", 100.0, "bank")
    told = found(
        "{}: expect a weak model; use more rows or a larger privacy.epsilon", taylor.check("privacy.epsilon=0.1")
    )
    not_found(told, taylor.check("privacy.epsilon=50"))
    told = found("set privacy.epsilon = 1, or less", taylor.check("privacy.epsilon=20"))
    not_found(told, taylor.check(told.set("privacy.epsilon")))
    told = found("set privacy.delta = {}", taylor.check("privacy.epsilon=1", "privacy.delta=0.01"))
    not_found(told, taylor.check("privacy.epsilon=1", told.set("privacy.delta")))


def test_a_step_that_takes_longer_than_peers_wait(taylor: World) -> None:
    told = found("set timeouts.step_s = {}, or more", taylor.check("timeouts.step_s=0.01"))
    not_found(told, taylor.check(told.set("timeouts.step_s")))


PARAMETERS = TaylorParameters(("a", "b"), "k", (3, 3), Grid("logistic", 2))


@each_case(
    ("wrong", "validation", "text", "mend"),
    [
        ({"hold_out_loss": True}, 0, says("set taylor.validation_fraction to more than 0"), {"validation": 20}),
        (
            {"hold_out_loss": True, "kept_noise_std": 1.0},
            20,
            says("fix the number of epochs: set taylor.validation_fraction = 0"),
            {"hold_out_loss": False},
        ),
        ({"hold_out_loss": False, "kept_noise_std": 1e-9}, 0, says("raise taylor.norm_bound"), {"kept_noise_std": 1.0}),
    ],
)
def test_numbers_of_a_training(wrong: dict[str, Any], validation: int, text: str, mend: dict[str, Any]) -> None:
    """Only the library can meet these: a job's own tables refuse all of them before."""
    mended = {**wrong, **mend}
    rows = mended.pop("validation", validation)
    with refused(text):
        check_parameters(replace(PARAMETERS, **wrong), [100], validation)
    check_parameters(replace(PARAMETERS, **mended), [100], rows)
