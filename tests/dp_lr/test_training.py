"""The role, run in this process: a training's reading, charges, files and reports.

The noise has no seed. The claims about models and figures held in all of sixty draws under noise of three times the
standard deviation. If at most a tenth of such draws lie beyond a point of a Gaussian tail, the actual noise passes it
with the ninth power of that chance: once in 1e9 runs.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from blindfit.algorithms.errors import (
    BudgetExhausted,
    ConfigError,
    DataError,
    LedgerUnavailable,
    TooFewRows,
    UnsupportedEvent,
)
from blindfit.algorithms.privacy.accountant import composed_epsilon
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import verify_chain
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.quality.metrics import accuracy
from blindfit.parties.dp_lr import trainer as dp_lr
from blindfit.parties.dp_lr.rows import fit_public
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.files import written
from blindfit.parties.systems import load_model
from blindfit.parties.training.public_model import load_pretrained
from tests.dp_lr.conftest import ARCHIVE, N_PUBLIC, N_ROWS, NAMES, Clinic, held_out_of, job, rows_of
from tests.figures import check_classes, columns_of

HARMLESS = {"privacy": {"epsilon": 0.1}}


def entries(clinic: Clinic) -> list[Any]:
    found = clinic.kept.reader().ledger()
    verify_chain(found)
    return found


# --- what is fitted ------------------------------------------------------------------------------------


def test_the_model_learnt_and_loads(clinic: Clinic) -> None:
    told = clinic.train()
    model = load_model(clinic.output("s1", "model.json"))
    assert isinstance(model, DPLogisticModel)
    features, labels = rows_of(4000, seed=9)
    assert accuracy(labels, model.probabilities(features)) > 0.75
    assert set(model.feature_weights) == set(NAMES)
    assert told["rows.trained"] == N_ROWS - told["rows.held_out"]
    assert told["rows.public"] == N_PUBLIC


def test_held_out_rows_are_not_trained_on_and_their_scores_are_the_models(clinic: Clinic) -> None:
    clinic.train()
    held_out = held_out_of(0.2)
    with clinic.output("s1", "held_out_scores.csv").open() as file:
        scored = list(csv.DictReader(file))
    assert [row["id"] for row in scored] == [f"p{i}" for i in np.flatnonzero(held_out)]
    features, labels = rows_of(N_ROWS, seed=1)
    expected = load_model(clinic.output("s1", "model.json")).probabilities(features[held_out])  # type: ignore[union-attr]
    np.testing.assert_allclose([float(row["probability"]) for row in scored], expected, rtol=1e-12)
    assert [int(row["label"]) for row in scored] == labels[held_out].tolist()
    check_classes(
        columns_of(clinic.output("s1", "held_out_scores.csv")),
        clinic.written("clinic", "s1", "report.json")["evaluation"],
    )


def test_without_iterations_to_speak_of_the_model_is_the_public_one(clinic: Clinic) -> None:
    clinic.train(dp_lr={"public_dataset": "archive", "iterations": 1, "learning_rate": 1e-9})
    features, labels = rows_of(N_PUBLIC, seed=2)
    from blindfit.algorithms.statistics.linear.pretraining import pretrain

    public = pretrain(features, labels, columns=NAMES)
    model = load_model(clinic.output("s1", "model.json"))
    assert model.feature_weights == pytest.approx(  # type: ignore[union-attr]
        dict(zip(NAMES, public.weights, strict=True)), abs=1e-5
    )
    report = clinic.written("clinic", "s1", "report.json")
    assert len(report["losses"]) == 2  # losses of public rows, before and after


def test_bounds_scale_the_features(clinic: Clinic) -> None:
    bounds = ["age:0:100", "dose:0:20", "*:0:200"]
    clinic.train(dp_lr={"feature_bounds": bounds, "loss_share": 0.2, "iterations": 7})
    model = clinic.written("clinic", "s1")
    assert model["scale"]["mean"] == {"age": 50, "dose": 10, "pulse": 100}
    assert model["scale"]["std"] == {"age": 50, "dose": 10, "pulse": 100}
    report = clinic.written("clinic", "s1", "report.json")
    assert len(report["losses"]) == 7
    assert (report["fit"]["start"], report["fit"]["scale"]) == ("zero", "bounds")


def test_shrinkage_holds_the_model_at_its_start(clinic: Clinic) -> None:
    clinic.train(dp_lr={"feature_bounds": ["*:0:200"], "shrinkage": 1e6})
    assert clinic.written("clinic", "s1")["weights"] == pytest.approx(dict.fromkeys(NAMES, 0.0), abs=1e-4)


ADD_OR_REMOVE = {"neighbours": "add-or-remove", "public_rows": 1000}


@pytest.mark.parametrize(("options", "changes"), [({}, 2), (ADD_OR_REMOVE, 1)], ids=["replace one", "add or remove"])
def test_the_noise_is_that_of_the_formula(clinic: Clinic, options: dict[str, Any], changes: int) -> None:
    """sigma = sensitivity * C / n * sqrt(T) * s(epsilon, delta), and the ledger has s."""
    from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier

    told = clinic.train(dp_lr={"clip_norm": 0.5, "iterations": 16, "feature_bounds": ["*:0:200"], **options})
    s = analytic_noise_multiplier(2.0, 1e-5)
    divisor: Any = 800 if options else told["rows.trained"]
    assert told["fit.gradient_noise_std"] == pytest.approx(changes * 0.5 * 4 * s / divisor)
    event = ReleaseEvent.from_canonical(entries(clinic)[0].event)
    assert event.noise_multiplier == pytest.approx(s)


# --- one release, one charge --------------------------------------------------------------------------


def test_the_same_job_again_has_the_same_model_and_no_charge(clinic: Clinic) -> None:
    first, again = clinic.train("s1"), clinic.train("s2", timeouts={"step_s": 7.0})
    assert len(entries(clinic)) == 1
    assert clinic.written("clinic", "s1")["weights"] == clinic.written("clinic", "s2")["weights"]
    assert (first["privacy.charged_now"], again["privacy.charged_now"]) == (True, False)
    assert first["privacy.spent_epsilon"] == again["privacy.spent_epsilon"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {"epsilon": 0.1, "release": "second"}},
        {"privacy": {"epsilon": 0.1}, "seed": 4},
        {"privacy": {"epsilon": 0.1}, "dp_lr": {"public_dataset": "archive", "iterations": 21}},
    ],
    ids=["release", "split", "option"],
)
def test_another_draw_is_another_charge(clinic: Clinic, changes: dict[str, Any]) -> None:
    clinic.train("s1", **HARMLESS)
    clinic.train("s2", **changes)
    first, second = entries(clinic)
    assert first.request_id != second.request_id
    assert clinic.written("clinic", "s1")["weights"] != clinic.written("clinic", "s2")["weights"]


def test_a_file_that_changes_is_another_question_once_it_is_published(clinic: Clinic) -> None:
    clinic.train("s1", **HARMLESS)
    path = clinic.root / "patients.csv"
    text = path.read_text()
    path.write_text(text[:-2] + ("0" if text[-2] == "1" else "1") + "\n")  # the last row's label
    clinic.train("s2", **HARMLESS)
    assert len(entries(clinic)) == 1
    assert clinic.written("clinic", "s1")["weights"] == clinic.written("clinic", "s2")["weights"]
    clinic.publish("clinic", "patients")
    clinic.train("s3", **HARMLESS)
    assert len(entries(clinic)) == 2


def test_a_snapshot_of_the_same_rows_is_another_question(clinic: Clinic) -> None:
    """A repeated answer until something changed would reveal that it did."""
    clinic.train("s1", **HARMLESS)
    clinic.publish("clinic", "patients")
    clinic.train("s2", **HARMLESS)
    assert len(entries(clinic)) == 2
    assert clinic.written("clinic", "s1")["weights"] != clinic.written("clinic", "s2")["weights"]


def test_other_public_rows_are_another_question(clinic: Clinic) -> None:
    clinic.train("s1", **HARMLESS)
    path = clinic.root / "archive.csv"
    text = path.read_text()
    path.write_text(text[:-2] + ("0" if text[-2] == "1" else "1") + "\n")
    clinic.publish("clinic", "archive")
    clinic.train("s2", **HARMLESS)
    assert len(entries(clinic)) == 2


def test_the_entry_says_what_was_released(clinic: Clinic) -> None:
    clinic.train()
    (entry,) = entries(clinic)
    stored = clinic.kept.reader().answer("clinic", entry.request_id)
    assert stored is not None
    assert hashlib.sha256(stored.answer).hexdigest() == entry.answer_sha256
    assert json.loads(stored.answer)["model"]["weights"] == clinic.written("clinic", "s1")["weights"]
    assert (entry.population, entry.dataset, entry.requester) == ("patients", "patients", "coordinator")
    assert (entry.epsilon, entry.delta) == (2.0, 1e-5)
    assert entry.unit == "each row, features and label, a visit"
    assert "one row, features and label, is replaced by another" in entry.event


def test_a_spent_budget_refuses_before_the_fit(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    clinic.train("s1")
    clinic.train("s2", privacy={"epsilon": 2.5, "release": "b"})
    monkeypatch.setattr(dp_lr, "fit_rows", lambda *_: pytest.fail("rows were looked at"))
    with pytest.raises(BudgetExhausted, match="the budget of patients would be passed"):
        clinic.train("s3", privacy={"epsilon": 2.0, "release": "c"})
    assert len(entries(clinic)) == 2
    assert not clinic.output("s3", "model.json").exists()
    clinic.train("s4")  # the remembered answer comes again


def test_the_last_of_the_budget_has_one_winner(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another session charges between the early look and the transaction."""
    fit = dp_lr.fit_rows

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(dp_lr, "fit_rows", fit)
        clinic.train("other", privacy={"epsilon": 3.5, "release": "other"})
        return fit(*arguments)

    monkeypatch.setattr(dp_lr, "fit_rows", meanwhile)
    with pytest.raises(BudgetExhausted):
        clinic.train("s1")
    assert [entry.epsilon for entry in entries(clinic)] == [3.5]
    assert not clinic.output("s1", "model.json").exists()


