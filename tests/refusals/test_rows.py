"""Facts of rows are refused when the snapshot is made, to the owner only: a proposer gets one answer for all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blindfit.coordinator.jobs.check import check
from tests.refusals.both import assert_equal, refusals_of_check
from tests.refusals.up import answers
from tests.refusals.worlds import ROWS, taylor, walr
from tests.world import World
from tests.world.loans import speed_is_not_measured

__all__ = ["speed_is_not_measured"]
Change = Callable[[World], object]


def columns(name: str, **values: Any) -> Change:
    return lambda world: world.columns(name, **values)


def no_row(name: str) -> Change:
    return lambda world: world.write_table(name, {column: values[:0] for column, values in world.table(name).items()})


LABELS = [
    columns("meter", y=[2] * ROWS),
    columns("meter", id=["same"] * ROWS),
    columns("meter", id=[""] * ROWS),
    no_row("meter"),
]
FEATURES = [
    columns("bank", paid=[1] * ROWS),
    columns("bank", id=["same"] * ROWS),
    columns("bank", bank0=["x"] * ROWS),
    no_row("bank"),
]


@pytest.mark.parametrize("change", LABELS)
def test_labels_are_refused_alike(change: Change, tmp_path: Path) -> None:
    world = walr(tmp_path)
    change(world)
    assert_equal(world, "meter", "")


@pytest.mark.parametrize("change", FEATURES)
def test_features_are_refused_alike(change: Change, tmp_path: Path, speed_is_not_measured: None) -> None:
    world = taylor(tmp_path)
    change(world)
    assert_equal(world, "bank", "")


def test_a_proposer_elsewhere_gets_the_same_answer_whatever_rows_hold(tmp_path: Path) -> None:
    found = set()
    for number, change in enumerate(LABELS):
        root = tmp_path / str(number)
        root.mkdir()
        world = walr(root)
        change(world)
        found.add(answers(world, first_snapshots=True))
    ((by_check, by_submit),) = found
    assert by_check == by_submit
    assert "rows is not published" in by_check


def test_a_text_that_is_in_no_row_is_a_caution_to_the_owner(tmp_path: Path) -> None:
    world = walr(tmp_path)
    world.set("datasets.rows.positive", "yes", "meter")
    cautions = [finding for finding in check(world.load()) if finding.level == "warning" and finding.about == "meter"]
    assert any("yes" in finding.text for finding in cautions)
    assert refusals_of_check(world)[0] == []
