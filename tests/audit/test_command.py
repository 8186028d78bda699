"""`blindfit attack`, as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from blindfit.algorithms.privacy import label_mechanisms
from blindfit.algorithms.privacy.label_mechanisms import NAMES, LabelGrid
from blindfit.coordinator.attack import mechanism
from blindfit.coordinator.attack import model as audit_model
from blindfit.coordinator.cli import attack as audit
from tests import command
from tests.audit import models, mutants
from tests.command import Done
from tests.processes.reading import error_line

SURE = "0.999999"  # draws have no seed: at the default's 0.999 a good mechanism would fail once in 1000 runs
CONTEXT = SimpleNamespace(ensure_object=lambda kind: kind())  # the default of the command line
FILES = ("--members", "members.csv", "--non-members", "others.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    trained, others = models.rows(models.ROWS, 0), models.rows(models.ROWS, 1)
    models.write_csv(tmp_path / "members.csv", trained, 0)
    models.write_csv(tmp_path / "others.csv", others, 1000)
    overfitted = models.overfitted(trained)
    (tmp_path / "model.json").write_text(models.as_walr(overfitted))
    (tmp_path / "part.json").write_text(models.as_part(overfitted))
    (tmp_path / "pretrained.json").write_text(overfitted.to_json())
    (tmp_path / "dp-lr.json").write_text(models.as_dp_logistic(overfitted))
    (tmp_path / "stranger.json").write_text(models.as_walr(models.with_random_weights(0)))  # has seen no row
    return tmp_path


def blindfit(folder: Path, *arguments: str) -> Done:
    return command.blindfit(folder, "attack", *arguments)


def change(path: Path, row: int, column: int, value: str) -> None:
    lines = [line.split(",") for line in path.read_text().splitlines()]
    lines[row][column] = value
    path.write_text("\n".join(",".join(line) for line in lines) + "\n")


# --- mechanisms ---------------------------------------------------------------------------------


def test_a_mechanism_that_holds(tmp_path):
    options = ("--epsilon", "0.5", "--range", "-2", "6", "--samples", "20000", "--confidence", SURE)
    finished = blindfit(tmp_path, "laplace", *options)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "laplace: claims epsilon 0.5" in finished.stdout
    assert "label -2 or 6" in finished.stdout
    assert "No sample contradicts the claim" in finished.stdout


def test_json_of_neighbouring_data_sets(tmp_path, monkeypatch):
    (tmp_path / "labels.csv").write_text("id,spend\n" + "".join(f"{i},{i % 7}\n" for i in range(50)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mechanism, "FITS_TAKE_S", 0.0)
    monkeypatch.setattr(mechanism, "ROUNDED_TO", 8)  # a linear program of 64 unknowns, not of 256
    monkeypatch.setattr(mechanism, "LEAST_FITS", 64)
    asked = {"ends": (0.0, 7.0), "samples": 2000, "labels": "labels.csv:spend", "confidence": float(SURE)}
    content = json.loads(audit.attack(CONTEXT, "rr-on-bins", **asked).to_json())
    assert content["holds"] is True
    assert content["fits"] == mechanism.LEAST_FITS
    assert "50 labels and 0 or 7" in [pair["neighbours"] for pair in content["pairs"]]
    assert content["lower_bound"] == max(pair["lower_bound"] for pair in content["pairs"])


def test_a_mechanism_that_does_not_hold_exits_with_1(monkeypatch):
    broken = mutants.PublishedStaircase.optimal(LabelGrid(0.0, 1.0), 1.0, "absolute")
    monkeypatch.setattr(label_mechanisms, "fit", mutants.always(broken))
    found = audit.attack(CONTEXT, "staircase", samples=20_000)  # it finds 6.26 +- 0.06 for a claim of 1
    assert found.status == 1
    console = Console(record=True, width=200)
    found.show(console)
    shown = console.export_text()
    assert "BROKEN" in shown
    assert "The claim is false" in shown


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("laplase",), "laplase is neither a mechanism nor a file"),
        (("laplace", "--members", "x.csv"), "--members does nothing: laplace is a mechanism"),
        (("laplace", "--half-width", "0.1"), "laplace does not use half_width"),
        (("laplace", "--delta", "0.1"), "laplace does not use delta"),
        (("laplace", "--epsilon", "nan"), "epsilon"),
        (("laplace", "--confidence", "1.5"), "--confidence must lie in [0.5, 1), not 1.5"),
        (("laplace", "--range", "1", "0"), "the labels' range must be finite and not empty, not [1.0, 0.0]"),
        (("laplace", "--labels", "x.csv:y", "--range", "0", "1"), "--labels: laplace learns nothing from labels"),
        (("unbiased", "--labels", "x.csv:y"), "--labels needs --range"),
        (("unbiased", "--labels", "x.csv", "--range", "0", "1"), "--labels x.csv: no column is named"),
        (("model.json", "--epsilon", "1", *FILES), "--epsilon does nothing: model.json is a model"),
        (("model.json",), "a model's audit needs --members and --non-members"),
        (("model.json", "--sensitive", "age", *FILES), "--sensitive age: the model has no such column"),
        (("model.json", "--label", "f1", *FILES), "f1: a feature of the model, and named as the label or the id"),
    ],
)
def test_an_option_that_cannot_be_is_one_line(folder, arguments, expected):
    refused = blindfit(folder, *arguments)
    assert refused.returncode == 2
    assert expected in error_line(refused)


def test_an_unknown_name_lists_the_names(tmp_path):
    assert f"name a mechanism ({', '.join(NAMES)})" in blindfit(tmp_path, "laplase").stderr


# --- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["model.json", "part.json", "pretrained.json", "dp-lr.json"])
def test_an_overfitted_model_of_every_kind(folder, model):
    finished = blindfit(folder, model, *FILES, "--json")
    assert (finished.returncode, finished.stderr) == (0, "")
    content = json.loads(finished.stdout)
    assert content["membership"]["auc"]["value"] > 0.7
    assert content["membership"]["found"] is True
    assert content["membership"]["advantage"] > content["membership"]["advantage_by_chance"]
    assert content["inversion"]["members"]["value"] > 0.7


def test_what_it_means_in_words(folder):
    paths = [folder / name for name in ("members.csv", "others.csv")]
    options = {"label": "label", "row_id": "id", "sensitive": "f0", "confidence": 0.95}
    open_, closed = (
        audit_model.audit_model(folder / name, *paths, **options) for name in ("model.json", "stranger.json")
    )
    assert "at a confidence of 95% better than by chance" in audit_model.in_words(open_)[0]
    assert "no better than by chance" in audit_model.in_words(closed)[0]
    assert "whether f0 is above the middle" in audit_model.in_words(open_)[1]
    console = Console(record=True, width=160)
    console.print(audit_model.table_of(open_))
    assert f"{open_.membership.advantage:.3f}" in console.export_text()


@pytest.mark.parametrize(
    ("break_it", "expected"),
    [
        (lambda f: (f / "members.csv").unlink(), "members.csv: the file does not exist"),
        (lambda f: (f / "model.json").write_text("{"), "model.json is not JSON"),
        (lambda f: change(f / "members.csv", 3, 4, "nan"), "row 3 (line 4), column f2: the value is missing"),
        (lambda f: change(f / "others.csv", 0, 4, "age"), "there is no column f2"),
        (lambda f: change(f / "others.csv", 2, 1, "7"), "row 2 (line 3), column label: the label is neither 0 nor 1"),
        (lambda f: change(f / "others.csv", 1, 0, "u3"), "others.csv: 1 of its ids are in members.csv too"),
        (lambda f: change(f / "others.csv", 2, 0, "u1000"), "the id is that of row 1 (line 2) again"),
        (lambda f: [change(f / "members.csv", row, 1, "1") for row in range(1, 61)], "every label is 1"),
        (lambda f: (f / "model.json").write_text(models.as_part(models.with_random_weights(0), ("bank", "shop"))),
         "model.json is only the part of bank: 2 parties share this model"),
        (lambda f: (f / "model.json").write_text(models.as_part(models.with_random_weights(0), kind="linear")),
         "model.json is not a logistic model"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(folder, break_it, expected):
    break_it(folder)
    refused = blindfit(folder, "model.json", *FILES)
    assert refused.returncode == 1
    assert expected in error_line(refused)
