"""Mistakes in recipes and reference levels, and the mend that the error proposes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.columns.recipes import Log1p
from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.parties.data.opening import open_for_model, open_source
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.dp_lr.rows import check_private, public_source
from blindfit.parties.settings import PartySettings
from blindfit.parties.tables import validate
from tests.each_case import each_case
from tests.hints.following import led_past, refused, with_changes
from tests.hints.parties import PARTIES
from tests.hints.test_data import Party
from tests.hints.wrong_options import Wrong, follow

DATASET = "datasets.rows"
NEW = f"{DATASET}.derive.new"
CASES = [
    Wrong(
        "passive",
        {NEW: {"by": "log1p", "of": "age", "bins": 3}},
        says='{} does nothing with by = "{}", remove it',
        mend={f"{NEW}.bins": None},
    ),
    Wrong(
        "passive",
        {NEW: {"by": "product", "of": "age"}},
        says='of: by = "{}" takes {}',
        mend={f"{NEW}.of": ["age", "income"]},
    ),
    Wrong(
        "passive",
        {NEW: {"by": "log1p", "of": ["age", "income"]}},
        says='of: by = "{}" takes {}',
        mend={f"{NEW}.of": "age"},
    ),
    *(
        Wrong("passive", {NEW: {"by": by, "of": "age"}}, says='by = "{}" needs {}', mend={f"{NEW}.{option}": value})
        for by, option, value in (
            ("bins", "bins", 3),
            ("bins", "edges", [1]),
            ("spline", "knots", 3),
            ("clip", "high", 3.0),
            ("clip", "quantiles", [0.1, 0.9]),
        )
    ),
    *(
        Wrong(
            "passive",
            {NEW: {"by": "bins", "of": "age", "bins": 3, "edges": [1, 2]}},
            says="{} exclude each other, remove one of them",
            mend={f"{NEW}.{option}": None},
        )
        for option in ("bins", "edges")
    ),
    Wrong(
        "passive",
        {NEW: {"by": "spline", "of": "age", "knots": [1, 2]}},
        says="knots must be a number from 3 to {}, or a list of as many numbers",
        mend={f"{NEW}.knots": [1, 2, 3]},
    ),
    Wrong(
        "passive",
        {f"{DATASET}.reference_levels": {"region": "north"}},
        says="reference_levels.{}: {} is not one of categories",
        mend={f"{DATASET}.categories": ["region"]},
    ),
    Wrong(
        "passive",
        {f"{DATASET}.reference_levels": {"region": "east"}, f"{DATASET}.categories": {"region": ["north", "south"]}},
        says="reference_levels.{}: {} is not one of categories.{}",
        mend={f"{DATASET}.reference_levels": {"region": "north"}},
    ),
    Wrong(
        "passive",
        {f"{DATASET}.reference_levels": {"region": "north"}, f"{DATASET}.categories": {"region": ["north"]}},
        says="reference_levels.{}: {} has no other level, remove it",
    ),
]


def load(values: dict[str, Any]) -> PartySettings:
    return validate(values, PartySettings, source="party.toml")


@each_case("wrong", CASES, ids=lambda wrong: f"{wrong.job}: {wrong.changes}")
def test_a_party_file_is_mended_as_its_error_says(wrong: Wrong) -> None:
    values = with_changes(PARTIES[wrong.job], wrong.changes)
    with refused(wrong.says) as told:
        load(values)
    told.text = told.text.replace("party.toml: ", "")
    load(follow(values, told, wrong.mend))


ROWS = "id,age,income,y\na,1,-3,0\nb,2,5,1\n"
LOG = {"income_log": {"by": "log1p", "of": "income"}}


def test_a_number_that_a_recipe_cannot_take(tmp_path: Path) -> None:
    party = Party.of(tmp_path, ROWS, derive=LOG)
    with refused("remove {}.derive.{}") as told:
        party.publish()
    assert "remove datasets.rows.derive.income_log" in told.text
    assert party.set(derive=None) == ("age", "income")


@each_case(
    ("options", "mended"),
    [
        ({"except": ["income"]}, {}),
        ({}, {"except": ["income"]}),
        ({"features": ["age", "income"]}, {"features": ["age"]}),
        ({"features": ["age"]}, {}),
    ],
)
def test_a_column_that_a_recipe_reads_is_left_out_with_the_recipe(
    options: dict[str, Any], mended: dict[str, Any], tmp_path: Path
) -> None:
    party = Party.of(tmp_path, ROWS.replace("-3", "much"), derive=LOG, **options)
    with refused("remove {}.derive.{}") as told:
        party.publish()
    for option in mended:
        assert f"datasets.rows.{option}" in told.text
    assert party.set(derive=None, **mended) == ("age",)


@each_case(
    ("recipe", "given"),
    [
        ({"by": "bins", "bins": 3}, "edges = [30, 50]"),
        ({"by": "spline", "knots": 3}, "knots = [20, 40, 60]"),
        ({"by": "clip", "quantiles": [0, 0.5]}, "low = 0, high = 100"),
    ],
)
def test_numbers_of_rows_where_rows_are_protected(recipe: dict[str, Any], given: str, tmp_path: Path) -> None:
    party = Party.of(tmp_path, ROWS, derive={"new": {**recipe, "of": "age"}})

    def check() -> None:
        check_private(open_source(load(party.values).datasets["rows"], tmp_path, "rows"))

    with refused(
        'give {} that are known without the rows, such as datasets.{}.derive.{} = { by = "{}", of = {}, {} }'
    ) as told:
        check()
    assert given in told.text
    party.values = with_changes(party.values, {"datasets.rows.derive": None})
    party.values = with_changes(party.values, told.options)
    check()


def test_public_rows_with_another_recipe(tmp_path: Path) -> None:
    party = Party.of(tmp_path, ROWS, derive={"new": {"by": "bins", "of": "age", "edges": [1.5]}})
    rows = party.values["datasets"]["rows"]
    other = {**rows, "public": True, "derive": {"new": {"by": "bins", "of": "age", "edges": [1.7]}}}
    party.values["datasets"]["archive"] = other

    def check() -> None:
        settings = load(party.values)

        def opened(name: str) -> Any:
            return open_source(settings.datasets[name], tmp_path, name)

        public_source(settings, "archive", opened, check_private(opened("rows")))

    with refused("set datasets.{}.derive.{} to what datasets.{} has there") as told:
        check()
    party.values["datasets"]["archive"] = {**other, "derive": rows["derive"]}
    led_past(told, check)
    check()


def test_a_row_for_a_model_is_left_out(tmp_path: Path) -> None:
    """No option of a party's file describes the table that a model reads."""
    (tmp_path / "rows.csv").write_text(ROWS)
    record = TableRecord((TableColumn("income"),), recipes=(Log1p("log", ("income",)),))
    source = open_for_model(DatasetSettings(url="csv:rows.csv", id="id"), record, record.made, tmp_path, "rows")
    with pytest.raises(DataError, match=r"row 1 .*column income: the number is not above -1") as refused_it:
        list(source.batches())
    assert refused_it.value.hint == "correct it, or leave out the row: the model computes with this number"
