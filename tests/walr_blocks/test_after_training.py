"""Use of a model of several parties: reports, the pre-flight, evaluation of scores that they made together."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from structlog.testing import capture_logs

from blindfit.algorithms.errors import BlindfitError, ConfigError, DataError
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.job.trained import evaluation_of
from blindfit.coordinator.jobs import check as preflight
from blindfit.coordinator.jobs.plan import plan
from blindfit.coordinator.plan.asked import Asked
from blindfit.coordinator.report import content
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.systems import kind_of
from blindfit.parties.files import written
from blindfit.parties.sessions.purge import find_kept
from blindfit.parties.training.split import HELD_OUT_SCORES
from tests.hints.following import refused as refused_by
from tests.hints.following import says
from tests.reports import write_report
from tests.world.holders import HOLDERS, Holders

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

ELSEWHERE = says('set scores.url to a csv file and scores.if_exists = "replace", or remove [scores], and predict again')


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Holders, JobSession, JobSession]:
    """A house, its training, and a prediction of all rows; each test asks for something else."""
    house = Holders(tmp_path_factory.mktemp("house"))
    for name in HOLDERS:
        (house.root / "run" / name).mkdir(parents=True)
    session = house.run()
    house.write_prediction(session.id)
    return house, session, house.run(job="predict.toml")


def evaluated(house: Holders, session: str, scores: str, rows: str = "held-out") -> dict:
    (house.root / "evaluate.toml").write_text(EVALUATE.format(session=session, scores=scores, rows=rows))
    made = house.run(job="evaluate.toml")
    return json.loads((house.root / "state/shop/evaluations" / made.id / "report.json").read_text())


def test_scores_of_held_out_rows_are_evaluated(trained: tuple[Holders, JobSession, JobSession]) -> None:
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
        ("alone", True, "scores rows by itself: name no prediction"),
        ("joint", None, "it has made no joint prediction of that name"),
    ],
)
def test_scores_go_with_a_model_of_several_holders_alone(
    trained: tuple[Holders, JobSession, JobSession], of_model: str, with_scores: bool | None, said: str
) -> None:
    house, session, predicted = trained
    model = session.id if of_model == "joint" else house.run("privacy.epsilon=0.5", job="alone.toml").id
    scores = "nothing" if with_scores is None else predicted.id if with_scores else ""
    with pytest.raises(BlindfitError, match=said):
        evaluated(house, model, scores)


def test_the_command_names_training_and_prediction_by_their_reports(
    trained: tuple[Holders, JobSession, JobSession], tmp_path: Path
) -> None:
    house, session, predicted = trained
    write_reports(tmp_path, session.id, predicted)
    (house.root / "evaluate.toml").write_text(EVALUATE.format(session="", scores="", rows="all"))
    of_a_party = house.root / "state/shop/predictions" / predicted.id
    for scores in (tmp_path / "scores", of_a_party):
        job = evaluation_of(house.root / "evaluate.toml", None, tmp_path / "model", scores)
        assert (job.parameters.evaluate.session, job.parameters.evaluate.scores) == (session.id, predicted.id)


def write_reports(directory: Path, model: str, predicted: JobSession) -> None:
    """Write reports of a training and of a prediction, as far as `blindfit evaluate` reads them."""
    contents = {"model": {"session": model}, "scores": {"session": predicted.id, "job": predicted.job.to_dict()}}
    for name, report in contents.items():
        (directory / name).mkdir()
        (directory / name / "report.json").write_text(json.dumps(report))


@pytest.mark.parametrize(
    ("scores", "said"),
    [("scores", "the model of .* has scored these rows"), ("model", "not the report of a prediction")],
)
def test_the_command_takes_no_scores_of_another_model(
    trained: tuple[Holders, JobSession, JobSession], tmp_path: Path, scores: str, said: str
) -> None:
    house, _, predicted = trained
    write_reports(tmp_path, "another", predicted)
    (house.root / "evaluate.toml").write_text(EVALUATE.format(session="", scores="", rows="all"))
    with pytest.raises(BlindfitError, match=said):
        evaluation_of(house.root / "evaluate.toml", None, tmp_path / "model", tmp_path / scores)


def test_a_model_is_not_evaluated_by_the_scores_of_another(trained: tuple[Holders, JobSession, JobSession]) -> None:
    """The figures of a worse model would be charged, and reported as those of this one."""
    house, _, predicted = trained
    other = house.run("privacy.epsilon=0.1")
    spent = house.spent()
    with pytest.raises(BlindfitError) as caught:
        evaluated(house, other.id, predicted.id)
    of = predicted.job.parameters.predict.session
    assert f"the model of {of} has made {predicted.id}, and not that of {other.id}" in str(caught.value)
    assert house.spent() == spent


@pytest.mark.parametrize(
    ("scores", "is_read"),
    [
        ('url = "csv:mine.csv"\nif_exists = "replace"', True),
        ('url = "csv:mine.csv"\nif_exists = "append"', False),
        ('url = "parquet:mine.parquet"\nif_exists = "replace"', False),
        ('url = "sqlite:///mine.db?table=t"', False),
    ],
)
def test_scores_are_evaluated_where_a_file_has_those_of_one_prediction(
    trained: tuple[Holders, JobSession, JobSession], tmp_path: Path, scores: str, is_read: bool
) -> None:
    first, session, _ = trained
    house = first.copied_to(tmp_path)
    with (house.root / "shop.toml").open("a") as file:
        file.write(f"\n[scores]\n{scores}\n")
    house.write_prediction(session.id)
    predicted = house.run(job="predict.toml")
    if is_read:
        assert evaluated(house, session.id, predicted.id, "all")["rows"]["counted"] == len(house.common)
        house.run(job="predict.toml")
    said = "a later job may have written over it" if is_read else ELSEWHERE
    spent = house.spent()
    with refused_by(said), capture_logs() as logs:
        evaluated(house, session.id, predicted.id, "all")
    assert house.spent() == spent
    told = [str(entry["where"]) for entry in logs if "cannot read the scores" in entry["event"]]
    assert [bool(told), all("mine" in where for where in told)] == [not is_read, True]


@pytest.fixture(scope="module")
def one_place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Holders, JobSession]:
    """An active party whose jobs all write to one place, as `blindfit run --out` makes them; and its first job."""
    house = Holders(tmp_path_factory.mktemp("house"))
    text = (house.root / "shop.toml").read_text()
    (house.root / "shop.toml").write_text(f'output_dir = "runs"\n{text}')
    return house, house.run(job="alone.toml")


def figures(house: Holders, session: str) -> dict[str, Any]:
    (house.root / "evaluate.toml").write_text(EVALUATE.format(session=session, scores="", rows="held-out"))
    house.run(job="evaluate.toml")
    report: dict[str, Any] = json.loads((house.root / "runs/report.json").read_text())
    return report["figures"]


def refused(house: Holders, session: str, said: str) -> None:
    spent = house.spent()
    with pytest.raises(BlindfitError, match=said):
        figures(house, session)
    assert house.spent() == spent


@pytest.mark.parametrize("file", ["model.json", HELD_OUT_SCORES])
def test_a_job_that_could_not_write_its_model_does_not_take_over_an_earlier_one(
    one_place: tuple[Holders, JobSession], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str
) -> None:
    house, first = one_place[0].copied_to(tmp_path), one_place[1]
    before = figures(house, first.id)
    replace_file = written.replace_file

    def full(path: Path, content: bytes, mode: int) -> None:
        if path.name == file:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace_file(path, content, mode)

    with monkeypatch.context() as patch:
        patch.setattr(written, "replace_file", full)
        with pytest.raises(BlindfitError):
            house.run("privacy.epsilon=0.1", job="alone.toml")
    with house.store("shop") as store:
        (later,) = [row for row in store.reader().sessions() if row.state == "FAILED"]
        kept = {one.path.name for one in find_kept(store, house.root / "state/shop", later.session)}
    assert file not in kept
    refused(house, later.session, "is failed, not done")
    if file == "model.json":
        assert figures(house, first.id) == before  # the same question again
    else:
        refused(house, first.id, r"no model\.json of that session; a later job may have written over it")


def test_a_model_that_another_partys_job_wrote_over_is_not_taken_for_the_first(
    one_place: tuple[Holders, JobSession], tmp_path: Path
) -> None:
    """This party's database does not know of it; the file does."""
    house, first = one_place[0].copied_to(tmp_path), one_place[1]
    path = house.root / "runs/model.json"
    model = json.loads(path.read_text())
    assert model["session"] == first.id
    path.write_text(json.dumps({**model, "session": "another"}))
    refused(house, first.id, r"no model\.json of that session; a later job may have written over it")


