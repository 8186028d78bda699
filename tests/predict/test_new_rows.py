"""New rows are read as the model needs them, and a job of prediction needs few options."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from blindfit.algorithms.errors import CannotTakePart, ConfigError, DataError, PolicyRefused
from blindfit.coordinator.job.job import Job, read_job, read_tables
from blindfit.coordinator.job.trained import evaluation_of, job_with_model, prediction_of, training_session
from blindfit.coordinator.jobs.run import _in_full
from blindfit.coordinator.predict.statement import who_learnt_what
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.vertical.roles import Roles
from blindfit.parties.files import written
from blindfit.parties.predict.prediction import JointPrediction, Scored, _in_own_order, scores_in_short, table_of
from blindfit.parties.predict.settings import PredictJob
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.settings import SESSION
from blindfit.parties.store.database import Store
from blindfit.parties.systems import read_party, read_proposed
from blindfit.parties.training.rows import PartyRows, read_rows
from blindfit.parties.vertical.model_store import ModelStore
from tests.each_case import each_case
from tests.hints.following import refused
from tests.predict.parts import ACTIVE, part_of, standardiser
from tests.published import published
from tests.reports import write_report
from tests.unconnected import unconnected

TRAINING = "taylor-1a2b3c4d"


def write(directory: Path, header: list[str], *rows: list[Any]) -> None:
    with (directory / "new.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def party(directory: Path, name: str = ACTIVE, *, role: str = "active", scores: Any = None, **dataset: Any):
    peers = {"coordinator": {"role": "coordinator"}}
    values = {
        "name": name,
        "role": role,
        "identity": {"certificate": "c", "key": "k", "authority": "a"},
        "peers": peers,
        "policy": {"systems": ["predict"]},
    }
    if role in ("active", "passive"):
        values["datasets"] = {"new": {"url": "csv:new.csv", "id": "id", "features": "rest", **dataset}}
    if scores is not None:
        values["scores"] = scores
    settings = read_party(values, "party.toml")
    store = Store(directory / "state" / "party.sqlite")
    return JointPrediction(unconnected(settings, directory, store))


def parameters(session: str = TRAINING) -> PredictJob:
    return PredictJob(predict={"session": session})


def me(name: str = ACTIVE, role: str = "active") -> Member:
    return Member(name, role, "", "new")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    ModelStore(tmp_path / "state").keep(part_of(), TRAINING)
    write(tmp_path, ["id", "c0", "c1", "c2"], ["a", 1, 2, 3], ["b", 4, 5, 6])
    return tmp_path


def read(directory: Path, **dataset: Any) -> PartyRows:
    prediction = party(directory, **dataset)
    part = prediction._part(parameters(), me())
    snapshot, scale = published(prediction._party.snapshots, "new", skip_unreadable=True), part.standardiser
    prediction.check(parameters(), me())
    source = snapshot.for_model(scale.record, scale.columns, scale.means())
    return read_rows(source, labels=False, report=lambda *_: None)


# --- rows ---------------------------------------------------------------------------------------------------


def test_columns_are_found_by_name_and_the_label_is_not_read(directory):
    write(directory, ["c2", "label", "c0", "id", "note", "c1"], [3, 1, 1, "a", "x", 2], [6, 0, 4, "b", "y", 5])
    expected = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert read(directory, label="label", person="note").features.tolist() == expected
    assert read(directory, label="label", person="note").labels is None
    assert read(directory, features=["c2", "c0", "c1"]).features.tolist() == expected


def test_new_rows_need_no_label(directory):
    assert read(directory, label="malignant").features.tolist() == read(directory).features.tolist()


def test_a_column_of_the_model_that_is_not_there_is_named(directory):
    with refused('set datasets.{}.features = "rest", or add {} to them') as told:
        read(directory, features=["c0", "c2"])
    assert "datasets.new.features does not have c1, which the model has" in told.text
    write(directory, ["id", "c0", "c1", "c2"], ["a", 1, 2, 3])
    read(directory)
    read(directory, features=["c0", "c2", "c1"])
    with refused("remove {} from datasets.{}.except") as told:
        read(directory, **{"except": ["c1"]})
    assert told.parts[0] == "c1"
    read(directory, **{"except": []})
    write(directory, ["id", "c0", "c1"], ["a", 1, 2])
    with pytest.raises(DataError, match="there is no column c2"):
        read(directory, missing="mean")


def test_a_missing_value_becomes_the_mean_of_training(directory):
    """The mean of the new rows is not used: a score depends only on its own row."""
    write(directory, ["id", "c0", "c1", "c2"], ["a", 1, "", 3], ["b", 4, 500, 6])
    rows = read(directory, missing="mean")
    assert rows.features[0].tolist() == [1.0, part_of().standardiser.mean[1], 3.0]
    with pytest.raises(DataError, match=r"row 1 .*column c1"):
        read(directory)
    assert read(directory, missing="drop").ids.to_pylist() == ["b"]


def test_a_column_without_a_weight_needs_no_mean():
    assert part_of(standardiser=standardiser(dropped=(1,)), weights=np.ones(2)).standardiser.means()["c1"] == 0.0


def test_scores_are_in_the_order_of_the_active_partys_dataset(directory):
    """Alignment's order is random, and rows that not all have are left out."""
    rows = PartyRows(pa.array(list("abcde")), np.zeros((5, 1)), None, np.ones(5, bool))
    scored = _in_own_order(rows, np.array([4, 0, 2]), np.array([40, 0, 20]))
    assert (scored.ids.to_pylist(), scored.scores.tolist()) == (["a", "c", "e"], [0, 20, 40])


