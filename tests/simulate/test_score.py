"""Scores of held-out rows are those of a real prediction, and figures are those of scikit-learn."""

from __future__ import annotations

import io
import json
import runpy
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.simulate.asked import Asked
from blindfit.coordinator.simulate.baselines import baselines
from blindfit.coordinator.simulate.cut import Cut, cut, score
from blindfit.coordinator.simulate.quality import Quality, quality_of
from blindfit.coordinator.simulate.table import read_table
from blindfit.parties.taylor.settings import LINEAR, TaylorSettings
from tests.command import blindfit
from tests.simulate.frames import people
from tests.world.files import toml_of

SCORER = Path(__file__).parents[2] / "docs/scorer.py"
PARTIES = {"shop": ("age", "region"), "bank": ("income", "since", "smokes", "visits")}
QUICK = {"taylor": "taylor.epochs=2", "falcon": "falcon.epochs=1", "walr": "privacy.epsilon=8"}


def cut_people(folder: Path, **asked: Any) -> Cut:
    wanted = Asked(**{"label": "churned", "row_id": "client", "parties": PARTIES, "epsilons": (8.0,), **asked})
    return cut(read_table(people(), wanted), wanted, folder / "cut", 0)


def run(found: Cut, system: str) -> tuple[Any, Path]:
    """Run a job between forked processes; return its report and its folder."""
    folder = found.jobs[system].parent
    done = blindfit(folder, "run", "job.toml", "--out", "out", "--set", QUICK.get(system, f"name={system}"))
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(content=json.loads((folder / "out/report.json").read_text())), folder / "out"


def let_parties_predict(found: Cut, folder: Path) -> None:
    """Give each party its held-out rows, and let it score them."""
    for party, columns in found.columns.items():
        rows = found.held_out.rows.select(columns).add_column(0, "client", found.held_out.ids)
        pq.write_table(rows, folder / f"{party}-new.parquet")
        settings = tomllib.loads((folder / f"{party}.toml").read_text())
        datasets = settings["datasets"]
        new = {name: value for name, value in datasets["rows"].items() if name != "label"}
        datasets["new"] = {**new, "url": f"parquet:{party}-new.parquet"}
        if party != found.active:
            datasets["rows"]["models_per_row"] = datasets["new"]["models_per_row"] = "unlimited"
        settings["policy"]["systems"].append("predict")
        (folder / f"{party}.toml").write_text(toml_of(settings))
    notary = tomllib.loads((folder / "notary.toml").read_text())
    notary["policy"]["systems"].append("predict")
    (folder / "notary.toml").write_text(toml_of(notary))
    job = tomllib.loads((folder / "job.toml").read_text())
    seats = {
        name: {**seat, **({"dataset": "new"} if "dataset" in seat else {})} for name, seat in job["parties"].items()
    }
    predict = {"name": "predict", "protocol": "predict", "coordinator": job["coordinator"], "parties": seats}
    (folder / "predict.toml").write_text(toml_of(predict))


@pytest.mark.parametrize(("system", "label"), [("taylor", "churned"), ("taylor", "amount"), ("falcon", "churned")])
def test_scores_are_those_of_a_prediction(tmp_path: Path, system: str, label: str) -> None:
    found = cut_people(tmp_path, label=label, missing=0.05, systems=(system,), epsilons=(1.0,))
    folder = found.jobs[system].parent
    let_parties_predict(found, folder)
    report, out = run(found, system)
    done = blindfit(folder, "predict", "predict.toml", "--model", "out", "--out", "predicted")
    assert done.returncode == 0, done.stderr
    predicted = pd.read_csv(next((folder / "predicted").rglob("scores.csv")))
    column = "value" if label == "amount" else "probability"
    by_id = dict(zip(predicted.id, predicted[column], strict=True))
    ours = score(found, system, report, out)
    assert [by_id[name] for name in found.held_out.ids.to_pylist()] == ours.tolist()


