"""A job of each kind: no secret leaves, and only its owner can read what is kept, with keys under the passphrase."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.files.vault import FILE
from tests.canaries import hits, listening
from tests.dp_lr import conftest as dp_lr
from tests.keeping.jobs import JOBS, Ran, running
from tests.label_dp import conftest as label_dp
from tests.world import World


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ran]:
    """Each job runs once, for any order of the tests."""

    @cache
    def run(job: str) -> Ran:
        with running(tmp_path_factory.mktemp("job")) as ran:
            JOBS[job](ran)
        return ran

    return run


@pytest.fixture(params=JOBS, ids=JOBS)
def ran(request: pytest.FixtureRequest, run_once: Callable[[str], Ran]) -> Ran:
    return run_once(request.param)


def test_nothing_secret_is_told(ran: Ran) -> None:
    """The test covers logs at DEBUG, messages, transcripts, errors, and the coordinator's reports."""
    transcripts = {path: kept.content for path, kept in ran.kept.items() if path.endswith("transcript.jsonl")}
    told = {**ran.heard.said, **ran.heard.messages, **ran.reports, **transcripts}
    assert told["errors"]
    assert any(path.endswith("report.json") for path in told)
    assert hits({**ran.keys, **ran.rows}, told) == set()


def test_files_are_their_owners_alone_whatever_the_umask(ran: Ran) -> None:
    assert any(path.endswith("party.sqlite") for path in ran.kept)
    assert {path: oct(kept.mode) for path, kept in ran.kept.items() if kept.mode & 0o077} == {}


def test_no_key_is_kept_in_the_clear(ran: Ran) -> None:
    assert hits(ran.keys, {path: kept.content for path, kept in ran.kept.items()}) == set()


def test_what_is_locked_are_the_keys(ran: Ran) -> None:
    """The search above would find the keys. Lambda, the noise's key and the passphrase are kept nowhere."""
    drawn = {kind_of(name) for name in ran.keys if " of " in name} - {"lambda", "noise key"}
    assert {kind_of(name) for name, _ in hits(ran.keys, ran.opened)} == drawn


def kind_of(name: str) -> str:
    return name.partition(" of ")[0]


def test_what_is_planted_is_there_to_be_found(ran: Ran) -> None:
    tables = {path.name: path.read_bytes() for path in ran.root.glob("*.csv")}
    assert {secret for secret, _ in hits(ran.rows, tables)} >= {"person", "feature"}


def test_a_party_says_at_its_start_whether_its_keys_are_locked(ran: Ran) -> None:
    assert not [line for line in ran.heard.logs if "unlocked" in line["event"]]


def test_without_a_passphrase_keys_are_plain_and_the_log_says_so(tmp_path: Path) -> None:
    label_dp.write_project(tmp_path)
    with listening() as heard:
        World(tmp_path).run()
    told = [line["party"] for line in heard.logs if line["event"].startswith("keys and checkpoints are kept unlocked")]
    assert sorted(told) == ["meter", "shop"]
    assert not list(tmp_path.rglob(FILE))
    assert b"PRIVATE KEY" in (tmp_path / "state/meter/receipt_key.pem").read_bytes()


def test_another_passphrase_ends_the_start_in_one_line(tmp_path: Path) -> None:
    dp_lr.write_project(tmp_path)
    for words in ("the right passphrase", "a wrong passphrase"):
        (tmp_path / words.split()[1]).write_text(words)
    locked = World(tmp_path, ["secrets.passphrase_file=right"])
    locked.publish("clinic", "archive")
    locked.run()
    for given, said in ((["secrets.passphrase_file=wrong"], "does not open with this"), ([], "is locked and no")):
        with pytest.raises(ConfigError, match=rf"^{tmp_path}/state/clinic/vault\.json {said} passphrase"):
            World(tmp_path, given).run()
