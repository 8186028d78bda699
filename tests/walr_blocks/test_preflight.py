"""Findings of `check` about a WALR of several parties from public sizes, before a server is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from blindfit.algorithms.errors import PolicyRefused
from blindfit.coordinator.preflight.findings import Finding
from tests.each_case import each_case
from tests.world.holders import COLUMNS, Holders

WHOLE = "split.test_fraction=0"


def house_of(root: Path, rows: int, **columns: tuple[str, ...]) -> Holders:
    """Return parties of which the shop has this many rows, and each has the columns that are named for it."""
    root.mkdir(exist_ok=True)
    house = Holders(root)
    for name, kept in {**COLUMNS, **columns}.items():
        table = house.table(name)
        last = rows if name == "shop" else None
        house.write_table(name, {column: values[:last] for column, values in table.items() if column in ("id", *kept)})
        if name != "shop":  # some have few columns
            house.set("datasets.rows.models_per_row", "unlimited", name)
    return house


def refusals(found: list[Finding]) -> list[str]:
    return [finding.text for finding in found if finding.level == "refuses"]


@each_case(
    "columns, needed",
    [
        ({}, 320),  # 4, 4 and 3 columns with the constant; the smallest block does not count
        ({"bank": ("a",)}, 280),  # 4 and 3
        ({"chain": ("e", "f")}, 280),
        ({"bank": ("a",), "chain": ("e",)}, 160),
        ({"shop": ("x",), "bank": ("a", "b")}, 240),
    ],
)
def test_fewer_than_forty_rows_for_each_column_are_refused(
    columns: dict[str, tuple[str, ...]], needed: int, tmp_path: Path
) -> None:
    """The refusal comes before anything is sent, in the words of the server."""
    house = house_of(tmp_path / "few", needed - 1, **columns)
    (said,) = refusals(house.check(WHOLE))
    assert f"{needed - 1} rows are too few" in said
    assert f"which need {needed}: use more rows or fewer columns" in said
    enough = refusals(house_of(tmp_path / "enough", needed, **columns).check(WHOLE))
    assert not any("are too few" in text for text in enough)


@each_case(
    "columns, shop_rows, is_refused",
    [
        ({}, 560, True),
        ({}, 900, False),
        ({"bank": ("a",), "chain": ("e",)}, 250, True),
        ({"bank": ("a",), "chain": ("e",)}, 500, False),
    ],
)
def test_check_and_run_agree_on_bits_of_weights(
    columns: dict[str, tuple[str, ...]], shop_rows: int, is_refused: bool, tmp_path: Path
) -> None:
    """Fewer rows are common than any party has: the weights then reveal too much of each one's columns."""
    house = house_of(tmp_path, shop_rows, **columns)
    said = refusals(house.check(WHOLE))
    assert bool(said) is is_refused
    if not is_refused:
        house.run(WHOLE)
        return
    with pytest.raises(PolicyRefused, match="more bits about the columns") as refused:
        house.run(WHOLE)
    assert said == [str(refused.value)]


def test_derived_columns_need_rows_as_others_do(tmp_path: Path) -> None:
    """The findings name them."""
    house = house_of(tmp_path, 439)
    house.set("datasets.rows.derive", {"bin": {"by": "bins", "of": "a", "bins": 4}}, "bank")
    (said,) = refusals(found := house.check(WHOLE))
    assert "439 rows are too few for the columns of these parties, which need 440" in said
    assert "bin: 3 columns by bins of a" in [finding.text for finding in found if finding.about == "bank"]


def test_rows_that_are_held_out_are_not_trained_on(tmp_path: Path) -> None:
    house = house_of(tmp_path, 330)
    assert not any("are too few" in text for text in refusals(house.check(WHOLE)))
    (said,) = refusals(house.check("split.test_fraction=0.5"))
    assert "too few for the columns of these parties, which need 320" in said


def test_the_command_refuses_such_a_job_and_a_run_charges_nothing(tmp_path: Path) -> None:
    house = house_of(tmp_path, 319)
    checked = house.blindfit("check", "job.toml", "--set", WHOLE)
    assert checked.returncode != 0
    said = " ".join((checked.stdout + checked.stderr).split())
    assert "319 rows are too few for the columns of these parties, which need 320" in said
    with pytest.raises(PolicyRefused, match="319 rows are too few"):
        house.run(WHOLE)
    assert house.spent() == 0