def test_two_of_the_same_at_once_share_one_answer(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = dp_lr.fit_rows

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(dp_lr, "fit_rows", fit)
        clinic.train("other")
        return fit(*arguments)

    monkeypatch.setattr(dp_lr, "fit_rows", meanwhile)
    clinic.train("s1")
    assert len(entries(clinic)) == 1
    assert clinic.written("clinic", "s1")["weights"] == clinic.written("clinic", "other")["weights"]


def test_nothing_is_written_that_could_not_be_charged(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "blindfit.parties.store.charging.enter", lambda *_, **__: (_ for _ in ()).throw(LedgerUnavailable("no room"))
    )
    with pytest.raises(LedgerUnavailable):
        clinic.train()
    assert not clinic.output("s1", "model.json").exists()
    assert clinic.kept.reader().ledger() == []


def test_a_model_that_could_not_be_written_costs_nothing_again(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(written, "write_file", full)
        with pytest.raises(OSError, match="No space"):
            clinic.train("s1")
    (charged,) = entries(clinic)
    clinic.train("s2")
    assert len(entries(clinic)) == 1
    stored = clinic.kept.reader().answer("clinic", charged.request_id)
    assert stored is not None
    assert json.loads(stored.answer)["model"]["weights"] == clinic.written("clinic", "s2")["weights"]


def test_runs_of_samples_compose_in_the_ledger(clinic: Clinic) -> None:
    sampled = {"public_dataset": "archive", "iterations": 20, "batch_fraction": 0.1}
    clinic.train("s1", dp_lr=sampled)
    told = clinic.train("s2", dp_lr=sampled, privacy={"epsilon": 2.0, "release": "b"})
    assert 2.0 < told["privacy.spent_epsilon"] < 3.5  # type: ignore[operator]
    assert told["fit.gradient_noise_std"] < clinic.train("s3", privacy={"epsilon": 0.1})["fit.gradient_noise_std"]  # type: ignore[operator]


def test_one_budget_has_one_neighbouring_relation(clinic: Clinic) -> None:
    clinic.train("s1", **HARMLESS)
    with pytest.raises(UnsupportedEvent, match=r"different neighbours do not compose.*populations of their own"):
        clinic.train("s2", dp_lr={"public_dataset": "archive", **ADD_OR_REMOVE})


@pytest.mark.parametrize("spending", ["run", "iteration"])
@pytest.mark.parametrize("fraction", [1.0, 0.25])
def test_the_event_spends_what_the_run_does(spending: str, fraction: float) -> None:
    asked = {"epsilon": 0.4}, {"budget": spending, "batch_fraction": fraction, "iterations": 10}
    privacy = DPLRJob(privacy=asked[0], dp_lr=asked[1]).run_privacy  # type: ignore[arg-type]
    spent = composed_epsilon([privacy.event()], 1e-5)
    assert spent <= privacy.spent() * (1 + 1e-9)
    assert spent == pytest.approx(privacy.spent(), rel=0.01)


# --- refusals ------------------------------------------------------------------------------------------


def test_fewer_rows_than_the_policy_asks_for(clinic: Clinic) -> None:
    clinic.set("policy", {"accept_seed": True, "systems": ["dp-lr"], "min_rows": N_ROWS})
    with pytest.raises(TooFewRows, match=f"fewer than the least that this party's policy asks for, {N_ROWS}"):
        clinic.train()
    assert entries(clinic) == []


def test_the_least_number_of_rows_is_enough_and_one_less_is_not(clinic: Clinic) -> None:
    trained = N_ROWS - int(held_out_of(0.2).sum())
    clinic.set("policy", {"accept_seed": True, "systems": ["dp-lr"], "min_rows": trained + 1})
    with pytest.raises(TooFewRows) as refused:
        clinic.train()
    assert (refused.value.rows, refused.value.least) == (trained, trained + 1)
    assert entries(clinic) == []
    clinic.set("policy", {"accept_seed": True, "systems": ["dp-lr"], "min_rows": trained})
    assert clinic.train()["rows.trained"] == trained


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"datasets.patients.missing": "mean"}, 'missing = "mean": one row would then change others'),
        ({"datasets.patients.missing": "drop"}, 'missing = "drop": one row would then change others'),
        ({"datasets.patients.label_kind": "number"}, "datasets.patients: a dp-lr job needs a label of 0 and 1"),
        ({"datasets.patients.features": []}, "datasets.patients: a dp-lr job needs features"),
        (
            {"datasets.patients.population": None, "datasets.patients.row_is": None, "populations": None},
            "datasets.patients.population is missing: a training under differential privacy is charged to a budget",
        ),
    ],
)
def test_a_dataset_that_would_break_the_promise(clinic: Clinic, settings: dict[str, Any], expected: str) -> None:
    for option, value in settings.items():
        clinic.set(option, value)
    with pytest.raises(ConfigError, match=expected):
        clinic.train()


