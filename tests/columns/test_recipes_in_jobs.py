"""Recipes through whole jobs of every system: fitted to training rows, and applied alike by every scorer."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from structlog.testing import capture_logs

from blindfit import load_model
from blindfit.algorithms.statistics.vertical.model import real_scores
from blindfit.parties.vertical.model_store import SharedModels
from tests.certificates import demo_authority
from tests.columns.scorers import SCORER
from tests.each_case import each_case
from tests.interference.systems import CHAIN, SYSTEMS
from tests.interference.world import Case, Rows, begin
from tests.shared_scores.test_job import OFF, SAME, SHARED, UNROUNDED
from tests.world import World
from tests.world.vertical import bank_and_shops, bank_and_shops_in_shares

DERIVE: dict[str, Any] = {
    "income_log": {"by": "log1p", "of": "income"},
    "income_cap": {"by": "clip", "of": "income", "quantiles": [0.05, 0.9]},
    "age_bin": {"by": "bins", "of": "age", "bins": 3},
    "age_curve": {"by": "spline", "of": "age", "knots": 4},
    "age_income": {"by": "product", "of": ["age", "income"]},
}
GIVEN: dict[str, Any] = {
    **DERIVE,
    "income_cap": {"by": "clip", "of": "income", "low": 1.0, "high": 4000.0},
    "age_bin": {"by": "bins", "of": "age", "edges": [30, 50]},
    "age_curve": {"by": "spline", "of": "age", "knots": [25, 35, 45, 60]},
}
MADE = ("income_log", "income_cap", "age_bin=2", "age_bin=3", "age_curve=1", "age_curve=2", "age_curve=3", "age_income")
#: Age is read by recipes and is no feature itself; income is both.
OPTIONS = {"except": ["age"], "categories": ["region"], "reference_levels": {"region": "north"}}
HELD_OUT = {
    "walr": ("held_out_scores.csv", "probability"),
    "dp-lr": ("held_out_scores.csv", "probability"),
    "label-dp": ("held_out_predictions.csv", "prediction"),
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_authority(tmp_path_factory.mktemp("authority"))


def with_columns(rows: Rows) -> Rows:
    draw = np.random.default_rng(6)
    return {
        name: {
            **row,
            "age": round(float(draw.gamma(4.0, 10.0)), 2),
            "income": round(float(draw.lognormal(6, 1)), 2),
            "region": ("north", "south", "west")[int(draw.integers(0, 3))],
        }
        for name, row in rows.items()
    }


def case_of(system: str) -> tuple[Case, str]:
    """Return a system whose active party derives columns, and that party's name."""
    case = SYSTEMS[system]()
    party = next(name for name, role in case.roles.items() if role == "active")
    given = system in ("dp-lr", "falcon-private")
    options = {**OPTIONS, "derive": GIVEN if given else DERIVE}
    if given:
        options["categories"] = {"region": ["north", "south", "west"]}
        table = "dp_lr" if system == "dp-lr" else "falcon"
        case = case.with_job(**{f"{table}__feature_bounds": ["income:0:9000", "age_income:0:400000", "*:-4:9"]})
    case = case.with_dataset(party, **options)
    if "falcon" not in system:
        case = case.with_job(split__test_fraction=0.3)
    return case.with_data({**case.data, party: with_columns(case.data[party])}), party


def kept(root: Path, name: str) -> list[Path]:
    return sorted(path for path in root.rglob(name) if "state" in path.parts)


def column(path: Path, name: str) -> dict[str, float]:
    with path.open(newline="") as file:
        return {row["id"]: float(row[name]) for row in csv.DictReader(file)}


def recipes_in(model: dict[str, Any], table: str = "standardiser") -> dict[str, dict[str, Any]]:
    return {recipe["name"]: recipe for recipe in model[table]["table"]["recipes"]}


def check_fitted(recipes: dict[str, dict[str, Any]], trained: Rows) -> None:
    """Check that the numbers are quantiles of these rows, and of no others."""
    age, income = (np.array([row[name] for row in trained.values()]) for name in ("age", "income"))
    cap = recipes["income_cap"]
    assert [cap["low"], cap["high"]] == np.quantile(income, [0.05, 0.9]).tolist()
    assert recipes["age_bin"]["edges"] == np.quantile(age, [1 / 3, 2 / 3]).tolist()
    np.testing.assert_allclose(recipes["age_curve"]["knots"], np.quantile(age, [0.05, 0.35, 0.65, 0.95]), rtol=1e-14)


