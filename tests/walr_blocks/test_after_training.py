"""What comes of a model of several holders: reports, the pre-flight, evaluation of scores that they made together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from blindfit.algorithms.errors import BlindfitError, ConfigError, DataError
from blindfit.coordinator import evaluate as evaluation
from blindfit.coordinator import preflight
from blindfit.coordinator.job import load_job
from blindfit.coordinator.plan.asked import Asked
from blindfit.coordinator.plan.command import plan
from blindfit.coordinator.report import content, write
from blindfit.coordinator.report.kinds import kind_of
from blindfit.coordinator.session import JobSession
from tests.walr_blocks.house import HOLDERS, House

EVALUATE = """
name = "evaluation"
protocol = "evaluate"
evaluate = {{ session = "{session}", scores = "{scores}", rows = "{rows}" }}
privacy = {{ epsilon = 2.0 }}
timeouts = {{ step_s = 60.0, reconnect_s = 20.0 }}

[parties]
shop = {{ role = "active", config = "shop.toml", dataset = "rows" }}
meter = {{ role = "measurement", config = "meter.toml", dataset = "rows" }}
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[House, JobSession, JobSession]:
    """A house, its training, and a prediction of all rows; each test asks for something of its own."""
    house = House(tmp_path_factory.mktemp("house"))
    for name in HOLDERS:
        (house.root / "run" / name).mkdir(parents=True)
    session = house.run()
    house.write_prediction(session.id)
    return house, session, house.run(job="predict.toml")


def evaluated(house: House, session: str, scores: str, rows: str = "held-out") -> dict:
    (house.root / "evaluate.toml").write_text(EVALUATE.format(session=session, scores=scores, rows=rows))
    made = house.run(job="evaluate.toml")
    return json.loads((house.root / "state/shop/evaluations" / made.id / "report.json").read_text())


def test_scores_of_held_out_rows_are_evaluated(trained: tuple[House, JobSession, JobSession]) -> None:
    house, session, predicted = trained
    report = evaluated(house, session.id, predicted.id)
    held_out = (house.root / "state/shop/models" / session.id / "held_out_rows.csv").read_text().split("\n")
    both = {line.strip('"') for line in held_out} & set(house.common)
    assert report["rows"]["counted"] == len(both) > 100
    assert report["figures"]["accuracy"]["value"] > 0.6
    assert evaluated(house, session.id, predicted.id, "all")["rows"]["counted"] == len(house.common)


@pytest.mark.parametrize(
    ("of_model", "with_scores", "said"),
    [
        ("joint", False, "name the joint prediction that has scored the rows"),
        ("alone", True, "scores rows alone: name no prediction"),
        ("joint", None, r"it has no scores\.csv of that session"),
    ],
)
def test_scores_go_with_a_model_of_several_holders_alone(
    trained: tuple[House, JobSession, JobSession], of_model: str, with_scores: bool | None, said: str
) -> None:
    house, session, predicted = trained
    model = session.id if of_model == "joint" else house.run("privacy.epsilon=0.5", job="alone.toml").id
    scores = "nothing" if with_scores is None else predicted.id if with_scores else ""
    with pytest.raises(BlindfitError, match=said):
        evaluated(house, model, scores)


def test_the_command_names_training_and_prediction_by_their_reports(
    trained: tuple[House, JobSession, JobSession], tmp_path: Path
) -> None:
    house, session, predicted = trained
    for name, made in (("model", session), ("scores", predicted)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(json.dumps({"session": made.id}))
    (house.root / "evaluate.toml").write_text(EVALUATE.format(session="", scores="", rows="all"))
    job = evaluation.load(house.root / "evaluate.toml", [], None, tmp_path / "model", tmp_path / "scores")
    assert (job.parameters.evaluate.session, job.parameters.evaluate.scores) == (session.id, predicted.id)


def test_the_report_says_who_learnt_what_and_shows_every_part(trained: tuple[House, JobSession, JobSession]) -> None:
    house, session, _ = trained
    out = house.root / "out"
    for name in HOLDERS:
        (out / name).mkdir(parents=True)
        for file in ("model.json", "report.json"):
            source = house.root / "state" / name / "models" / session.id / file
            (out / name / file).write_bytes(source.read_bytes())
    made = write(session, out, list(HOLDERS))
    sections = {section["topic"]: " ".join(section["sentences"]) for section in made.content["privacy_statement"]}
    assert "Weights hang on the columns of the others" in sections["learnt-passive"]
    assert "Of bank and chain: how many columns" in sections["learnt-active"]
    assert "rows that all of them have" in sections["trust"]
    assert "and every row that shop, bank and chain sent" in sections["collusion"]
    page = made.html_path.read_text()
    for name in ("bank: a", "chain: f", "shop: x"):
        assert name in page
    assert "not all of shop, bank and chain have them" in page


def test_a_passive_partys_own_report_says_where_the_figures_are(trained: tuple[House, JobSession, JobSession]) -> None:
    house, session, _ = trained
    with pytest.raises(DataError, match="ask shop for its report"):
        content.content_of_party(house.root / "state/bank/models" / session.id)
    own = content.content_of_party(house.root / "state/shop/models" / session.id)
    assert "the weights of their own columns" in kind_of("walr").in_short(own)


def test_no_plan_is_made_up(trained: tuple[House, JobSession, JobSession]) -> None:
    house, _, _ = trained
    quiet = Console(quiet=True)
    with pytest.raises(ConfigError, match="draws labels from all columns, and bank and chain hold some"):
        plan(load_job(house.root / "job.toml"), house.root, Asked(), house.root / "plan", quiet)
    assert not list(house.root.glob("plan*"))


def test_the_preflight_says_who_learns_what_and_the_noise_of_all(
    trained: tuple[House, JobSession, JobSession],
) -> None:
    house, _, _ = trained
    found = [f"{f.about}: {f.text}" for f in preflight.check(load_job(house.root / "job.toml"), house.root)]
    said = "\n".join(found)
    assert "meter sees the ids and the rounded rows of shop, bank and chain, to train on" in said
    assert "meter fits the model, and knows all of it" in said
    for name in HOLDERS:
        assert f"{name}: 1," in said
    assert said.count("noise: standard deviation") == 1
