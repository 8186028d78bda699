"""Real processes: a run, its report, kill -9 between charge and model, and contents that no log may have."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from blindfit import load_model
from tests.command import Done, blindfit
from tests.dp_lr.conftest import N_ROWS
from tests.processes.reading import error_line
from tests.readme.terminal import script
from tests.vertical.victim import OBEYED, ORDER, Order
from tests.world import World

EXAMPLE = Path(__file__).parents[2] / "examples" / "dp_lr"


def run(project: World, out: str, *overrides: str) -> Done:
    sets = [part for override in overrides for part in ("--set", override)]
    return project.blindfit("run", "job.toml", "--out", out, *sets)


def weights_in(project: World, path: str) -> dict[str, float]:
    weights: dict[str, float] = json.loads(project.path(path).read_text())["weights"]
    return weights


def test_a_run_a_partys_own_page_and_the_same_run_again(project: World) -> None:
    done = run(project, "out")
    assert done.returncode == 0, done.stderr
    assert "budget 2 of 4 spent on patients, 2 left" in " ".join(done.stdout.split())
    report = json.loads(project.path("out/report.json").read_text())
    assert report["parties"]["clinic"]["summary"]["privacy"]["charged_now"] is True
    assert "evaluation" not in report["parties"]["clinic"]["summary"]
    assert "Privacy statement" in project.path("out/report.html").read_text()

    shown = project.blindfit("report", "out/clinic")
    assert shown.returncode == 0, shown.stderr
    page = project.path("out/clinic/report.html").read_text()  # the party's own
    assert "each row, features and label, a visit" in page
    assert "Accuracy" in page

    again = run(project, "again")
    assert again.returncode == 0, again.stderr
    assert "the same job on the same rows has the same model" in again.stdout
    assert weights_in(project, "again/clinic/model.json") == weights_in(project, "out/clinic/model.json")


@pytest.mark.parametrize(
    ("overrides", "code", "expected"),
    [
        (("privacy.epsilon=4.5",), 1, "the budget of patients would be passed: epsilon 0 of 4 is spent"),
        (("privacy.epsilon=6.0",), 1, "clinic refuses the job: privacy.epsilon: 6 is more than its max_epsilon = 5"),
        (("privacy.epsilon=2.0", "dp_lr.budget=iteration"), 1, "is more than its max_epsilon = 5"),
        (("split.test_fraction=0.5",), 1, "are fewer than the least that this party's policy asks for, 400"),
        (("dp_lr.public_dataset=attic",), 2, "clinic has no dataset named attic"),
    ],
)
def test_refusals_are_one_line(project: World, overrides: tuple[str, ...], code: int, expected: str) -> None:
    project.set("policy.min_rows", 400, "clinic")
    refused = run(project, "out", *overrides)
    assert expected in error_line(refused)
    assert refused.returncode == code
    assert not project.path("out/clinic/model.json").exists()
    assert "coordinator" not in project.blindfit("ledger", "clinic.toml").stdout  # nobody was charged for anything


def start_victim(project: World, order: Order) -> None:
    order.give(project.path("orders"))
    project.publish("clinic", "archive")
    project.start("clinic", module=("tests.vertical.victim", "orders"))


def test_killed_between_charge_and_model(project: World) -> None:
    start_victim(project, Order("write model.json"))
    lost = project.blindfit("submit", "job.toml", "--out", "out")
    assert error_line(lost).startswith("error: cannot reach clinic at localhost:")
    assert (project.path("orders") / OBEYED).exists()
    assert project.processes.pop("clinic").wait(60) == -signal.SIGKILL
    assert not list(project.path("state/clinic").glob("models/*/model.json"))
    before = project.blindfit("ledger", "clinic.toml", "--export", "before.jsonl")
    assert before.returncode == 0, before.stderr
    (charged,) = project.path("before.jsonl").read_text().splitlines()

    (project.path("orders") / ORDER).unlink()
    project.start("clinic")
    done = project.blindfit("submit", "job.toml", "--out", "out")
    assert done.returncode == 0, done.stderr
    project.blindfit("ledger", "clinic.toml", "--export", "after.jsonl")
    assert project.path("after.jsonl").read_text().splitlines() == [charged]
    (model,) = project.path("state/clinic").glob("models/*/model.json")
    assert load_model(model).feature_weights


def test_no_row_reaches_log_output_or_coordinator(project: World) -> None:
    """The rows have values that must be read and must appear nowhere, even if they are wrong."""
    path = project.path("patients.csv")
    lines = path.read_text().splitlines()
    lines[7] = "canary-person,7654.3211,0.5,0.25,1"
    path.write_text("\n".join(lines) + "\n")
    project.publish("clinic", "archive")
    project.start("clinic")
    done = project.blindfit("submit", "job.toml", "--out", "out")
    assert done.returncode == 0, done.stderr
    path.write_text("\n".join([*lines, "canary-label,1,2,3,canary"]) + "\n")
    refused = project.blindfit("snapshot", "clinic.toml", "patients")  # its own operator reads it in full
    assert (refused.returncode, "column ill: not a number" in refused.stderr) == (1, True)
    again = project.blindfit("submit", "job.toml", "--out", "out2")
    assert again.returncode == 0
    project.kill("clinic", signal.SIGTERM)
    weights = weights_in(project, str(next(project.path("state/clinic").glob("models/*/model.json"))))
    told = "".join(file.read_text() for file in project.path("out").glob("report.*"))
    said = done.stdout + done.stderr + again.stdout + again.stderr + project.log("clinic")
    assert str(N_ROWS + 1) in refused.stderr  # its operator learns which row was wrong
    for secret in ("canary", "7654.3211"):
        assert secret not in said + told
    assert not any(str(weight) in told for weight in weights.values())


def test_the_operator_may_be_asked(project: World) -> None:
    project.edit("clinic.toml", "[policy]", '[policy]\napprove = "ask"')
    project.publish("clinic", "archive")
    project.start("clinic")
    with project.submitting() as submitted:
        give_up = time.monotonic() + 60
        while "proposed by coordinator" not in (waiting := project.blindfit("approve", "clinic.toml").stdout):
            assert time.monotonic() < give_up, project.log("clinic")
        assert "epsilon 2, delta 1e-05" in waiting
        assert (
            "charged here, to the population patients: of epsilon 4 at delta 1e-05, 0 is spent and 4 is left" in waiting
        )
        session, digest = waiting.split()[-2:]
        assert session.startswith("fit-")
        project.blindfit("approve", "clinic.toml", session, digest)
        assert submitted.wait(60) == 0


def test_pretraining_as_a_command(project: World) -> None:
    made = project.blindfit("pretrain", "clinic.toml", "--dataset", "archive", "--out", "public/pretrained.json")
    assert made.returncode == 0, made.stderr
    assert made.stdout.strip() == "public/pretrained.json: 3 features, fitted to archive"
    project.edit("job.toml", 'public_dataset = "archive"', 'init = "public/pretrained.json"')
    done = run(project, "out")
    assert done.returncode == 0, done.stderr
    assert "20 iterations from a pre-trained file" in done.stdout

    refused = project.blindfit("pretrain", "clinic.toml", "--dataset", "patients", "--out", "leak.json")
    assert "datasets.patients: clinic does not declare these rows public" in error_line(refused)
    assert not project.path("leak.json").exists()


def test_the_example(tmp_path: Path) -> None:
    for file in ("job.toml", "hospital.toml"):
        (tmp_path / file).write_text((EXAMPLE / file).read_text())
    made = blindfit(tmp_path, "--out", "data", main=lambda: script(EXAMPLE / "prepare.py"))
    assert made.returncode == 0, made.stderr
    example = World(tmp_path)
    checked = example.blindfit("check", "job.toml")
    assert checked.returncode == 0, checked.stdout
    assert "rows to train on, " in checked.stdout
    done = run(example, "out")
    assert done.returncode == 0, done.stderr
    own = json.loads(example.path("out/hospital/report.json").read_text())
    # 0.94 +- 0.015; all of fifty runs under three times the noise were above 0.85. As in test_training: once in 1e9.
    assert own["evaluation"]["accuracy"] > 0.8
    assert own["privacy"]["epsilon"] == 1.0
    assert len(load_model(example.path("out/hospital/model.json")).feature_weights) == 30
