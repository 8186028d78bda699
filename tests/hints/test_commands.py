"""Commands that refuse something, and the command that they print instead."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.estimators.initial_model import keep_scale
from blindfit.coordinator.job import folders
from blindfit.coordinator.job.job import load_job, with_session
from blindfit.coordinator.job.trained import evaluation_of, prediction_of
from blindfit.coordinator.operator import health
from blindfit.coordinator.plan.asked import Asked
from blindfit.coordinator.verify import export
from blindfit.coordinator.verify.refit import Refit, SentRows
from blindfit.coordinator.walr.assumed import assume
from blindfit.parties.store.data_dir_lock import DataDirLock
from blindfit.parties.systems import load_model, load_party
from tests.audit import models
from tests.command import Done, blindfit
from tests.each_case import each_case
from tests.falcon.configs import CONFIG, drop, make, put, write
from tests.hints.following import Told, refused, refused_command, refused_value, says
from tests.keeping.bank import Bank
from tests.world import World
from tests.world.vertical import bank_and_shops

TYPED = {"PARTY.TOML": "bank.toml", "JOB.TOML": "job.toml", "DIR": "out"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Files that no test here changes, and a party with a store."""
    made = bank_and_shops(tmp_path_factory.mktemp("project"))
    made.publish("bank")
    return made


def run(project: World, *words: str) -> Done:
    return blindfit(project.root, *words)


def typed(told: Told) -> list[str]:
    """Run the last command of the hint, with files for the words in capitals."""
    return [TYPED.get(word, word) for word in told.commands[-1]]


# --- files and folders -----------------------------------------------------------------------------------------


def test_a_party_file_is_no_job_and_a_job_is_no_party_file(project: World) -> None:
    told = refused_command(
        "`blindfit party {}` starts that party; a job file has `protocol` and [parties]",
        run(project, "show", "bank.toml"),
    )
    assert told.commands[0] == ["party", "bank.toml"]
    load_party(project.root / "bank.toml")  # a party that is started does not end
    told = refused_command(
        "`blindfit run {}` runs the job; a party file has `role`, [identity] and [peers]",
        run(project, "jobs", "job.toml"),
    )
    assert told.commands[0] == ["run", "job.toml"]
    assert run(project, "show", "job.toml").returncode == 0


def test_an_option_that_nobody_knows(project: World) -> None:
    told = refused_command("`blindfit explain` lists the tables", run(project, "explain", "zzzzzz"))
    assert run(project, *typed(told)).returncode == 0
    told = refused_command("such as privacy.epsilon=0.5", run(project, "show", "job.toml", "--set", "epsilon"))
    assert "privacy.epsilon=0.5" in told.text
    assert run(project, "show", "job.toml", "--set", "privacy.epsilon=0.5").returncode == 0


def test_a_file_that_is_not_in_utf_8(tmp_path: Path) -> None:
    text = 'name = "ä"\n'
    (tmp_path / "job.toml").write_bytes(text.encode("latin-1"))
    with refused("save it as UTF-8"):
        load_job(tmp_path / "job.toml")
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Exception, match="protocol is missing"):
        load_job(tmp_path / "job.toml")


def test_reports_that_have_no_room(tmp_path: Path) -> None:
    """A file stands where runs/ belongs."""
    project = bank_and_shops(tmp_path)
    (tmp_path / "runs").write_text("mine")
    with contextlib.chdir(tmp_path), refused("name another folder: --out DIR") as told:
        folders.new_folder("job")
    done = run(project, "run", "job.toml", "--out", "out", "--set", "parties.bank.config=none.toml")
    assert "none.toml does not exist" in done.stderr
    assert not told.is_in(done.stderr)


def test_a_session_for_a_job_that_takes_none(project: World) -> None:
    with refused("remove --session: only predict and evaluate jobs take it"):
        with_session(project.root / "job.toml", [], "s1")
    assert with_session(project.root / "job.toml", [], None) == []
    assert with_session(project.root / "predict.toml", [], "s1") == ['predict.session="s1"']


