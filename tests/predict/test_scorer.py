"""docs/scorer.py, which needs no library, gives the bits of the system."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.protocols import predict
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart, real_scores
from blindfit.parties.files import written
from blindfit.parties.predict.prediction import Scored, table_of
from tests.each_case import each_case
from tests.model_export import models as make
from tests.predict.parts import ACTIVE, DATA_PARTIES, model_parts, part_of, rows_for, standardiser

PATH = Path(__file__).parents[2] / "docs" / "scorer.py"
LAW = settings(deadline=None, max_examples=200)


@pytest.fixture(scope="module")
def scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scorer", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stored(part: VerticalModelPart) -> dict:
    return json.loads(json.dumps(part.to_dict()))


def scored(scorer: ModuleType, part: VerticalModelPart, rows: np.ndarray) -> list[int]:
    names = part.standardiser.columns
    return [scorer.score_part(stored(part), dict(zip(names, map(repr, row), strict=True))) for row in rows.tolist()]


@LAW
@given(st.data())
def test_every_part_of_a_score_is_the_same_integer(scorer, data):
    part = data.draw(st.sampled_from(DATA_PARTIES).flatmap(model_parts))
    rows = data.draw(rows_for(part))
    assert scored(scorer, part, rows) == part.score_parts(rows).tolist()


@LAW
@given(model_parts(), st.integers(-(2**60), 2**60) | st.integers(-(2**45), 2**45))
def test_every_prediction_has_the_same_bits(scorer, part, score):
    real, prediction = scorer.prediction(stored(part), score)
    assert real == real_scores(np.array([score]))[0]
    assert prediction == part.predictions(np.array([score]))[0]


def test_the_cases_where_roundings_differ_are_among_those(scorer):
    """Ties of both signs, the clip itself, huge numbers, rows at their bound: each by name, each the same."""
    scaling = standardiser(2)
    part = part_of(standardiser=scaling, weights=np.array([0.5, -(2.0**-31) * 3]), row_bound=8 * 4096)
    mean, std = np.array(scaling.mean), np.array(scaling.std)
    exact = part_of(standardiser=type(scaling)(("a", "b"), (0, 1), (0.0, 0.0), (1.0, 1.0)), weights=np.ones(2))
    half = 2.0**-13
    ties = np.array([[half, 3 * half], [-half, -3 * half], [5 * half, 8.0], [-8.0, 8.0 + half], [1e308, -1e308]])
    assert scored(scorer, exact, ties) == exact.score_parts(ties).tolist()
    assert exact.score_parts(ties)[:2].tolist() == [2 << 30, -2 << 30]  # to even: 0 + 2, and not 1 + 2 or 0 + 1
    rows = np.array([mean + 8 * std, mean - 8 * std, [1e308, -1e308], mean + std * [8, 0], mean, [5e-324, 0.0]])
    assert scored(scorer, part, rows) == part.score_parts(rows).tolist()


@each_case("text", ["nan", "inf", "-inf", "", "1_000", "NA", "0x10"])
def test_what_is_no_finite_number_is_refused_by_both(scorer, text):
    part = part_of(columns=1)
    with pytest.raises(ValueError, match=r"column c0: (the value is missing|not a finite number)$"):
        scorer.score_part(stored(part), {"c0": text})
    if text in ("nan", "inf", "-inf"):
        with pytest.raises(DataError):
            part.score_parts([[float(text)]])


# --- the command ------------------------------------------------------------------------------------------


def model_files(directory: Path, parties: dict[str, VerticalModelPart], session: str = "s") -> list[Path]:
    for name, part in parties.items():
        written.write_json(directory / f"{name}.json", {**part.to_dict(), "session": session})
    return [directory / f"{name}.json" for name in parties]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the scorer with Python only: without site-packages, the environment or the project's directory."""
    return subprocess.run([sys.executable, "-I", "-S", PATH, *map(str, arguments)], capture_output=True, text=True)


def write_rows(path: Path, ids: list[str], rows: np.ndarray, key: str = "id") -> Path:
    names = [f"c{j}" for j in range(rows.shape[1])]
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*reversed(names), key])
        table.writerows([*map(repr, row[::-1].tolist()), name] for name, row in zip(ids, rows, strict=True))
    return path


@pytest.mark.parametrize("model", ["logistic", "linear"])
@pytest.mark.parametrize("key", ["id", "tumour number"])
def test_the_command_scores_whoever_is_in_every_file(tmp_path, model, key):
    rng = np.random.default_rng(5)
    parts, rows, pairs = {}, {}, []
    ids = [f"r{i}" for i in range(30)]
    for place, name in enumerate(DATA_PARTIES):
        extra = (
            {"label_mean": 3.0, "label_scale": 0.7, "intercept": 0.1, "slope": 1.9, "offset": -0.3}
            if name == ACTIVE
            else {}
        )
        parts[name] = part_of(name, columns=place + 1, seed=place, model=model, data_parties=DATA_PARTIES, **extra)
        rows[name] = rng.normal(size=(30, place + 1)) * 50
    for path, name in zip(model_files(tmp_path, parts), DATA_PARTIES, strict=True):
        order = np.arange(30) if name == ACTIVE else rng.permutation(30)[:25]
        held = [ids[i] for i in order] + [f"only {name}"]
        table = write_rows(
            tmp_path / f"{name}.csv", held, np.vstack([rows[name][order], np.zeros(rows[name].shape[1])]), key
        )
        pairs += [path, table]
        rows[name] = (set(held), rows[name])
    common = [i for i in range(30) if all(ids[i] in held for held, _ in rows.values())]
    total = predict.run_locally(*_split([parts[n].score_parts(rows[n][1][common]) for n in DATA_PARTIES]))
    expected = table_of(parts[ACTIVE], Scored(pa.array([ids[i] for i in common]), total)).to_pylist()
    done = run(*([] if key == "id" else ["--id", key]), *reversed(_pairs(pairs)))
    assert done.returncode == 0, done.stderr
    told = list(csv.DictReader(done.stdout.splitlines()))
    assert len(expected) > 5
    assert [{k: v if k == "id" else float(v) for k, v in row.items()} for row in told] == expected