@pytest.mark.parametrize("system", ["walr", "label-dp", "dp-lr"])
def test_scores_are_those_of_the_scorer_without_packages(
    tmp_path: Path, system: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = cut_people(tmp_path, missing=0.02)
    report, out = run(found, system)
    ours = score(found, system, report, out)
    rows = found.held_out.fill_all() if system == "dp-lr" else found.held_out.rows
    pyarrow.csv.write_csv(rows.add_column(0, "client", found.held_out.ids), tmp_path / "rows.csv")
    pairs = [
        str(word) for name in report.content["models"] for word in (out / name / "model.json", tmp_path / "rows.csv")
    ]
    capsys.readouterr()
    runpy.run_path(str(SCORER))["main"](["--id", "client", *pairs])
    scored = pd.read_csv(io.StringIO(capsys.readouterr().out))
    by_id = dict(zip(scored.id, scored[scored.columns[-1]], strict=True))
    assert [by_id[name] for name in found.held_out.ids.to_pylist()] == pytest.approx(ours.tolist(), rel=1e-12)
    assert len(ours) == len(found.held_out.truth) == 175


def test_a_run_without_models_is_refused(tmp_path: Path) -> None:
    found = cut_people(tmp_path, systems=("taylor",), epsilons=(1.0,))
    with pytest.raises(DataError, match="has no model of a party"):
        score(found, "taylor", SimpleNamespace(content={}), tmp_path)
    with pytest.raises(DataError, match="walr has no job"):
        score(found, "walr", SimpleNamespace(content={}), tmp_path)


def test_a_model_that_lacks_a_part_is_refused(tmp_path: Path) -> None:
    found = cut_people(tmp_path, systems=("taylor",), epsilons=(1.0,))
    report, out = run(found, "taylor")
    del report.content["models"]["bank"]
    with pytest.raises(DataError, match="has no part of bank"):
        score(found, "taylor", report, out)


# --- figures ------------------------------------------------------------------------------------------


def test_figures_are_those_of_scikit_learn() -> None:
    draw = np.random.default_rng(2)
    truth, scores = (draw.random(300) > 0.6).astype(float), draw.random(300)
    found = quality_of(truth, scores, is_linear=False)
    assert found.figures == pytest.approx({"auc": roc_auc_score(truth, scores), "log_loss": log_loss(truth, scores)})
    numbers = draw.normal(size=300)
    assert quality_of(numbers, numbers + scores, is_linear=True).figures == pytest.approx(
        {"r2": r2_score(numbers, numbers + scores)}
    )


def test_values_beyond_0_and_1_keep_their_order_and_have_a_finite_loss() -> None:
    truth, values = np.array([0.0, 1.0, 0.0, 1.0]), np.array([-3.0, 5.0, 1.5, 1.2])
    found = quality_of(truth, values, is_linear=False)
    assert found.auc == 0.75
    assert found.log_loss == pytest.approx(log_loss(truth, np.clip(values, 0.001, 0.999)))
    assert quality_of(truth, np.array([0.0, 1.0, 0.0, 1.0]), is_linear=False) == Quality(1.0, pytest.approx(0.0))


@pytest.mark.parametrize("label", ["churned", "amount"])
def test_baselines_are_fits_of_scikit_learn(tmp_path: Path, label: str) -> None:
    """The columns are numbers without gaps, so the fit takes three lines here."""
    parties, frame = {"shop": ("spent", "visits"), "bank": ("income",)}, people().set_index("client")
    found = cut_people(tmp_path, label=label, parties=parties, overlap=0.7)
    truth = (frame.churned == "yes").astype(float) if label == "churned" else frame.amount
    held_out = frame.loc[found.held_out.ids.to_pylist()]
    expected = {}
    for name, file, columns in (
        ("joined, no privacy", "columns-together/single-party", ["spent", "visits", "income"]),
        ("active party only", "columns-by-party/shop", ["spent", "visits"]),
    ):
        rows = frame.loc[pd.read_parquet(found.folder / f"{file}.parquet").client]
        mean, scale, labels = rows[columns].mean(), rows[columns].std(ddof=0), truth[rows.index]
        train, test = (rows[columns] - mean) / scale, (held_out[columns] - mean) / scale
        if label == "churned":
            model = LogisticRegression(C=1 / (TaylorSettings().l2 * len(rows)), max_iter=1000).fit(train, labels)
            scores = model.predict_proba(test)[:, 1]
        else:
            scores = Ridge(alpha=LINEAR["l2"] * len(rows)).fit(train, labels).predict(test)
        expected[name] = quality_of(truth[held_out.index].to_numpy(), scores, is_linear=label == "amount").figures
    figures = {name: quality.figures for name, quality in baselines(found).items()}
    assert figures["joined, no privacy"] == pytest.approx(expected["joined, no privacy"], abs=1e-6)
    assert figures["active party only"] == pytest.approx(expected["active party only"], abs=1e-6)
    constant = figures["constant"]
    assert (abs(constant["r2"]) < 0.05) if label == "amount" else (constant["auc"] == 0.5)


def test_baselines_read_texts_dates_and_gaps(tmp_path: Path) -> None:
    found = baselines(cut_people(tmp_path, missing=0.1))
    joined, alone = found["joined, no privacy"], found["active party only"]
    assert joined.auc is not None
    assert alone.auc is not None
    assert joined.auc > alone.auc > 0.5