def test_levels_are_declared_also_where_a_snapshot_was_made(clinic: Clinic) -> None:
    """A snapshot keeps its levels, and its settings do not record who named them."""
    path = clinic.root / "patients.csv"
    header, *lines = path.read_text().splitlines()
    wards = [f"{line},{('north', 'south')[i % 2]}" for i, line in enumerate(lines)]
    path.write_text("\n".join([f"{header},ward", *wards]) + "\n")
    clinic.set("datasets.patients.categories", ["ward"])
    with pytest.raises(ConfigError, match=r"datasets\.patients\.categories: levels from the rows"):
        clinic.train(dp_lr={})
    assert entries(clinic) == []
    clinic.set("datasets.patients.categories", {"ward": ["north"]})
    clinic.train(dp_lr={})
    assert "ward=north" in clinic.written("clinic", "s1")["weights"]


def test_a_person_column_is_refused(clinic: Clinic) -> None:
    clinic.set("datasets.patients.row_is", None)
    clinic.set("datasets.patients.person", "age")
    with pytest.raises(ConfigError, match=r"datasets.patients.person: a dp-lr job protects rows"):
        clinic.train()


@pytest.mark.parametrize(
    ("dp_lr_options", "expected"),
    [
        ({"public_dataset": "attic"}, "clinic has no dataset named attic"),
        ({"public_dataset": "patients"}, r"datasets\.patients: clinic does not declare these rows public"),
        ({"public_dataset": "undeclared"}, r"datasets\.undeclared: clinic does not declare these rows public"),
        ({"init": "../x.json"}, "dp_lr.init: ../x.json is not within the directory of the active party's file"),
        ({"feature_bounds": ["height:0:1"]}, "dp_lr.feature_bounds: the dataset has no feature height"),
    ],
)
def test_a_start_that_is_not_public(clinic: Clinic, dp_lr_options: dict[str, Any], expected: str) -> None:
    clinic.set("datasets.undeclared", {name: value for name, value in ARCHIVE.items() if name != "public"})
    with pytest.raises(ConfigError, match=expected):
        clinic.train(dp_lr=dp_lr_options)