@pytest.mark.parametrize("system", HELD_OUT)
def test_numbers_come_from_training_rows_and_held_out_rows_are_scored_by_them(
    system: str, tmp_path: Path, authority: Path
) -> None:
    case, party = case_of(system)
    assert begin(case, authority, tmp_path).errors == ("",)
    name, what = HELD_OUT[system]
    (path,), (stored,) = kept(tmp_path, name), kept(tmp_path, "model.json")
    expected = column(path, what)
    assert len(expected) > 5
    model, content, rows = load_model(stored), json.loads(stored.read_text()), case.data[party]
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("id").reset_index()
    found = model.predict(frame) if what == "prediction" else model.predict_proba(frame)[:, 1]
    by_id = dict(zip(frame["id"], found.tolist(), strict=True))
    assert {i: by_id[i] for i in expected} == expected
    scale = content["scale" if system == "dp-lr" else "standardiser"]
    assert set(scale["columns"]) == {"x0", "x1", "income", "region=south", "region=west", *MADE}
    recipes = recipes_in({"standardiser": scale})
    if system == "dp-lr":
        assert recipes["age_bin"]["edges"] == [30, 50]
        assert scale["table"]["fill"] == {"age": 45.0}  # no mean of rows
    else:
        check_fitted(recipes, {i: row for i, row in rows.items() if i not in expected})


@pytest.mark.parametrize("system", ["falcon", "falcon-private"])
def test_parties_of_several_train_with_recipes(system: str, tmp_path: Path, authority: Path) -> None:
    case, party = case_of(system)
    assert begin(case, authority, tmp_path).errors == ("",)
    (stored,) = [path for path in kept(tmp_path, "model.json") if party in path.parts]
    content = json.loads(stored.read_text())
    assert set(MADE) <= set(content["standardiser"]["columns"])
    assert "age" not in content["standardiser"]["columns"]
    frame = pd.DataFrame.from_dict(case.data[party], orient="index")
    assert np.isfinite(load_model(stored).score_parts(frame)).all()


def test_weights_of_derived_columns_count_as_those_of_other_columns(tmp_path: Path, authority: Path) -> None:
    """Sixty-four rows have room for the weights of two columns, and not of thirteen."""
    case, party = case_of("walr-holders")
    few = {"except": ["age", "income", "region", "x1"], "derive": {"bin": {"by": "bins", "of": "age", "bins": 2}}}
    errors = []
    for name, own in {"few": {**few, "categories": [], "reference_levels": {}}, "many": {}}.items():
        (tmp_path / name).mkdir()
        errors += begin(case.with_dataset(party, **own), authority, tmp_path / name).errors
    assert errors[0] == ""
    assert "use more rows or fewer columns" in errors[1]
    (stored,) = [path for path in kept(tmp_path / "few", "model.json") if party in path.parts]
    assert json.loads(stored.read_text())["standardiser"]["columns"] == ["x0", "bin=2"]


def with_gaps(rows: Rows) -> Rows:
    """Return the rows, every seventh of them without an age."""
    return {i: {**row, "age": ""} if place % 7 == 0 else row for place, (i, row) in enumerate(rows.items())}


@each_case("system", ["walr", "label-dp"])
@each_case("missing", ["refuse", "mean", "indicator"])
def test_a_held_out_value_moves_no_number(system: str, missing: str, tmp_path: Path, authority: Path) -> None:
    """A held-out value affects neither a quantile nor the mean of all rows, which replaces a missing value."""
    case, party = case_of(system)
    case, data = case.with_dataset(party, missing=missing), case.data[party]
    if missing != "refuse":
        data = with_gaps(data)
    found = []
    for number, root in enumerate((tmp_path / "a", tmp_path / "b")):
        root.mkdir()
        if number:
            name, what = HELD_OUT[system]
            (path,) = kept(tmp_path / "a", name)
            data = {i: {**row, "age": 1e6} if i in column(path, what) else row for i, row in data.items()}
        assert begin(case.with_data({**case.data, party: data}), authority, root).errors == ("",)
        (stored,) = kept(root, "model.json")
        found.append(json.loads(stored.read_text()))
    assert recipes_in(found[0]) == recipes_in(found[1])
    if missing == "refuse":
        assert found[0]["standardiser"] == found[1]["standardiser"]


@each_case("missing", ["mean", "indicator"])
def test_a_value_that_was_filled_in_decides_no_number_of_several_parties(
    missing: str, tmp_path: Path, authority: Path
) -> None:
    case, party = case_of("falcon")
    data = with_gaps(case.data[party])
    case = case.with_job(split__test_fraction=0.0)  # every row trains
    case = case.with_dataset(party, missing=missing).with_data({**case.data, party: data})
    assert begin(case, authority, tmp_path).errors == ("",)
    (stored,) = [path for path in kept(tmp_path, "model.json") if party in path.parts]
    known = {i: row for i, row in data.items() if row["age"] != ""}
    ages = np.array([row["age"] for row in known.values()])
    assert recipes_in(json.loads(stored.read_text()))["age_bin"]["edges"] == np.quantile(ages, [1 / 3, 2 / 3]).tolist()