def _split(parts: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    return parts[0], parts[1:]


def _pairs(files: list[Path]) -> list[Path]:
    """Return the pairs of files, so that `reversed` turns the pairs round, and not the files of a pair."""
    return [file for pair in zip(files[1::2], files[::2], strict=True) for file in pair]


@each_case("system", ["walr", "dp_lr", "label_dp"])
def test_the_command_scores_a_model_that_is_not_in_parts(system, tmp_path):
    rng, names = np.random.default_rng(6), ["c0", "c1", "c2"]
    model = getattr(make, system)(TableRecord.of_numbers(names), rng)
    written.write_json(tmp_path / "model.json", model.to_dict())
    rows = rng.normal(size=(9, 3)) * 5
    table = write_rows(tmp_path / "rows.csv", [f"r{i}" for i in range(9)], rows)
    done = run(tmp_path / "model.json", table)
    assert done.returncode == 0, done.stderr
    (_, score, predicts), *found = csv.reader(done.stdout.splitlines())
    for (_, *said), row in zip(found, rows.tolist(), strict=True):
        expected = make.answer([model], dict(zip(names, row, strict=True)))
        assert [float(number) for number in said] == pytest.approx([expected[score], expected[predicts]], rel=1e-12)
    part, rows_of_part, *_ = two_parties(tmp_path)
    assert "one of the models is whole" in refused(tmp_path / "model.json", table, part, rows_of_part)


def two_parties(directory: Path) -> list[Path]:
    pair = (ACTIVE, "post")
    parts = {name: part_of(name, data_parties=pair) for name in pair}
    one, other = model_files(directory, parts)
    rows = [write_rows(directory / f"{name}.csv", ["a", "b"], np.zeros((2, 3))) for name in pair]
    return [one, rows[0], other, rows[1]]


def refused(*arguments: object) -> str:
    done = run(*arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr.strip()


def test_a_reader_that_has_read_enough_ends_the_command_without_a_word(tmp_path):
    """The command `| head` does this."""
    names = ["c0", "c1", "c2"]
    rng = np.random.default_rng(6)
    written.write_json(tmp_path / "model.json", make.walr(TableRecord.of_numbers(names), rng).to_dict())
    rows = write_rows(tmp_path / "rows.csv", [f"r{i}" for i in range(20_000)], rng.normal(size=(20_000, 3)))
    command = [sys.executable, "-I", "-S", PATH, str(tmp_path / "model.json"), str(rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as scoring:
        assert scoring.stdout is not None
        assert scoring.stderr is not None
        assert scoring.stdout.readline().startswith("id,")
        scoring.stdout.close()
        assert scoring.stderr.read() == ""


def test_a_wrong_call_is_refused_in_one_line(tmp_path):
    files = two_parties(tmp_path)
    assert run(*files).returncode == 0
    assert refused(*files[:2]) == "error: the model needs one part of each of bank, post"
    assert "error: the model needs one part" in refused(*files, *files[2:])
    odd = run(*files[:3])
    assert odd.returncode == 2
    assert odd.stderr.splitlines()[-1].endswith("error: every part of the model needs its rows: MODEL ROWS")
    assert refused(files[1], files[0]) == f"error: {files[1]} is not a linear model, or a part of one"
    assert refused("--id", "number", *files) == f"error: {files[1]} has no column number"
    model_files(tmp_path, {"post": part_of("post", data_parties=(ACTIVE, "post"))}, session="another")
    assert "not of one training" in refused(*files)


def test_columns_are_found_by_name_each_once(tmp_path):
    files = two_parties(tmp_path)
    files[1].write_text("c0,c1,c2,id\n1,2,3,a\n4,5,6,b\n")
    expected = run(*files).stdout
    files[1].write_text("c2,note,id,c1,c0,note\n3,x,a,2,1,y\n6,x,b,5,4,y\n")
    assert run(*files).stdout == expected
    assert len(expected.splitlines()) == 3
    files[1].write_text("id,c1,wage\na,1,2\n")
    assert refused(*files) == f"error: {files[1]} has no column c0, c2"
    files[1].write_text("id,c0,c1,c2,c1\na,1,2,3,4\n")
    assert refused(*files) == f"error: {files[1]} has the column c1 twice"
    files[1].write_text("id,c0,c1,c2\na,1,000,2,3\n")
    assert refused(*files) == f"error: {files[1]} has a row with more values than there are columns"


def test_rows_that_are_wrong_are_refused_in_one_line(tmp_path):
    files = two_parties(tmp_path)
    write_rows(files[1], ["a", "a"], np.zeros((2, 3)))
    assert refused(*files) == f"error: {files[1]} has an id twice"
    write_rows(files[1], ["a", "b"], np.array([[0.0, math.nan, 0.0], [0.0, 0.0, 0.0]]))
    assert refused(*files) == f"error: {files[1]}, the row with the id 'a', column c1: the value is missing"
    files[1].unlink()
    assert "No such file" in refused(*files)