def spelled_otherwise(directory: Path) -> str:
    (directory / "sub").mkdir()
    return "csv:sub/.././patients.csv"


def linked(directory: Path) -> str:
    (directory / "link.csv").symlink_to("patients.csv")
    return "csv:link.csv"


def copied(directory: Path) -> str:
    (directory / "copy.csv").write_text((directory / "patients.csv").read_text())
    return "csv:copy.csv"


def copied_in_another_format(directory: Path) -> str:
    """Copy the table in another order and format, without a column that no label follows from."""
    table = pyarrow.csv.read_csv(directory / "patients.csv")
    pyarrow.parquet.write_table(table.take(list(range(table.num_rows))[::-1]), directory / "copy.parquet")
    return "parquet:copy.parquet"


@pytest.mark.parametrize("copy", [spelled_otherwise, linked, copied, copied_in_another_format])
@pytest.mark.parametrize("declared", [False, True])
def test_rows_with_a_budget_are_not_public_under_another_name(
    clinic: Clinic, copy: Callable[[Path], str], declared: bool
) -> None:
    """Without a declaration by the owner no copy is public; a declaration that is wrong meets the content."""
    clinic.set("datasets.copy", {**ARCHIVE, "url": copy(clinic.root), "public": declared})
    clinic.publish("clinic", "patients")
    of_content = r"datasets\.copy\.public = true, but its ids and labels are those of snapshot 1 of patients"
    expected = of_content if declared else r"datasets\.copy: clinic does not declare these rows public"
    with pytest.raises(ConfigError, match=expected):
        fit_public(clinic.settings("clinic"), clinic.root, "copy", None)
    if declared:
        with pytest.raises(ConfigError, match=expected):
            clinic.publish("clinic", "copy")
        assert clinic.unconnected.snapshots.current("copy") is None
        with pytest.raises(ConfigError, match=expected):
            clinic.unconnected.snapshots.publish("copy", other_people=True)
    with pytest.raises(ConfigError, match=expected):
        clinic.train(dp_lr={"public_dataset": "copy"})