def test_a_linear_models_values_are_in_their_own_units():
    part = part_of(model="linear", label_mean=10.0, label_scale=2.0)
    table = table_of(part, Scored(pa.array(["a"]), np.array([3 << 42])))
    assert table.to_pylist() == [{"id": "a", "score": 3.0, "value": 16.0}]


# --- what a party refuses before a session starts -------------------------------------------------------------


def test_a_party_that_is_ready_says_nothing(directory):
    published(party(directory)._party.snapshots, "new")
    party(directory).check(parameters(), me())


def test_a_session_without_a_model_here(directory):
    with pytest.raises(PolicyRefused) as caught:
        party(directory).check(parameters("taylor-99999999"), me())
    assert (caught.value.field, caught.value.reason) == ("predict.session", "it has no model of that session")


def test_a_changed_model(directory):
    path = ModelStore(directory / "state").path(TRAINING)
    path.write_text(path.read_text().replace("0.", "0.1", 1))
    with pytest.raises(DataError, match="does not have this party's signature"):
        party(directory).check(parameters(), me())


def test_a_party_that_was_another_in_training(directory):
    with pytest.raises(PolicyRefused, match="in that training it was bank, active"):
        party(directory, role="passive").check(parameters(), me(role="passive"))
    with pytest.raises(PolicyRefused, match="in that training it was bank, active"):
        party(directory, "mill").check(parameters(), me("mill"))


def test_scores_that_are_there_already(directory):
    published(party(directory)._party.snapshots, "new")
    (directory / "kept.csv").write_text("id,score,probability\n")
    with pytest.raises(DataError, match=r"scores: .*kept\.csv: the file exists already"):
        party(directory, scores={"url": "csv:kept.csv"}).check(parameters(), me())
    party(directory, scores={"url": "csv:kept.csv", "if_exists": "append"}).check(parameters(), me())
    (directory / "kept.csv").write_text("id,score,value\n")
    with pytest.raises(DataError, match="its columns are id, score, value, not id, score, probability"):
        party(directory, scores={"url": "csv:kept.csv", "if_exists": "append"}).check(parameters(), me())


# --- options ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["passive", "key-node", "measurement"])
def test_scores_are_an_option_of_the_active_party(directory, role):
    with pytest.raises(ConfigError, match=r"\[scores\] is an option of an active party, remove it"):
        party(directory, role=role, scores={})


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ({"if_exists": "append"}, "if_exists does nothing without url"),
        ({"url": "csv:s.csv", "if_exists": "merge"}, "scores.if_exists"),
        ({"urls": "csv:s.csv"}, "did you mean url?"),
        ({"url": "mysql://u:s3cret@h/d?table=t"}, "scores.url: mysql://u:***@h/d: this kind of URL is not known"),
    ],
)
def test_an_option_of_scores_acts_or_is_refused(directory, scores, words):
    with pytest.raises(ConfigError) as caught:
        party(directory, scores=scores)
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)


PARTIES = {
    "bank": {"role": "active", "dataset": "new"},
    "shop": {"role": "passive", "dataset": "new"},
    "keys": {"role": "key-node"},
}


def job(**values: Any) -> Job:
    given = {"protocol": "predict", "predict": {"session": TRAINING}, "parties": PARTIES, **values}
    return read_job(given, "predict.toml")