@each_case("system", ["dp-lr", "falcon-private"])
@each_case(
    ("recipe", "numbers", "hint"),
    [
        ({"by": "clip", "of": "income", "quantiles": [0.1, 0.9]}, "low and high", "low = 0, high = 100"),
        ({"by": "bins", "of": "income", "bins": 3}, "edges", "edges = [30, 50]"),
        ({"by": "spline", "of": "income", "knots": 3}, "knots", "knots = [20, 40, 60]"),
    ],
)
def test_numbers_of_rows_are_no_part_of_a_promise_about_rows(
    system: str, recipe: dict[str, Any], numbers: str, hint: str, tmp_path: Path, authority: Path
) -> None:
    case, party = case_of(system)
    case = case.with_dataset(party, **{"except": []}, derive={"bad": recipe})
    with capture_logs() as logged:
        (error,) = begin(case, authority, tmp_path).errors
    assert "cannot take part" in error
    said = " ".join(map(str, logged))
    assert f"datasets.rows.derive.bad: {numbers} from the rows would reveal something of them" in said
    assert f'datasets.rows.derive.bad = {{ by = "{recipe["by"]}", of = "income", {hint} }}' in said


# --- several parties: one training, scored by everybody ---------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, str]:
    """A bank and two shops; one shop derives columns, and some of their source values are missing."""
    project = bank_and_shops(tmp_path_factory.mktemp("derived"), rows=400, epochs=1)
    shop = pd.read_csv(project.root / "shop-a.csv", index_col="id")
    rows = with_columns({i: dict(row) for i, row in shop.iterrows()})
    for i, row in enumerate(rows.values()):
        row["age"] = "" if i % 11 == 0 else row["age"]
    write(project.root / "shop-a.csv", rows)
    options = {**OPTIONS, "missing": "indicator"}
    text = "".join(f"{name} = {toml(value)}\n" for name, value in {**options, "derive": DERIVE}.items())
    project.edit("shop-a.toml", 'features = "rest"\n', f'features = "rest"\n{text}')
    return project, project.run("split.test_fraction=0.3", "taylor.batch_rows=128").id


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(inner)}" for name, inner in value.items()) + " }"
    return json.dumps(value)


def write(path: Path, rows: Rows) -> None:
    pd.DataFrame.from_dict(rows, orient="index").rename_axis("id").to_csv(path)


def test_joint_local_and_plain_scores_are_the_same_numbers(trained: tuple[World, str]) -> None:
    """The new rows are also far outside the range of the training rows, and lack some values."""
    project, session = trained
    shop = pd.read_csv(project.root / "shop-a.csv", index_col="id").head(60)
    shop.loc[shop.index[:6], "age"] = [-1e6, 0.0, 1e6, 1e300, -1e90, 33.0]
    shop.loc[shop.index[:6], "income"] = [0.0, -0.5, 1e90, 5.0, 1e-9, 7.0]
    shop["age"] = shop["age"].clip(-1e99, 1e99)
    shop.to_csv(project.root / "new.csv")
    project.edit("shop-a.toml", "csv:shop-a.csv", "csv:new.csv")
    try:
        predicted = project.run(f"predict.session={session}", job="predict.toml")
    finally:
        project.edit("shop-a.toml", "csv:new.csv", "csv:shop-a.csv")  # for the other tests of this training
    joint = column(project.root / "state/bank/predictions" / predicted.id / "scores.csv", "score")
    assert len(joint) == 60
    files = {name: project.root / "state" / name / "models" / session / "model.json" for name in CHAIN}
    tables = {"bank": "bank.csv", "shop-a": "new.csv", "shop-b": "shop-b.csv"}
    arguments = [argument for name in CHAIN for argument in (files[name], project.root / tables[name])]
    done = subprocess.run([sys.executable, "-I", "-S", SCORER, *arguments], capture_output=True, text=True, check=True)
    assert {row["id"]: float(row["score"]) for row in csv.DictReader(done.stdout.splitlines())} == joint
    total: dict[str, int] = dict.fromkeys(joint, 0)
    for name in CHAIN:
        table = pd.read_csv(project.root / tables[name])
        for row, part in zip(table["id"], load_model(files[name]).score_parts(table).tolist(), strict=True):
            if row in total:
                total[row] += part
    assert {row: real_scores(np.array([part]))[0] for row, part in total.items()} == joint