def test_the_report_says_who_learnt_what_and_shows_every_part(trained: tuple[Holders, JobSession, JobSession]) -> None:
    house, session, _ = trained
    out = house.root / "out"
    for name in HOLDERS:
        (out / name).mkdir(parents=True)
        for file in ("model.json", "report.json"):
            source = house.root / "state" / name / "models" / session.id / file
            (out / name / file).write_bytes(source.read_bytes())
    made = write_report(session, out, list(HOLDERS))
    sections = {section["topic"]: " ".join(section["sentences"]) for section in made.content["privacy_statement"]}
    assert "Weights depend on the columns of the other parties" in sections["learnt-passive"]
    assert "About bank and chain: the number of columns" in sections["learnt-active"]
    assert "rows that all of them have" in sections["trust"]
    assert "and every row that shop, bank and chain sent" in sections["collusion"]
    page = made.html_path.read_text()
    for name in ("bank: a", "chain: f", "shop: x"):
        assert name in page
    assert "not all of shop, bank and chain have them" in page


def test_a_passive_partys_own_report_says_where_the_figures_are(
    trained: tuple[Holders, JobSession, JobSession],
) -> None:
    house, session, _ = trained
    with pytest.raises(DataError, match="ask shop for its report"):
        content.content_of_party(kind_of, house.root / "state/bank/models" / session.id)
    own = content.content_of_party(kind_of, house.root / "state/shop/models" / session.id)
    assert "the weights of their own columns" in kind_of("walr").in_short(own)


def test_no_plan_is_made_up(trained: tuple[Holders, JobSession, JobSession]) -> None:
    house, _, _ = trained
    quiet = Console(quiet=True)
    with pytest.raises(ConfigError, match="draws labels from all columns, and bank and chain hold some"):
        plan(load_job(house.root / "job.toml"), Asked(), house.root / "plan", quiet)
    assert not list(house.root.glob("plan*"))


def test_the_preflight_says_who_learns_what_and_the_noise_of_all(
    trained: tuple[Holders, JobSession, JobSession],
) -> None:
    house, _, _ = trained
    found = [f"{f.about}: {f.text}" for f in preflight.check(load_job(house.root / "job.toml"))]
    said = "\n".join(found)
    assert "meter sees the ids and the rounded rows of shop, bank and chain, to train on" in said
    assert "meter fits the model, and knows all of it" in said
    for name in HOLDERS:
        assert f"{name}: 1," in said
    assert said.count("noise: standard deviation") == 1