def one_row_more(rows: list[str]) -> list[str]:
    return [*rows, "q1,50,10,80,1"]


def ids_in_upper_case(rows: list[str]) -> list[str]:
    return [row.upper() for row in rows]


def few_of_many(rows: list[str]) -> list[str]:
    return [*(f"q{row}" for row in rows[20:]), *rows[:20]]


@pytest.mark.parametrize("change", [one_row_more, ids_in_upper_case, few_of_many])
def test_people_with_a_budget_are_not_public_in_other_rows(
    clinic: Clinic, change: Callable[[list[str]], list[str]]
) -> None:
    """The operator may say that they are other people, who have the same ids by chance."""
    head, *rows = (clinic.root / "patients.csv").read_text().splitlines()
    (clinic.root / "copy.csv").write_text("\n".join([head, *change(rows)]) + "\n")
    clinic.set("datasets.copy", {**ARCHIVE, "url": "csv:copy.csv"})
    clinic.publish("clinic", "patients")
    shared = 20 if change is few_of_many else N_ROWS
    expected = rf"datasets\.copy\.public = true, but {shared} of its \d+ ids also occur in the population patients"
    with pytest.raises(ConfigError, match=expected):
        fit_public(clinic.settings("clinic"), clinic.root, "copy", None)
    with pytest.raises(ConfigError, match=expected):
        clinic.publish("clinic", "copy")
    assert clinic.unconnected.snapshots.current("copy") is None
    clinic.unconnected.snapshots.publish("copy", other_people=True)
    fit_public(clinic.settings("clinic"), clinic.root, "copy", None)


