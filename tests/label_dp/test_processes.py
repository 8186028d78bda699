"""Real processes: labels released row by row over TLS, a model at the active party, nothing spent the second time."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from blindfit import load_model
from tests.figures import check_values, columns_of
from tests.label_dp.conftest import N_ROWS, rows_and_labels
from tests.processes.reading import error_line


def run(project, out: str, *overrides: str):
    sets = [part for override in overrides for part in ("--set", override)]
    return project.blindfit("run", "job.toml", "--out", out, *sets)


def own_report(project, out: str) -> dict:
    return json.loads(project.path(f"{out}/shop/report.json").read_text())


def test_a_run_leaves_a_model_that_learnt_something(project):
    done = run(project, "out", "label_dp.evaluate_on=study")
    assert done.returncode == 0, done.stderr
    features, labels = rows_and_labels()
    predictions = load_model(project.path("out/shop/model.json")).predict(features)
    # A fit of 2400 labels with noise of 4 adds 0.007 times a chi-square of 4 to the error, and there is room for 0.7.
    assert np.mean((predictions - labels) ** 2) < 0.3 * np.var(labels)
    report = own_report(project, "out")
    assert report["rows"]["trained"] + report["rows"]["held_out"] == N_ROWS
    assert report["evaluation"]["true"]["rows"] == report["rows"]["held_out"]
    assert report["evaluation"]["true"]["mse"] < 0.3 * np.var(labels)
    assert report["privacy"]["spent_epsilon"] == pytest.approx(4.0)
    check_figures(project, "out")
    page = project.path("out/report.html").read_text()
    assert "Privacy statement" in page
    assert "Law of the mechanism" in page


def test_the_noisy_labels_are_the_mechanisms_and_no_true_one_is_near(ran):
    with ran.path("one/shop/released_labels.csv").open() as file:
        released = {row["id"]: float(row["label"]) for row in csv.DictReader(file)}
    _, labels = rows_and_labels()
    noise = np.array([released[f"u{i}"] for i in range(N_ROWS)]) - labels
    told = own_report(ran, "one")["privacy"]["noise_std"]
    assert noise.std() == pytest.approx(told, rel=0.2)  # kurtosis 10.7: a Chernoff bound of 3000 draws is 2e-11
    assert abs(noise.mean()) < 6 * told / N_ROWS**0.5  # 2e-9


def check_figures(project, out: str) -> None:
    """Check the report against the files next to it."""
    report = own_report(project, out)
    check_values(columns_of(project.path(f"{out}/shop/true_label_predictions.csv")), report["evaluation"]["true"])
    released = columns_of(project.path(f"{out}/shop/released_labels.csv"))
    held_out = columns_of(project.path(f"{out}/shop/held_out_predictions.csv"))
    by_id = dict(zip(released["id"], released["label_debiased"], strict=True))
    noisy = np.array([by_id[name] for name in held_out["id"]])
    trained = [value for name, value in by_id.items() if name not in set(held_out["id"])]
    squares, constant = (held_out["prediction"] - noisy) ** 2, np.mean(trained)
    told = report["evaluation"]["released"]
    assert told["rows"] == len(noisy)
    assert told["mse_released"] == pytest.approx(squares.mean())
    assert told["mse"] == pytest.approx(squares.mean() - told["noise_variance"])
    assert told["gain"] == pytest.approx(((constant - noisy) ** 2 - squares).mean())


@pytest.mark.parametrize("regressor", ["linear", "random-forest"])
def test_the_same_job_again_costs_nothing_and_gives_the_same_model(ran, regressor):
    first, chosen = "one", ()
    if regressor == "random-forest":
        first, chosen = "trees", ("label_dp.regressor=random-forest", "label_dp.options={n_estimators = 5}")
        assert run(ran, first, *chosen).returncode == 0
    done = run(ran, "two", *chosen)
    assert done.returncode == 0, done.stderr
    models = [json.loads(ran.path(f"{out}/shop/model.json").read_text()) for out in (first, "two")]
    spent = [model.pop("privacy")["spent_epsilon"] for model in models]
    assert models[0] == models[1]
    assert spent[0] == spent[1] == pytest.approx(4.0)


def test_another_regressor_on_the_same_labels_costs_nothing(ran):
    done = run(ran, "two", "label_dp.regressor=ridge", "split.test_fraction=0.5", "seed=8")
    assert done.returncode == 0, done.stderr
    assert own_report(ran, "two")["privacy"]["spent_epsilon"] == pytest.approx(4.0)


def test_another_draw_is_charged_and_the_budget_holds(project):
    assert run(project, "one", "privacy.epsilon=3.0").returncode == 0
    again = run(project, "two", "privacy.epsilon=3.0", "privacy.release=second")
    assert again.returncode == 0, again.stderr
    assert own_report(project, "two")["privacy"]["spent_epsilon"] == pytest.approx(6.0, rel=1e-3)
    refused = run(project, "three", "privacy.epsilon=1.0", "privacy.release=third")
    assert refused.returncode == 1
    assert error_line(refused).startswith("error: the budget of people would be passed")


def test_a_mechanism_with_a_prior(project):
    done = run(project, "out", "label_dp.mechanism=rp-with-prior", "label_dp.regressor=ridge")
    assert done.returncode == 0, done.stderr
    privacy = own_report(project, "out")["privacy"]
    assert privacy["epsilon_prior"] == pytest.approx(4 / 3)
    assert privacy["prior_mechanism"] == "laplace"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("privacy.epsilon=5.5", "refuses the job: privacy.epsilon: 5.5 is more than its max_epsilon = 5"),
        ("label_dp.evaluate_on=shoes", "the active party has no dataset named shoes"),
        ("label_dp.evaluate_on=rows", "datasets.rows: label_dp.evaluate_on needs a label"),
    ],
)
def test_refusals_are_one_line(project, override, expected):
    refused = run(project, "out", override)
    assert refused.returncode != 0
    assert expected in error_line(refused)


def test_an_id_that_the_server_does_not_know(project):
    project.edit("rows.csv", "u700,", "stranger,")
    refused = run(project, "out")
    assert refused.returncode == 1
    assert "has an id that the table of labels does not have (1 in all)" in error_line(refused)


def test_the_rows_of_a_person_share_what_the_job_asks_for(project):
    """Every person has three rows, of which two may be released; the others are neither trained nor evaluated on."""
    lines = project.path("labels.csv").read_text().splitlines()
    of_person = [f"{line},p{int(line[1:].split(',')[0]) // 3}" for line in lines[1:]]
    project.path("labels.csv").write_text("\n".join([lines[0] + ",who", *of_person]) + "\n")
    project.edit("meter.toml", 'label = "spend"', 'label = "spend"\nperson = "who"\nmax_rows_per_person = 2')
    done = run(project, "out")
    assert done.returncode == 0, done.stderr
    report = own_report(project, "out")
    assert report["rows"]["withheld"] == N_ROWS // 3
    assert report["privacy"]["epsilon"] == report["privacy"]["spent_epsilon"] == pytest.approx(4.0)
    assert report["privacy"]["epsilon_of_row"] == pytest.approx(2.0)
    assert "(33.3%) got no label" in project.path("out/report.html").read_text()
