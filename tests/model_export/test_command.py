"""`blindfit export-model` and `blindfit.export_model`: models that real jobs trained, and what is refused."""

from __future__ import annotations

import csv
import datetime as dt
import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blindfit
from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.model_export.formula import formula_of
from blindfit.algorithms.statistics.label_dp.model import Trees
from blindfit.coordinator.export_model.command import export_model
from blindfit.parties.systems import load_model
from tests.command import blindfit as command
from tests.each_case import each_case
from tests.hints.following import led_past, refused
from tests.model_export import models as make
from tests.model_export import runtimes
from tests.world.vertical import bank_and_shops

FORMATS = ("onnx", "pmml", "python", "sql")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The parts of a model that a bank and two shops trained."""
    world = bank_and_shops(tmp_path_factory.mktemp("trained"), rows=300, epochs=1)
    session = world.run()
    return sorted(world.root.rglob(f"models/{session.id}/model.json"))


def test_parts_of_one_training_are_merged(trained: list[Path], tmp_path: Path) -> None:
    parts = [load_model(path) for path in trained]
    parts.sort(key=lambda part: part.data_parties.index(part.party))
    names = [each.name for each in formula_of(parts).inputs]
    assert "bank.x0" in names
    rows = [{name: 0.1 * j - place for j, name in enumerate(names)} for place in range(5)]
    expected = [make.answer(parts, row) for row in rows]
    done = command(tmp_path, "export-model", *map(str, trained), "--format", "python", "--out", "model.py", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outputs"] == ["score", "probability"]
    text = (tmp_path / "model.py").read_text()
    assert runtimes.run_python(text, rows) == expected
    session = json.loads(trained[0].read_text())["session"]
    assert f"# session: {session}" in text
    assert "# parties in this file: bank, shop-a, shop-b" in text
    assert "# privacy: " in text


def write(path: Path, model: Any, session: str = "s1") -> Path:
    path.write_text(json.dumps(model.to_dict() | {"session": session}))
    return path


@each_case("form", FORMATS)
def test_every_format_is_written_next_to_the_model(form: str, tmp_path: Path) -> None:
    path = write(
        tmp_path / "model.json", make.part(make.record_of({"age": ("number", "refuse")}), np.random.default_rng(1))
    )
    done = command(tmp_path, "export-model", str(path), "--format", form)
    assert done.returncode == 0, done.stderr
    (made,) = set(tmp_path.iterdir()) - {path}
    assert made.stem == "model"
    assert done.stdout.splitlines()[0] == f"{made}: 1 columns in, score, probability out"
    assert blindfit.export_model(path, form, out=tmp_path / "again").document["outputs"] == ("score", "probability")
    assert (tmp_path / "again").read_bytes() == made.read_bytes()
    content = made.read_bytes().decode(errors="replace")
    assert "s1" in content
    assert "bank" in content
    assert "privacy" in content


def test_a_part_says_that_it_is_one(tmp_path: Path) -> None:
    part = make.part(
        make.record_of({"age": ("number", "refuse")}), np.random.default_rng(1), "post", data_parties=("bank", "post")
    )
    found = blindfit.export_model(part, "sql", out=tmp_path / "part.sql")
    assert found.document["outputs"] == ("score_part",)
    assert "bank" in found.shown[1]
    assert 'AS "score_part"' in (tmp_path / "part.sql").read_text()


# --- the command of an exported file ----------------------------------------------------------------------


def test_the_exported_file_scores_csv_without_any_package(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    columns: Any = {"age": ("number", "mean"), "region": ("category", "indicator")}
    both = ("bank", "post")
    parts = [make.part(make.record_of(columns), rng, name, data_parties=both) for name in both]
    blindfit.export_model(parts, "python", out=tmp_path / "model.py")
    rows = [
        {"bank.age": "41", "bank.region": "north", "post.age": None, "post.region": "never met"},
        {"bank.age": None, "bank.region": None, "post.age": "-2.5", "post.region": "o'clock"},
    ]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["person", *rows[0]])
        table.writerows([f"p{place}", *row.values()] for place, row in enumerate(rows))
    asked = [sys.executable, "-I", "-S", "model.py", "--id", "person", "rows.csv"]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [
        {name: float(row[name]) for name in ("score", "probability")}
        for row in csv.DictReader(done.stdout.splitlines())
    ]
    assert found == [make.answer(parts, row) for row in rows]
    assert "training did not meet the level 'never met'" in done.stderr


def test_a_row_holds_texts_or_typed_values(tmp_path: Path) -> None:
    record = make.record_of(
        {"n": ("number", "mean"), "b": ("boolean", "refuse"), "d": ("date", "mean"), "c": ("category", "mean")}
    )
    model = make.part(record, np.random.default_rng(2))
    blindfit.export_model(model, "python", out=tmp_path / "model.py")
    typed = [
        {"n": 7, "b": True, "d": dt.date(2024, 5, 31), "c": 1},
        {"n": 2**70, "b": 0.0, "d": dt.datetime(2024, 5, 31, 12, 30, tzinfo=dt.UTC), "c": "1"},
        {"n": np.float64(0.1), "b": np.int64(1), "d": None, "c": True},
        {"n": float("nan"), "b": False, "d": "", "c": 1.0},
    ]
    texts = [
        {"n": "7", "b": "true", "d": "2024-05-31", "c": "1"},
        {"n": str(2**70), "b": "0", "d": "2024-05-31T12:30Z", "c": "1"},
        {"n": "0.1", "b": "1", "d": "", "c": "true"},
        {"n": "", "b": "0", "d": None, "c": "1"},
    ]
    text = (tmp_path / "model.py").read_text()
    assert runtimes.run_python(text, typed) == runtimes.run_python(text, texts)
    assert all(runtimes.run_python(text, typed))


# --- names ------------------------------------------------------------------------------------------------


@each_case(
    "name, says",
    [
        ("", "an empty name"),
        ("a\0b", "NUL"),
        ("half \ud800", "not valid Unicode"),
        ("score", "an output of the exported model has this name"),
        ("blindfit row", "has this name"),
    ],
)
def test_a_name_that_not_every_format_can_write_is_refused(name: str, says: str) -> None:
    model = make.part(make.record_of({name: ("number", "refuse")}), np.random.default_rng(1))
    with pytest.raises(DataError, match=says):
        export_model([model], "sql")


def test_xml_has_no_control_characters(tmp_path: Path) -> None:
    model = make.part(make.record_of({"a\x01b": ("number", "refuse")}), np.random.default_rng(1))
    with pytest.raises(DataError, match=r"column 'a\\x01b': its name or a level has a control character"):
        export_model([model], "pmml", out=tmp_path / "a")
    export_model([model], "sql", out=tmp_path / "a")


@each_case("form", ["sql", "python"])
def test_no_name_ends_the_comment_that_it_is_in(form: str, tmp_path: Path) -> None:
    path = write(
        tmp_path / "m.json",
        make.part(make.record_of({"age": ("number", "refuse")}), np.random.default_rng(1), "bank\nimport os; --"),
        session="s\r\u2028DROP TABLE rows_to_score",
    )
    blindfit.export_model(path, form)
    lines = next(path.parent.glob("m.[ps]*")).read_text().splitlines()
    assert not [line for line in lines if line.startswith(("import os;", "DROP"))]
    assert [line for line in lines if line.startswith(("#", "--")) and "DROP" in line]


# --- what is refused --------------------------------------------------------------------------------------


def _two(tmp_path: Path, second: str = "s1") -> list[Path]:
    rng, both = np.random.default_rng(1), ("bank", "post")
    parts = [make.part(make.record_of({"age": ("number", "refuse")}), rng, name, data_parties=both) for name in both]
    return [
        write(tmp_path / "bank.json", parts[0]),
        write(tmp_path / "post.json", parts[1], second),
    ]


def test_parts_must_be_all_of_one_training(tmp_path: Path) -> None:
    bank, post = _two(tmp_path)
    export_model([post, bank], "sql")
    with refused("take the files of one session") as told:
        export_model(_two(tmp_path, "s2"), "sql")
    led_past(told, lambda: export_model(_two(tmp_path), "sql"))
    with pytest.raises(DataError, match="bank: its part is given twice"):
        export_model([bank, bank], "sql")
    third = make.part(
        make.record_of({"x": ("number", "refuse")}),
        np.random.default_rng(1),
        "bank",
        data_parties=("bank", "post", "shop"),
    )
    other = make.part(
        make.record_of({"x": ("number", "refuse")}),
        np.random.default_rng(1),
        "shop",
        data_parties=("bank", "post", "shop"),
    )
    with pytest.raises(DataError, match="the part of post is missing"):
        export_model([third, other], "sql")
    with pytest.raises(DataError, match="not of one training"):
        export_model([third, load_model(post)], "sql")


def test_only_linear_models_are_exported(tmp_path: Path) -> None:
    ridge = make.label_dp(make.record_of({"x": ("number", "refuse")}), np.random.default_rng(1))
    forest = replace(ridge, regressor="random-forest", form=Trees((), 0.0, 1.0))
    with refused("`predict` of `blindfit.load_model` scores with it") as told:
        export_model([forest], "onnx")
    assert "a random-forest cannot be exported" in told.text
    led_past(told, lambda: forest.predict([[1.0]]))
    with pytest.raises(DataError, match="only parts of one model can be merged"):
        export_model([ridge, ridge], "onnx")


@each_case("changes", [{"score_rounding": 45}, {"row_bound": 10**6, "columns": 600}])
def test_what_doubles_would_round_is_refused(changes: dict[str, int], tmp_path: Path) -> None:
    more = dict(changes)
    record = TableRecord.of_numbers([f"x{place}" for place in range(more.pop("columns", 2))])
    rng, both = np.random.default_rng(1), ("bank", "post")
    weights = np.full(len(record.made), 8000.0 / 1024 / len(record.made) * 2)
    part = make.part(record, rng, "post", data_parties=both, feature_bound=1024.0, weights=weights, **more)
    for form in ("sql", "onnx", "pmml"):
        with refused("export it as python, whose whole numbers have no limit") as told:
            export_model([part], form, out=tmp_path / "model")
    led_past(told, lambda: export_model([part], "python", out=tmp_path / "model"))


@each_case("form, dialect", [("csv", None), ("sql", "oracle"), ("onnx", "sqlite")])
def test_a_wrong_format_is_refused(form: str, dialect: str | None, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        export_model(_two(tmp_path)[:1], form, dialect)


def test_a_folder_is_refused_and_the_models_in_it_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder, and an export takes model files") as refused:
        export_model([tmp_path], "sql")
    assert refused.value.hint == "name a model.json"
    for party in ("bank", "my shop"):
        (tmp_path / party).mkdir()
        (tmp_path / party / "model.json").write_text("{}")
    with pytest.raises(ConfigError) as refused:
        export_model([tmp_path], "sql")
    assert shlex.split(str(refused.value.hint))[1:] == [f"{tmp_path}/bank/model.json", f"{tmp_path}/my shop/model.json"]


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with refused("run `pip install 'onnx>=1.17'`"):
        export_model(_two(tmp_path)[:1], "onnx")
    monkeypatch.undo()
    assert export_model(_two(tmp_path)[:1], "onnx")