def test_a_folder_that_is_not_of_a_training(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/report.json").write_text("{}")
    job = bank_and_shops(tmp_path).root / "predict.toml"
    with refused("give the --out directory of the training"):
        prediction_of(job, None, tmp_path / "out")
    (tmp_path / "out/report.json").write_text('{"session": "s1"}')
    assert prediction_of(job, None, tmp_path / "out").parameters.predict.session == "s1"


def test_scores_that_are_not_of_a_prediction(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    content = {"session": "p1", "job": {}}
    (tmp_path / "out/report.json").write_text(json.dumps(content))
    lines = 'protocol = "evaluate"\nprivacy.epsilon = 1\nevaluate.session = "s1"\n'
    lines += (
        '[parties.bank]\nrole = "active"\ndataset = "rows"\n[parties.meter]\nrole = "measurement"\ndataset = "rows"\n'
    )
    (tmp_path / "job.toml").write_text(lines)
    with refused("give the --out directory of the prediction"):
        evaluation_of(tmp_path / "job.toml", scores=tmp_path / "out")
    (tmp_path / "out/report.json").write_text(json.dumps({"session": "p1", "job": {"predict": {"session": "s1"}}}))
    assert evaluation_of(tmp_path / "job.toml", scores=tmp_path / "out").parameters.evaluate.scores == "p1"


# --- parties of a job --------------------------------------------------------------------------------------------


def test_a_party_that_is_elsewhere(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path)
    job = (tmp_path / "job.toml").read_text()
    (tmp_path / "job.toml").write_text(job.replace('config = "bank.toml"\n', ""))
    told = refused_command(
        "set parties.{}.config to its party file; if the parties already run, use `blindfit submit JOB.TOML`",
        run(project, "run", "job.toml", "--out", "out"),
    )
    submitted = run(project, *typed(told))
    assert not told.is_in(submitted.stderr)
    told = refused_value('such as parties.{}.address = "party.example.org:7100"', submitted.stderr)
    addresses = [
        f"--set=parties.{name}.address=party.example.org:7100" for name in ("bank", "shop-a", "shop-b", "notary")
    ]
    done = run(project, "submit", "job.toml", *addresses)
    assert not told.is_in(done.stderr)
    told = refused_value(
        "set coordinator.certificate, coordinator.key and coordinator.authority; `blindfit "
        "certs issue DIR coordinator` makes them",
        done.stderr,
    )
    assert run(project, "certs", "authority", "out").returncode == 0
    assert run(project, *typed(told)).returncode == 0
    files = [f"--set=coordinator.{name}=out/coordinator/{name}.pem" for name in ("certificate", "key", "authority")]
    assert not told.is_in(run(project, "check", "job.toml", *addresses, *files).stderr)
    assert run(project, "check", "job.toml", "--set=parties.bank.config=bank.toml").returncode == 0


def test_parties_that_know_no_coordinator_in_common(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path)
    path = tmp_path / "bank.toml"
    path.write_text(path.read_text().replace("[peers.coordinator]", "[peers.boss]"))
    wrong = run(project, "run", "job.toml", "--out", "out")
    refused_command('add [peers.coordinator] with role = "coordinator" to each file', wrong)
    path.write_text(path.read_text() + '[peers.coordinator]\nrole = "coordinator"\n')
    done = run(project, "run", "job.toml", "--out", "out2", "--set", "align.min_common=10000")
    assert "coordinator" not in done.stderr


def test_a_listening_address_that_every_start_changes(project: World) -> None:
    with refused('set listen = "0.0.0.0:7100"'):
        health.address_of("127.0.0.1:0")
    assert health.address_of("0.0.0.0:7100") == "127.0.0.1:7100"


def test_a_second_start_of_a_party(tmp_path: Path) -> None:
    first, second = DataDirLock(tmp_path, "bank"), DataDirLock(tmp_path, "shop")
    first.take()
    with refused(
        "start each party once, with a data_dir of its own; for parties that are running use `blindfit submit JOB.TOML`"
    ):
        second.take()
    own = DataDirLock(tmp_path / "own", "shop")
    own.take()
    for lock in (first, own):
        lock.release()


# --- what a party has had ------------------------------------------------------------------------------------------


def test_a_session_that_a_party_has_not_had(project: World) -> None:
    told = refused_command("`blindfit jobs PARTY.TOML` lists its sessions", run(project, "logs", "bank.toml", "s1"))
    assert run(project, *typed(told)).returncode == 0
    told = refused_command("`blindfit jobs --running PARTY.TOML` lists them", run(project, "cancel", "bank.toml", "s1"))
    assert run(project, *typed(told)).returncode == 0


def test_a_job_that_does_not_wait(project: World) -> None:
    told = refused_command(
        "`blindfit approve {}` shows the waiting jobs with their digests",
        run(project, "approve", "bank.toml", "s1", "digest"),
    )
    assert run(project, *typed(told)).returncode == 0


def test_a_party_without_a_passphrase(tmp_path: Path) -> None:
    project = bank_and_shops(tmp_path)
    refused_command(
        "set secrets.passphrase_file in its party file to a file with a passphrase", run(project, "lock", "bank.toml")
    )
    (tmp_path / "words").write_text("four random words here\n")
    (tmp_path / "words").chmod(0o600)
    with (tmp_path / "bank.toml").open("a") as file:
        file.write('[secrets]\npassphrase_file = "words"\n')
    assert run(project, "lock", "bank.toml").returncode == 0


def test_what_is_purged(tmp_path: Path) -> None:
    bank_and_shops(tmp_path)
    bank = Bank(tmp_path)
    bank.session("old")
    bank.writes("old", "report.json")
    project = World(tmp_path)
    refused_command("give a session, --ended-before DATE or --all-ended", run(project, "purge", "bank.toml"))
    told = refused_command(
        "write YYYY-MM-DD, such as 2026-01-31 (UTC)", run(project, "purge", "bank.toml", "--ended-before", "monday")
    )
    (day,) = re.findall(r"\d{4}-\d\d-\d\d", told.text)
    for words in (["old"], ["--ended-before", day], ["--all-ended"]):
        assert run(project, "purge", "bank.toml", *words, "--dry-run").returncode == 0
    refused_command("add --yes, or --dry-run", run(project, "purge", "bank.toml", "old", "--json"))
    for word in ("--dry-run", "--yes"):
        assert run(project, "purge", "bank.toml", "old", "--json", word).returncode == 0


# --- plans, audits and exports ---------------------------------------------------------------------------------------


def test_a_system_without_a_plan(project: World) -> None:
    told = refused_command(
        "`blindfit check JOB.TOML` finds what would leak, fail or take long", run(project, "plan", "job.toml")
    )
    assert run(project, *typed(told)).returncode == 0


def test_a_strength_beside_a_model(tmp_path: Path) -> None:
    read: Any = None
    for asked in (Asked(strength=1.0, model=tmp_path), Asked(strength=1.0)):
        told = Told("--strength does nothing with --model, because a model has its own strength: remove one")
        try:
            assume(read, read, read, asked)
        except Exception as error:  # noqa: BLE001 - the one that is followed has no rows to read here
            said = str(error)
        assert told.is_in(said) == (asked.model is not None)


def test_labels_that_a_mechanism_does_not_look_at(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("id,y\n" + "".join(f"{i},{i % 7}\n" for i in range(50)))
    words = ("attack", "laplace", "--range", "0", "7", "--samples", "2000")
    refused_command(
        "--labels: {} learns nothing from labels beforehand, so they do nothing; remove it",
        blindfit(tmp_path, *words, "--labels", "labels.csv:y"),
    )
    assert "error" not in blindfit(tmp_path, *words).stderr


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    members, others = models.rows(models.ROWS, 0), models.rows(models.ROWS, 1)
    models.write_csv(tmp_path / "members.csv", members, 0)
    models.write_csv(tmp_path / "others.csv", others, 1000)
    (tmp_path / "model.json").write_text(models.as_walr(models.overfitted(members)))
    return tmp_path


def test_a_label_that_is_a_feature_of_the_model(audited: Path) -> None:
    words = ("attack", "model.json", "--members", "members.csv", "--non-members", "others.csv")
    told = refused_command(
        "name other columns: --label COLUMN, --id COLUMN", blindfit(audited, *words, "--label", "f5")
    )
    assert not told.is_in(blindfit(audited, *words, "--label", "label", "--id", "id").stderr)


def test_a_model_in_shares_is_not_exported(tmp_path: Path) -> None:
    (tmp_path / "shares.json").write_text("{}")
    with refused("`blindfit predict` scores rows with it, together with the other parties") as told:
        load_model(tmp_path / "shares.json")
    assert blindfit(tmp_path, *told.commands[0], "--help").returncode == 0


def test_a_folder_without_a_release(tmp_path: Path) -> None:
    with refused("after `blindfit submit` it is at the active party, in output_dir or in models/SESSION of data_dir"):
        export._find_release(tmp_path)
    (tmp_path / "models/s1").mkdir(parents=True)
    (tmp_path / "models/s1" / export.RELEASE_FILE).write_text("{}")
    assert export._find_release(tmp_path / "models/s1").parent.name == "s1"


def test_rows_and_features_go_together(tmp_path: Path) -> None:
    (tmp_path / "release.json").write_text("{}")
    told = refused_command(
        "--rows is the training_rows.json next to the active party's model",
        blindfit(tmp_path, "verify", "release.json", "--features", "csv:rows.csv"),
    )
    (tmp_path / "training_rows.json").write_text("{}")
    words = ("verify", "release.json", "--features", "csv:rows.csv", "--rows", "training_rows.json")
    assert not told.is_in(blindfit(tmp_path, *words).stderr)


def test_an_id_that_is_a_column_of_the_model() -> None:
    for row_id, refuses in (("age", True), ("id", False)):
        told = Told("name another column: --id COLUMN")
        with pytest.raises(Exception) as caught:  # noqa: PT011 - without its table the second ends later
            Refit("csv:none.csv", row_id, SentRows(b"", [], []))._features(keep_scale(("age",)))
        assert told.is_in(str(getattr(caught.value, "hint", ""))) == refuses


# --- init ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    ids, draw = [f"c{i}" for i in range(120)], np.random.default_rng(0)
    bank = {"client": ids, "age": draw.normal(size=120), "churned": ["go" if i % 3 else "stay" for i in range(120)]}
    shop = {"client": ids, "spent": draw.normal(size=120), "visits": draw.normal(size=120)}
    pq.write_table(pa.table(bank), tmp_path / "bank.parquet")
    pq.write_table(pa.table(shop), tmp_path / "shop.parquet")
    return tmp_path


def init(tables: Path, *words: str, system: str = "taylor") -> Done:
    return blindfit(tables, "init", "--system", system, "bank.parquet", "shop.parquet", *words)


def add(tables: Path, party: str, **columns: list[Any]) -> None:
    table = pq.read_table(tables / f"{party}.parquet").to_pydict()
    pq.write_table(pa.table({**table, **columns}), tables / f"{party}.parquet")


def test_which_label_is_1(tables: Path) -> None:
    told = refused_command("name its text: --positive TEXT", init(tables, "--label", "churned"))
    assert "go or stay" in told.text
    assert init(tables, "--label", "churned", "--positive", "go").returncode == 0


def test_a_label_of_three_texts(tables: Path) -> None:
    add(tables, "bank", churned=[("go", "stay", "perhaps")[i % 3] for i in range(120)])
    refused_command(
        "name the one that is label 1, all others being 0: --positive TEXT", init(tables, "--label", "churned")
    )
    assert init(tables, "--label", "churned", "--positive", "go").returncode == 0


def test_a_label_of_an_aggregate_that_is_a_number(tables: Path) -> None:
    add(tables, "bank", churned=[i % 5 for i in range(120)])
    refused_command(
        "name the value that counts as label 1, all others being 0: --positive VALUE",
        init(tables, "--label", "churned", system="walr"),
    )
    assert init(tables, "--label", "churned", "--positive", "4", system="walr").returncode == 0


def test_which_column_names_a_row(tables: Path) -> None:
    add(tables, "shop", age=[1.0] * 120)
    refused_command("name it: --id COLUMN", init(tables, "--label", "churned", "--positive", "go"))
    assert init(tables, "--label", "churned", "--positive", "go", "--id", "client").returncode == 0


def test_a_label_that_no_table_has(tables: Path) -> None:
    refused_command("name the column to learn: --label COLUMN", init(tables, "--label", "left"))
    assert init(tables, "--label", "churned", "--positive", "go").returncode == 0


def test_tables_without_common_rows(tables: Path) -> None:
    add(tables, "bank", name=[f"n{i}" for i in range(120)])
    add(tables, "shop", client=[f"x{i}" for i in range(120)], name=[f"n{i}" for i in range(120)])
    words = ("--label", "churned", "--positive", "go")
    refused_command(
        "check that they name rows in the same way; --id COLUMN names the column of the ids",
        init(tables, *words, "--id", "client"),
    )
    assert init(tables, *words, "--id", "name").returncode == 0


def test_a_table_of_another_kind(tables: Path) -> None:
    (tables / "shop.txt").write_text("client,spent\n")
    told = refused_command(
        "name a .csv, .parquet or .xlsx file, or use {}",
        blindfit(tables, "init", "--system", "taylor", "bank.parquet", "shop.txt", "--label", "churned"),
    )
    assert "shop.txt: Blindfit cannot read this kind of table" in told.text
    assert init(tables, "--label", "churned", "--positive", "go").returncode == 0


def test_a_folder_that_is_there_or_cannot_be(tables: Path) -> None:
    words = ("--label", "churned", "--positive", "go")
    (tables / "joint").mkdir()
    (tables / "joint/mine").write_text("mine")
    refused_command("name another folder: --out DIR", init(tables, *words))
    (tables / "file").write_text("mine")
    refused_command("name another folder: --out DIR", init(tables, *words, "--out", "file/joint"))
    assert init(tables, *words, "--out", "another").returncode == 0


def test_init_without_words_where_nobody_sits(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", open("/dev/null"))  # noqa: SIM115
    told = refused_command(
        "such as: blindfit init --system taylor hospital.csv laboratory.csv --label malignant", blindfit(tables, "init")
    )
    (command,) = re.findall(r"blindfit (init .*)", told.text)
    names = {"hospital.csv": "bank.parquet", "laboratory.csv": "shop.parquet", "malignant": "churned"}
    words = [names.get(word, word) for word in command.split()]
    assert blindfit(tables, *words, "--positive", "go").returncode == 0


# --- import-falcon -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def falcon_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("falcon")
    make(made)
    return made


def imported(there: Path, *without: str) -> Done:
    words = [word for field in without for word in ("--without", field)]
    number = len(list(there.glob("new*")))
    return blindfit(there, "import-falcon", "job.json", "--out", f"new{number}", *words)


@each_case(
    ("wrong", "text", "mend"),
    [
        (
            [put(f"{CONFIG}.converge_threshold", 0.1)],
            says("convergence_threshold and converge_threshold are one option: remove one of them"),
            [drop(f"{CONFIG}.converge_threshold")],
        ),
        (
            [put("party_nums", 2)],
            says("party_nums: {}, but party_info lists {}: correct one of them"),
            [put("party_nums", 3)],
        ),
        (
            [put("party_info.2.id", 1)],
            says("party_info.{}.{}: party_info.{} has the same: give it another"),
            [put("party_info.2.id", 7)],
        ),
        (
            [put("party_info.0.party_type", "passive")],
            says('party_info: no party has party_type = "active": set it for the party that has the labels'),
            [put("party_info.0.party_type", "active")],
        ),
        (
            [put("party_info.1.party_type", "active")],
            says('party_info.{}.party_type: party_info.{} is "active" too: set one of them to "passive"'),
            [put("party_info.1.party_type", "passive")],
        ),
    ],
)
def test_a_falcon_job_that_contradicts_itself(
    falcon_files: Path, wrong: list[Callable[[Any], None]], text: str, mend: list[Callable[[Any], None]]
) -> None:
    write(falcon_files, *wrong)
    refused_command(text, imported(falcon_files))
    write(falcon_files, *wrong, *mend)
    assert imported(falcon_files).returncode == 0


def test_a_falcon_job_with_fields_that_are_not_carried(falcon_files: Path) -> None:
    write(falcon_files, put(f"{CONFIG}.new_field", 1))
    refused_command("to go on without a field that is unknown, add --without FIELD", imported(falcon_files))
    assert imported(falcon_files, "new_field").returncode == 0
    write(falcon_files, put(f"{CONFIG}.multi_class", "multinomial"))
    told = refused_command("to go on without it, add --without {}: {}", imported(falcon_files))
    (field,) = re.findall(r"--without (\w+)", told.text)
    assert imported(falcon_files, field).returncode == 0
    write(falcon_files)
    refused_command(
        "--without {} does nothing, because the import carries this field: remove it", imported(falcon_files, "decay")
    )
    assert imported(falcon_files).returncode == 0