def test_an_owner_hears_that_a_declared_dataset_has_its_private_rows(clinic: Clinic) -> None:
    """The public dataset is published first. Its private twin is published nevertheless, and the owner
    gets a warning.
    """
    clinic.set("datasets.copy", {**ARCHIVE, "url": copied(clinic.root)})
    clinic.publish("clinic", "copy")
    snapshots = clinic.unconnected.snapshots
    made = snapshots.publish("patients")
    assert "datasets.copy is declared public and has the same ids and labels" in " ".join(snapshots.cautions(made))


def test_a_declared_dataset_has_no_budget(clinic: Clinic) -> None:
    clinic.set("datasets.patients.public", True)
    with pytest.raises(ConfigError, match=r"datasets\.patients: public = true cannot go with a population"):
        clinic.settings("clinic")


@pytest.mark.parametrize("declared", [True, False])
def test_a_start_that_no_declaration_covers_is_named(clinic: Clinic, declared: bool) -> None:
    fitted = fit_public(clinic.settings("clinic"), clinic.root, "archive", None)
    model = fitted if declared else replace(fitted, public=None)
    (clinic.root / "start.json").write_text(model.to_json())
    clinic.train(dp_lr={"init": "start.json", "iterations": 2})
    report = clinic.written("clinic", "s1", "report.json")
    assert report["fit"]["start"] == ("file" if declared else "undeclared")


def test_public_rows_of_other_features(clinic: Clinic) -> None:
    path = clinic.root / "archive.csv"
    path.write_text(path.read_text().replace("dose", "weight"))
    with pytest.raises(DataError, match=r"datasets\.archive and patients do not both have the feature dose"):
        clinic.train()


def test_the_order_of_public_columns_does_not_matter(clinic: Clinic) -> None:
    clinic.set("datasets.archive.features", ["pulse", "age", "dose"])
    clinic.train(dp_lr={"public_dataset": "archive", "iterations": 1, "learning_rate": 1e-9})
    weights = clinic.written("clinic", "s1")["weights"]
    assert list(weights) == list(NAMES)
    assert weights["dose"] < -1 < 1 < weights["age"]


def test_rows_of_one_class(clinic: Clinic) -> None:
    path = clinic.root / "patients.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *(line[:-1] + "1" for line in lines[1:])]) + "\n")
    with pytest.raises(DataError, match="column ill: the label is the same in every row: there is nothing to learn"):
        clinic.train()
    assert entries(clinic) == []


