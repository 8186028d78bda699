"""The tables `derive` and `reference_levels` of a party's file: valid contents, and their effect on rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from blindfit.algorithms.columns.recipes import Bins, Clip, Log1p, Product, Spline
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.source import Source
from blindfit.parties.settings import PartySettings
from blindfit.parties.tables import validate
from blindfit.parties.training.rows import read_rows
from tests.each_case import each_case
from tests.hints.parties import PARTIES

ROWS = "id,y,age,income,born,region\n" + "".join(
    f"r{i},{i % 2},{20 + i},{i * i},19{50 + i}-01-01,{('north', 'south', 'west')[i % 3]}\n" for i in range(40)
)
PARSED = {"categories": ["region"], "dates": ["born"]}


def settings_of(derive: dict[str, Any], **options: Any) -> DatasetSettings:
    values = {"url": "csv:rows.csv", "id": "id", "label": "y", "features": "rest", **PARSED, **options}
    return DatasetSettings.model_validate({**values, "derive": derive})


def opened(directory: Path, derive: dict[str, Any], text: str = ROWS, **options: Any) -> Source:
    (directory / "rows.csv").write_text(text)
    return open_source(settings_of(derive, **options), directory, "rows")


def features(source: Source) -> dict[str, list[float]]:
    rows = read_rows(source, labels=False, report=lambda *_: None)
    return dict(zip(source.feature_names, rows.features.T.tolist(), strict=True))


def test_each_table_is_a_recipe() -> None:
    derive = settings_of(
        {
            "a": {"by": "log1p", "of": "income"},
            "b": {"by": "clip", "of": "income", "low": 0},
            "c": {"by": "clip", "of": "income", "quantiles": [0.1, 0.9]},
            "d": {"by": "bins", "of": "age", "bins": 4},
            "e": {"by": "bins", "of": "age", "edges": [30, 40]},
            "f": {"by": "spline", "of": "born", "knots": 5},
            "g": {"by": "spline", "of": "age", "knots": [20, 30, 50]},
            "h": {"by": "product", "of": ["age", "income"]},
        }
    ).derive
    assert [settings.recipe(name) for name, settings in derive.items()] == [
        Log1p("a", ("income",)),
        Clip("b", ("income",), 0.0),
        Clip("c", ("income",), quantiles=(0.1, 0.9)),
        Bins("d", ("age",), 4),
        Bins("e", ("age",), 3, (30.0, 40.0)),
        Spline("f", ("born",), 5),
        Spline("g", ("age",), 3, (20.0, 30.0, 50.0)),
        Product("h", ("age", "income")),
    ]


@each_case(
    ("recipe", "said"),
    [
        ({"by": "cube", "of": "age"}, "by"),
        ({"of": "age"}, "by"),
        ({"by": "log1p"}, "of"),
        ({"by": "log1p", "of": "age", "base": 2}, "base"),
        ({"by": "log1p", "of": "age", "bins": 3}, 'bins does nothing with by = "log1p", remove it'),
        ({"by": "bins", "of": "age", "knots": 3}, 'knots does nothing with by = "bins", remove it'),
        ({"by": "log1p", "of": ["age", "income"]}, 'of: by = "log1p" takes one column'),
        ({"by": "product", "of": "age"}, 'of: by = "product" takes two columns'),
        ({"by": "product", "of": ["age", "income", "born"]}, "of"),
        ({"by": "bins", "of": "age"}, 'by = "bins" needs bins or edges'),
        ({"by": "clip", "of": "age"}, 'by = "clip" needs low or high or quantiles'),
        ({"by": "spline", "of": "age"}, 'by = "spline" needs knots'),
        ({"by": "bins", "of": "age", "bins": 3, "edges": [1, 2]}, "bins and edges exclude each other"),
        ({"by": "clip", "of": "age", "low": 3, "quantiles": [0, 1]}, "low and quantiles exclude each other"),
        ({"by": "clip", "of": "age", "low": 3, "high": 3}, "low and high: 3 is not below 3"),
        ({"by": "clip", "of": "age", "quantiles": [0.9, 0.1]}, "quantiles: 0.9 is not below 0.1"),
        ({"by": "clip", "of": "age", "quantiles": [0.1, 1.1]}, "quantiles"),
        ({"by": "bins", "of": "age", "bins": 1}, "bins"),
        ({"by": "bins", "of": "age", "bins": True}, "bins"),
        ({"by": "bins", "of": "age", "bins": 101}, "bins"),
        ({"by": "bins", "of": "age", "edges": [2, 1]}, "edges must be in ascending order"),
        ({"by": "bins", "of": "age", "edges": [2, 2]}, "edges must be in ascending order"),
        ({"by": "bins", "of": "age", "edges": []}, "edges"),
        ({"by": "bins", "of": "age", "edges": [1e101]}, "edges"),
        ({"by": "spline", "of": "age", "knots": 2}, "knots"),
        ({"by": "spline", "of": "age", "knots": 21}, "knots"),
        ({"by": "spline", "of": "age", "knots": [1, 2]}, "knots must be a number from 3 to 20, or a list of as many"),
        ({"by": "spline", "of": "age", "knots": [1, 3, 2]}, "knots must be in ascending order"),
        ({"by": "spline", "of": "age", "knots": [-1e100, 1, 2]}, "not too near to each other"),
        ({"by": "log1p", "of": "region"}, "derive.new.of: region is one of categories"),
        ({"by": "log1p", "of": "y"}, "derive.new.of: y is the id, the label"),
        ({"by": "log1p", "of": "id"}, "derive.new.of: id is the id, the label"),
        ({"by": "log1p", "of": "new"}, "derive.new.of: new is derived itself"),
    ],
)
def test_what_a_recipe_may_not_say(recipe: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        settings_of({"new": recipe})
    assert said in str(refused.value)


@each_case("name", ["id", "y", "note"])
def test_a_recipe_has_a_name_of_its_own(name: str) -> None:
    with pytest.raises(ValidationError, match=f"derive.{name}: the table has a column of this name"):
        settings_of({name: {"by": "log1p", "of": "age"}}, **{"except": ["note"]})


@each_case(
    "name",
    ["age", "region", "region=north"],
)
def test_a_recipe_has_no_name_of_the_rest(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"two columns are called {name}"):
        opened(tmp_path, {name: {"by": "log1p", "of": "income"}})


@each_case(
    ("recipe", "said"),
    [
        ({"by": "bins", "of": "x", "bins": "7"}, "datasets.rows.derive.a.bins: must be a whole number, not the text"),
        ({"by": "spline", "of": "x", "knots": [1, "b", 3]}, "datasets.rows.derive.a.knots.1: must be a number, not"),
        ({"by": "product", "of": ["x"]}, "datasets.rows.derive.a.of.1 is missing"),
        ({"by": "clip", "of": "x", "low": 1e200}, "datasets.rows.derive.a.low: 1e+200 is beyond 1e+100"),
        ("log1p", "datasets.rows.derive.a: must be a table, not a text"),
    ],
)
def test_a_mistake_is_named_by_its_option(recipe: Any, said: str) -> None:
    table = {"url": "a.csv", "id": "id", "derive": {"a": recipe}}
    with pytest.raises(ConfigError) as refused:
        validate({**PARTIES["active"], "datasets": {"rows": table}}, PartySettings, source="party.toml")
    assert said in str(refused.value)


def test_a_measurement_server_learns_from_no_column() -> None:
    values = PARTIES["server"]
    (name,) = values["datasets"]
    table = {**values["datasets"][name], "derive": {"a": {"by": "log1p", "of": "x"}}}
    with pytest.raises(ConfigError, match=rf"datasets\.{name}\.derive: does nothing here, remove it"):
        validate({**values, "datasets": {name: table}}, PartySettings, source="party.toml")


# --- rows -------------------------------------------------------------------------------------------------------------

SPLINE = {"curve": {"by": "spline", "of": "age", "knots": 3}}


def test_a_column_is_a_feature_itself_only_where_features_have_it(tmp_path: Path) -> None:
    others = ("income", "born", "region=north", "region=south", "region=west")
    assert opened(tmp_path, SPLINE).model_columns == ("age", *others, "curve=1", "curve=2")
    assert opened(tmp_path, SPLINE, **{"except": ["age"]}).model_columns == (*others, "curve=1", "curve=2")
    named = opened(tmp_path, SPLINE, features=["income"], categories=[], dates=[])
    assert named.model_columns == ("income", "curve=1", "curve=2")
    only = opened(tmp_path, SPLINE, features=[], categories=[], dates=[])
    assert only.model_columns == ("curve=1", "curve=2")


def test_a_date_that_is_no_feature_has_its_bins(tmp_path: Path) -> None:
    derive = {"era": {"by": "bins", "of": "born", "edges": [0.0]}}
    found = features(opened(tmp_path, derive, features=["age"], categories=[]).with_recipes())
    assert found["era=2"] == [float(i > 20) for i in range(40)]
    assert "born" not in found


def test_only_chosen_rows_decide_the_numbers(tmp_path: Path) -> None:
    source = opened(tmp_path, {"bin": {"by": "bins", "of": "age", "bins": 2}}, batch_rows=7)
    fitted = source.with_recipes(lambda ids: np.array([int(i[1:]) < 11 for i in ids.to_pylist()]))
    assert fitted.record.recipes == (Bins("bin", ("age",), 2, (25.0,)),)
    assert sum(features(fitted)["bin=2"]) == 34


@each_case("missing", ["mean", "indicator", "drop"])
def test_a_missing_value_is_replaced_before_a_recipe_reads_it(missing: str, tmp_path: Path) -> None:
    text = "id,y,age\na,0,10\nb,1,\nc,0,30\nd,1,50\n"
    derive = {"log": {"by": "log1p", "of": "age"}}
    source = opened(tmp_path, derive, text, missing=missing, categories=[], dates=[], **{"except": ["age"]})
    found = features(source.with_recipes())
    expected = [10.0, 30.0, 30.0, 50.0] if missing != "drop" else [10.0, 30.0, 50.0]
    np.testing.assert_allclose(found["log"], np.log1p(expected))
    assert found.get("age=") == ([0, 1, 0, 0] if missing == "indicator" else None)


def test_a_missing_value_is_refused_by_the_source_column(tmp_path: Path) -> None:
    source = opened(tmp_path, SPLINE, ROWS + "z,0,,5,1990-01-01,north\n", **{"except": ["age"]})
    with pytest.raises(DataError, match=r"row 41 .*column age: the value is missing"):
        source.with_recipes()


# --- reference levels -------------------------------------------------------------------------------------------------


@each_case(
    ("options", "said"),
    [
        ({"reference_levels": {"age": "north"}}, "reference_levels.age: age is not one of categories"),
        ({"reference_levels": {"region": ""}}, "reference_levels.region"),
        (
            {"categories": {"region": ["a", "b"]}, "reference_levels": {"region": "c"}},
            "'c' is not one of categories.region",
        ),
        ({"categories": {"region": ["a"]}, "reference_levels": {"region": "a"}}, "region has no other level"),
    ],
)
def test_what_a_reference_level_may_not_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        settings_of({}, **options)
    assert said in str(refused.value)


@each_case("categories", [["region"], {"region": ["north", "south", "west"]}])
def test_a_reference_level_has_no_column(categories: Any, tmp_path: Path) -> None:
    source = opened(tmp_path, {}, categories=categories, reference_levels={"region": " south"})
    found = features(source)
    assert [name for name in found if "=" in name] == ["region=north", "region=west"]
    assert [sum(found["region=north"]), sum(found["region=west"])] == [14, 13]
    assert source.record.by_name["region"].base == "south"


def test_a_category_of_the_reference_level_alone_keeps_its_column(tmp_path: Path) -> None:
    """Otherwise the dataset would lack the category, which a model may need."""
    source = opened(tmp_path, {}, "id,y,region\na,0,south\nb,1,south\n", dates=[], reference_levels={"region": "south"})
    assert source.feature_names == ("region=south",)