@each_case(
    ("values", "words"),
    [
        ({"predict": {}}, "predict.session is missing"),
        ({"predict": {"session": "../../etc"}}, "predict.session: "),
        ({"predict": {"session": ".."}}, "predict.session: "),
        ({"predict": {"session": "a\n"}}, "predict.session: "),
        ({"predict": {"session": "x" * 65}}, "predict.session: "),
        ({"predict": {"sesion": "x"}}, "did you mean session?"),
        ({"seed": 7}, "seed does nothing in a predict job"),
        ({"split": {"test_fraction": 0.3}}, "[split] does nothing in a predict job"),
        ({"taylor": {"epochs": 3}}, "[taylor] does nothing in a predict job"),
        ({"privacy": {"epsilon": 1.0}}, "[privacy] does nothing in a predict job"),
        ({"align": {"method": "linkage", "fields": ["a", "b", "c"]}}, "no row can be scored"),
        ({"parties": {k: v for k, v in PARTIES.items() if k != "keys"}}, "exactly one key-node"),
        ({"parties": {k: v for k, v in PARTIES.items() if k != "shop"}}, "1 to 16 passive"),
    ],
)
def test_an_option_of_the_job_acts_or_is_refused(values, words):
    with pytest.raises(ConfigError) as caught:
        job(**values)
    assert words in str(caught.value)


def test_prediction_is_an_option_of_no_other_protocol():
    with pytest.raises(ConfigError, match=r"\[predict\] does nothing in a taylor job"):
        job(protocol="taylor")


def test_parties_are_told_what_the_protocol_uses_and_nothing_else():
    told = job(align={"min_common": 20}).parameters.to_parameters()
    assert told["predict.session"] == TRAINING
    assert {name.split(".")[0] for name in told} == {"protocol", "align", "predict", "timeouts"}
    assert read_proposed(told).align.min_common == 20


# --- the coordinator ---------------------------------------------------------------------------------------------


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    lines = ['protocol = "predict"']
    for name, value in PARTIES.items():
        lines += [f"[parties.{name}]", *(f'{key} = "{text}"' for key, text in value.items())]
    (tmp_path / "predict.toml").write_text("\n".join(lines))
    written.write_json(tmp_path / "runs" / "report.json", {"session": TRAINING, "protocol": "taylor"})
    return tmp_path / "predict.toml"


def test_a_training_is_named_by_its_session_its_report_or_the_job(job_file):
    assert prediction_of(job_file, "x-1", None).parameters.predict.session == "x-1"
    assert prediction_of(job_file, None, job_file.parent / "runs").parameters.predict.session == TRAINING
    assert prediction_of(job_file, predict={"session": "y-2"}).parameters.predict.session == "y-2"
    assert prediction_of(job_file, "1e5", None).parameters.predict.session == "1e5"  # a text, not a number


def test_two_trainings_none_or_another_kind_of_job_are_refused(job_file):
    with pytest.raises(ConfigError, match="give one of them"):
        prediction_of(job_file, "x-1", job_file.parent / "runs")
    with pytest.raises(ConfigError, match=r"predict\.session is missing"):
        prediction_of(job_file, None, None)
    with pytest.raises(ConfigError, match="protocol = taylor, but `blindfit predict` takes a predict job"):
        prediction_of(job_file, protocol="taylor")
    for source in (job_file, read_tables(job_file), Job(job_file, predict={"session": "x-1"})):
        with pytest.raises(ConfigError, match="protocol = predict, but `blindfit evaluate` takes an evaluate job"):
            evaluation_of(source, "x-1", None)


def test_a_training_takes_no_model(job_file):
    with refused("leave out --model (in Python, model)") as told:
        job_with_model(job_file, job_file.parent / "runs", rehearses=False, protocol="taylor")
    assert "protocol = taylor, and only a predict or an evaluate job takes a model" in told.text
    assert job_with_model(job_file, None, rehearses=False, predict={"session": "x-1"}).protocol == "predict"


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"session": 3}'])
def test_a_directory_without_the_report_of_a_training(job_file, content):
    (job_file.parent / "runs" / "report.json").write_bytes(content)
    with pytest.raises(DataError, match=r"report\.json is not"):
        training_session(job_file.parent / "runs")
    with pytest.raises(DataError, match=r"report\.json cannot be read"):
        training_session(job_file.parent / "nowhere")


def ended(**summary: Any) -> JobSession:
    """Return a session as if a prediction had ended with this report of the bank."""
    session = JobSession(job(), {}, None, id="predict-1")  # type: ignore[arg-type]
    session.state, session.seconds = "DONE", {"job": 1.0}
    session.summaries = {"bank": {"timing.read_s": 0.1, **summary}}
    return session


@each_case("rows", [None, True, 3.0, "3", (3,), -1])
def test_an_active_party_that_tells_no_number_of_rows(tmp_path, rows):
    told = {} if rows is None else {"rows.common": rows}
    with pytest.raises(DataError, match=r"the report of bank: rows\.common is "):
        write_report(ended(**told, **{"model.in_shares": False}), tmp_path, [])
    assert list(tmp_path.iterdir()) == []