def test_rows_to_train_on_of_one_class_are_fitted_like_others(clinic: Clinic) -> None:
    """A refusal would reveal that they are of one class, and a proposer that chooses splits would read every label."""
    path = clinic.root / "patients.csv"
    header, *lines = path.read_text().splitlines()
    labels = ["0" if held_out else "1" for held_out in held_out_of(0.2)]
    path.write_text("\n".join([header, *(line[:-1] + y for line, y in zip(lines, labels, strict=True))]) + "\n")
    clinic.train()
    assert len(entries(clinic)) == 1


def test_held_out_rows_of_one_class_have_no_figures(clinic: Clinic) -> None:
    held_out = held_out_of(0.05)
    path = clinic.root / "patients.csv"
    header, *lines = path.read_text().splitlines()
    path.write_text(
        "\n".join([header, *(line[:-1] + "1" if i else line for i, line in zip(held_out, lines, strict=True))]) + "\n"
    )
    told = clinic.train(split={"test_fraction": 0.05})
    report = clinic.written("clinic", "s1", "report.json")
    assert told["rows.held_out"] == held_out.sum() > 0
    assert report["evaluation"] is None


def test_a_row_more_moves_no_other_and_its_number_is_not_told(clinic: Clinic) -> None:
    """If places decided the parts, one more row would move most others, and its number would show."""
    told = clinic.train("s1", dp_lr=ADD_OR_REMOVE | {"feature_bounds": ["*:0:200"]}, **HARMLESS)
    path = clinic.root / "patients.csv"
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, *lines[1:]]) + "\n")
    clinic.publish("clinic", "patients")
    again = clinic.train("s2", dp_lr=ADD_OR_REMOVE | {"feature_bounds": ["*:0:200"]}, **HARMLESS)

    def held_out(session: str) -> set[str]:
        lines = clinic.output(session, "held_out_scores.csv").read_text().splitlines()[1:]
        return {line.split(",")[0].strip('"') for line in lines}

    assert held_out("s1") ^ held_out("s2") <= {"p0"}
    assert {n for n in told if n.startswith("rows.")} == {n for n in again if n.startswith("rows.")}
    public = ADD_OR_REMOVE["public_rows"]
    assert told["rows.expected"]
    assert told["rows.trained"] + told["rows.held_out"] == again["rows.trained"] + again["rows.held_out"] == public
    assert told["fit.gradient_noise_std"] == again["fit.gradient_noise_std"]


# --- reports ------------------------------------------------------------------------------------------------


def test_the_coordinator_hears_no_weight_and_no_figure_on_private_rows(clinic: Clinic) -> None:
    told = clinic.train()
    assert {name.split(".")[0] for name in told} == {"rows", "privacy", "fit", "timing", "bytes_sent", "messages_sent"}
    report = clinic.written("clinic", "s1", "report.json")
    assert report["evaluation"]["accuracy"] > 0.7
    hidden = [*clinic.written("clinic", "s1")["weights"].values(), report["evaluation"]["auc"], *report["losses"]]
    assert not {value for value in told.values() if isinstance(value, float)} & set(hidden)


def test_a_pretrained_file_gives_start_and_scale(clinic: Clinic) -> None:
    public = fit_public(clinic.settings("clinic"), clinic.root, "archive", None)
    (clinic.root / "public.json").write_text(public.to_json())
    assert load_pretrained(clinic.root / "public.json") == public
    clinic.train("s1", dp_lr={"init": "public.json", "iterations": 1, "learning_rate": 1e-9})
    model = clinic.written("clinic", "s1")
    assert model["scale"] == public.standardiser.to_dict()
    assert model["intercept"] == pytest.approx(public.intercept, abs=1e-5)


def test_the_job_of_the_fixture_is_the_one_that_ran(clinic: Clinic) -> None:
    clinic.train()
    report = clinic.written("clinic", "s1", "report.json")
    assert report["job"]["dp_lr.public_dataset"] == job()["dp_lr"]["public_dataset"]
    assert report["job"]["dp_lr.iterations"] == 20