def test_a_part_records_its_recipes_and_the_mean_of_a_column_that_only_they_read(trained: tuple[World, str]) -> None:
    project, session = trained
    scale = project.written("shop-a", session)["standardiser"]
    assert set(scale["columns"]) > {"age=", "region=south", "region=west", *MADE}
    assert not {"age", "region=north"} & set(scale["columns"])
    table = scale["table"]
    assert [column["name"] for column in table["columns"] if not column.get("feature", True)] == ["age"]
    assert next(column["base"] for column in table["columns"] if column["name"] == "region") == "north"
    assert list(recipes_in({"standardiser": scale})) == list(DERIVE)
    assert 30 < table["fill"]["age"] < 50


def test_a_model_that_nobody_holds_scores_as_the_one_that_was_opened(tmp_path: Path) -> None:
    """Only the rounding of its weights differs: each party has its own recipes."""
    project = bank_and_shops_in_shares(tmp_path, rows=160, epochs=2)
    shop = pd.read_csv(tmp_path / "shop-a.csv", index_col="id")
    write(tmp_path / "shop-a.csv", with_columns({i: dict(row) for i, row in shop.iterrows()}))
    derive = {name: DERIVE[name] for name in ("income_log", "age_bin")}
    own = {"except": ["age", "income", "region", "x0"], "derive": derive}
    text = "".join(f"{name} = {toml(value)}\n" for name, value in own.items())
    project.edit("shop-a.toml", 'features = "rest"\n', f'features = "rest"\n{text}')
    found, sessions = [], []
    for option in (SHARED, UNROUNDED):
        sessions.append(project.run(*SAME, option, 'falcon.security="semi-honest"').id)
        predicted = project.run(f'predict.session="{sessions[-1]}"', job="predict.toml").id
        found.append(column(tmp_path / "state/bank/predictions" / predicted / "scores.csv", "score"))
    shared, opened = found
    assert shared.keys() == opened.keys()
    assert len(shared) == 160
    size = dict.fromkeys(shared, 1.0)  # bound for each row, the intercept included: each weight is off by a step
    for name in ("bank", "shop-a", "shop-b"):
        table = pd.read_csv(tmp_path / f"{name}.csv")
        scale = load_model(tmp_path / "state" / name / "models" / sessions[1] / "model.json").standardiser
        for row, x in zip(table["id"], scale.transform(table), strict=True):
            if row in size:
                size[row] += np.abs(x.clip(-8, 8)).sum()
    step = 2.0 ** -SharedModels(tmp_path / "state/bank").read(sessions[0]).kept_bits
    off = {row: abs(shared[row] - opened[row]) / size[row] for row in shared}
    assert max(off.values()) < step + OFF
    (one, other) = SharedModels(tmp_path / "state/shop-a").read(sessions[0]), project.written("shop-a", sessions[1])
    assert one.standardiser.to_dict() == other["standardiser"]
    assert set(recipes_in(other)) == set(derive)


def test_the_pre_flight_names_derived_columns(trained: tuple[World, str]) -> None:
    project, _ = trained
    said = [finding.text for finding in project.check() if finding.about == "shop-a" and finding.level == "ok"]
    assert {
        "income_log: 1 column by log1p of income",
        "income_cap: 1 column by clip of income",
        "age_bin: 2 columns by bins of age",
        "age_curve: 3 columns by spline of age",
        "age_income: 1 column by product of age and income",
    } <= set(said)


@pytest.mark.parametrize("number", [-1.0, -3.5])
def test_a_number_that_log1p_cannot_take_is_refused_by_row_to_its_owner(number: float, tmp_path: Path) -> None:
    """The refusal comes when the rows are published, so that no job informs others."""
    project = bank_and_shops(tmp_path, rows=60)
    shop = pd.read_csv(tmp_path / "shop-a.csv")
    shop["income"] = 5.0
    shop.loc[7, "income"] = number
    shop.to_csv(tmp_path / "shop-a.csv", index=False)
    derive = 'derive = { income_log = { by = "log1p", of = "income" } }\n'
    project.edit("shop-a.toml", 'features = "rest"\n', f'features = "rest"\n{derive}')
    refused = project.blindfit("snapshot", "shop-a.toml", "rows")
    assert refused.returncode
    said = " ".join((refused.stdout + refused.stderr).split())
    assert "row 8" in said
    assert "column income: the number is not above -1" in said
    assert "remove datasets.rows.derive.income_log" in said
