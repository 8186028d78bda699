"""New rows are read by the recipes of the model; their dataset declares every recipe that could refuse a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.columns.derived import fit_recipes
from blindfit.algorithms.columns.recipes import Bins, Log1p, Product, Recipe
from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.parties.training.rows import read_rows
from tests.columns.new_rows import NewRows
from tests.each_case import each_case
from tests.hints.following import led_past, refused

Make = Callable[..., NewRows]
TRAINED = np.array([10.0, 20.0, 30.0, 40.0])
LOG = {"income_log": {"by": "log1p", "of": "income"}}


def part_of(*recipes: Recipe, features: tuple[str, ...] = ("age",)) -> VerticalModelPart:
    names = dict.fromkeys([*features, *(name for recipe in recipes for name in recipe.of)])
    columns = tuple(TableColumn(name, is_feature=name in features) for name in names)
    record = fit_recipes(TableRecord(columns, recipes=recipes), dict.fromkeys(names, TRAINED))
    n = len(record.made)
    scale = Standardiser(record.made, tuple(range(n)), (25.0,) * n, (2.0,) * n, record)
    return VerticalModelPart("bank", "active", "logistic", ("bank", "shop"), scale, np.ones(n))


BINS = part_of(Bins("age_bin", ("age",), 2), Product("both", ("age", "income")))
LOGS = part_of(Log1p("income_log", ("income",)))


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Make]:
    made: list[NewRows] = []

    def make(part: VerticalModelPart, text: str, **dataset: Any) -> NewRows:
        (tmp_path / "rows.csv").write_text(text, "utf-8")
        made.append(NewRows(tmp_path, part, dataset=dataset))
        return made[-1]

    yield make
    for rows in made:
        rows.close()


@each_case("derive", [{}, {"age_bin": {"by": "bins", "of": "age", "bins": 9}}])
def test_columns_are_computed_as_in_training_whatever_the_dataset_derives(derive: dict[str, Any], new: Make) -> None:
    rows = new(BINS, "id,income,age\na,2,25\nb,3,26\nc,4,90\n", derive=derive)
    assert rows.part.standardiser.columns == ("age", "age_bin=2", "both")
    assert rows.numbers() == [[25, 0, 50], [26, 1, 78], [90, 1, 360]]


@each_case("missing", ["mean", "indicator"])
def test_a_missing_source_is_the_mean_of_the_training_rows(missing: str, new: Make) -> None:
    """This holds for a column that is not a feature of the model, too."""
    assert new(BINS, "id,income,age\na,,30\nb,3,\n", missing=missing).numbers() == [[30, 1, 750], [25, 0, 75]]


def test_a_column_that_only_recipes_read_may_be_left_out_of_the_features(new: Make) -> None:
    derive = {"other": {"by": "bins", "of": "income", "bins": 2}}
    assert new(BINS, "id,income,age\na,2,25\n", derive=derive, **{"except": ["income"]}).numbers() == [[25, 0, 50]]
    with pytest.raises(ConfigError, match=r"datasets\.new\.except leaves out income, which the model has"):
        new(BINS, "id,income,age\na,2,25\n", **{"except": ["income"]}).source()


def test_a_logarithm_is_declared_by_the_dataset_of_new_rows(new: Make) -> None:
    """The owner learns of a number without a logarithm, and no job informs others."""
    text = "id,income,age\na,2,25\n"
    rows = new(LOGS, text)
    with refused('set {} = { by = "{}", of = {} }') as told:
        rows.source()
    assert 'set datasets.new.derive.income_log = { by = "log1p", of = "income" }' in told.text
    assert "column income: the model computes its log1p, and the dataset does not declare this recipe" in told.text
    here = PartyHere("bank", "new", rows.party.settings, rows.root / "bank.toml")
    with pytest.raises(DataError, match="the model computes its log1p"):
        here.read_scaled(rows.part.standardiser)
    led_past(told, lambda: new(LOGS, text, derive=LOG).source())
    assert new(LOGS, text, derive=LOG).numbers() == [[25, math.log1p(2)]]


def test_a_number_without_a_logarithm_is_refused_before_anything_is_published(new: Make) -> None:
    rows = new(LOGS, "id,income,age\na,2,25\nb,-1,25\n", derive=LOG)
    with pytest.raises(DataError, match=r"row 2 .*column income: the number is not above -1") as refused_it:
        rows.snapshots.publish("new")
    assert "remove datasets.new.derive.income_log" in refused_it.value.hint
    with pytest.raises(DataError, match=r"row 2 .*column income: the number is not above -1"):
        rows.source()  # the snapshot omits the column


def test_the_pre_flight_reads_what_the_prediction_reads(new: Make) -> None:
    """They agree before anything is published, and after."""
    rows = new(LOGS, "id,income,age\na,2,25\nb,5,35\n", derive=LOG)
    here = PartyHere("bank", "new", rows.party.settings, rows.root / "bank.toml")
    for _ in range(2):
        source = here.read_scaled(rows.part.standardiser)
        assert read_rows(source, labels=False, report=lambda *_: None).features[:, 1].tolist() == [
            math.log1p(2),
            math.log1p(5),
        ]
        rows.source()


def test_a_product_that_is_too_large_is_refused_before_anything_is_published(new: Make) -> None:
    derive = {"both": {"by": "product", "of": ["age", "income"]}}
    rows = new(BINS, "id,income,age\na,2,25\nb,1e60,1e60\n", derive=derive)
    with pytest.raises(DataError, match=r"row 2 .*column age: its product with income is beyond 1e\+100"):
        rows.snapshots.publish("new")


def test_no_row_with_the_reference_level_is_told_to_the_owner(new: Make) -> None:
    part = part_of()
    rows = new(part, "id,age,region\na,2,x\nb,3,y\n", categories=["region"], reference_levels={"region": "z"})
    assert list(rows.snapshots.publish("new").remarks) == ["column region: no row has its reference level"]
    rows = new(part, "id,age,region\na,2,x\nb,3,z\n", categories=["region"], reference_levels={"region": "z"})
    assert list(rows.snapshots.publish("new").remarks) == []
    record = rows.snapshots.require_current("new").source().record
    assert record.by_name["region"] == TableColumn("region", "category", ("x",), (), base="z")


# --- a start that was fitted to public rows ---------------------------------------------------------------------------


def pretrained(*recipes: Recipe) -> Pretrained:
    record = fit_recipes(TableRecord((TableColumn("age"),), recipes=recipes), {"age": TRAINED})
    n = len(record.made)
    scale = Standardiser(record.made, tuple(range(n)), (0.0,) * n, (1.0,) * n, record)
    return Pretrained(scale, (1.0,) * n, 0.0)


@each_case("data", [Bins("age_bin", ("age",), 2), Bins("age_bin", ("age",), 2, (24.0,)), Log1p("age_bin=2", ("age",))])
def test_a_pre_trained_model_has_the_recipes_of_the_data(data: Recipe) -> None:
    """With other recipes its weights would mean something else; numbers that a training will fit are not known yet."""
    model = pretrained(Bins("age_bin", ("age",), 2))
    same = TableRecord((TableColumn("age"),), recipes=(Bins("age_bin", ("age",), 2, (25.0,)),))
    model.check_columns(same.made, same)
    with pytest.raises(DataError, match="does not compute age_bin"):
        model.check_columns(same.made, TableRecord((TableColumn("age"),), recipes=(data,)))