@each_case("in_shares", [None, 1, "yes"])
def test_an_active_party_that_does_not_tell_what_scored(tmp_path, in_shares):
    told = {} if in_shares is None else {"model.in_shares": in_shares}
    with pytest.raises(DataError, match=r"the report of bank"):
        write_report(ended(**told, **{"rows.common": 3}), tmp_path, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("session", "known"), [("predict-1", True), ("predict-0", False)])
def test_scores_are_named_by_the_report_of_this_session_alone(tmp_path, session, known):
    """The directory may hold an earlier run's."""
    (tmp_path / "bank").mkdir()
    report = {
        "session": session,
        "rows": {"read": 5, "common": 3},
        "model": {"in_shares": False},
        "scores": {"where": "<b>scores.csv", "of": "value", "histogram": []},
        "timing": {},
    }
    (tmp_path / "bank" / "report.json").write_text(json.dumps(report))
    (tmp_path / "bank" / "model.json").write_text("{}")  # model of a training
    told = {"rows.common": 3, "model.in_shares": False}
    page = write_report(ended(**told), tmp_path, ["bank"]).html_path.read_text()
    assert ("&lt;b&gt;scores.csv" in page) == known
    assert ("keeps the scores with its own report" in page) != known


def test_the_page_of_a_model_in_shares_says_so(tmp_path):
    page = write_report(ended(**{"rows.common": 3, "model.in_shares": True}), tmp_path, []).html_path.read_text()
    assert "nobody has a weight" in page
    assert "It dealt with seeds of only this prediction" in page


def test_scores_in_short_are_of_the_rows():
    scores = np.array([-3, 0, 1, 2], np.int64) << 42
    told = scores_in_short(part_of("bank"), scores, "scores.csv").to_dict()
    expected = 1 / (1 + np.exp(-np.array([-3.0, 0.0, 1.0, 2.0])))
    assert told["of"] == "probability"
    assert [told[name] for name in ("mean", "least", "median", "largest")] == pytest.approx(
        [expected.mean(), expected[0], expected[1:3].mean(), expected[3]], abs=1e-9
    )
    assert sum(part["rows"] for part in told["histogram"]) == 4
    none = scores_in_short(part_of("bank"), scores[:0], "scores.csv").to_dict()
    assert none == {"where": "scores.csv", "of": "probability", "histogram": []}


def test_it_is_said_what_one_passive_party_cannot_hide():
    roles = Roles("bank", ("shop",), "keys")
    one = who_learnt_what(roles, 1)
    assert "the scores of 1 row; the scores minus its own part are the other party's part" in one["bank"]
    two = who_learnt_what(Roles("bank", ("post", "shop"), "keys"), 3)
    assert "of which it learnt only its own" in two["bank"]
    assert sorted(two) == ["bank", "keys", "post", "shop"]
    assert all("no score" in two[name] for name in ("keys", "post", "shop"))


def test_every_session_that_a_coordinator_makes_is_a_name():
    for name in ("job", ".hidden", "a.b", "-x", "_", "A1"):
        assert re.fullmatch(SESSION, f"{name}-1a2b3c4d")


@pytest.mark.parametrize("kind", [ConfigError, DataError])
def test_a_party_on_this_machine_is_quoted(tmp_path, kind):
    """The party reports less to a coordinator than to its own log."""
    for name, error in (("bank", kind.__name__), ("shop", "PeerAborted")):
        (tmp_path / name).mkdir()
        record = {"event": "call failed", "error": error, "reason": f"what {name} says"}
        (tmp_path / name / "party.log").write_text(f"no json\n{json.dumps(record)}\n")
    told = _in_full(CannotTakePart("bank"), job(), tmp_path)
    assert (type(told), str(told)) == (kind, "what bank says")
    (tmp_path / "bank" / "party.log").unlink()
    assert isinstance(_in_full(CannotTakePart("bank"), job(), tmp_path), CannotTakePart)


def test_the_examples_new_rows_are_40_that_all_have_and_nobody_labelled(tmp_path):
    script = Path(__file__).parents[2] / "examples" / "taylor" / "prepare.py"
    subprocess.run([sys.executable, script, "--out", tmp_path], check=True)
    ids = {}
    for name in ("hospital", "laboratory", "archive"):
        with (tmp_path / f"{name}_new.csv").open(newline="") as new, (tmp_path / f"{name}.csv").open(newline="") as old:
            rows, trained = list(csv.DictReader(new)), csv.DictReader(old)
            assert [*rows[0]] == [column for column in trained.fieldnames or () if column != "malignant"]
            ids[name] = [row["id"] for row in rows]
            assert not set(ids[name]) & {row["id"] for row in trained}
    assert {name: (len(held), len(set(held))) for name, held in ids.items()} == {
        "hospital": (42, 42),
        "laboratory": (45, 45),
        "archive": (43, 43),
    }
    assert len(set.intersection(*map(set, ids.values()))) == 40
