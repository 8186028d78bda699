"""Services of the cluster in addition to the parties: certificates, data, the submission, the sleep."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.sharing.field import P
from blindfit.parties.data.opening import open_source
from blindfit.parties.files.private_files import read_certificate
from blindfit.parties.identity import authority
from blindfit.parties.identity.authority import PartyFiles
from blindfit.parties.identity.identity import Identity, load_identity
from tests.cluster.reading import CLUSTER, PARTIES, ROOT, mounts, settings_of
from tests.cluster.running import certify, hand_out_data, run, try_to_hand_out_data

ASLEEP = ["touch /tmp/sleeps", "sleep infinity"]

# --- certificates


def identity(tmp_path: Path, party: str) -> Identity:
    files = PartyFiles.in_folder(tmp_path / "identities" / party)
    return load_identity(files.certificate, files.key, files.authority, files.revoked)


def test_each_volume_gets_its_own_certificate_and_key(tmp_path: Path) -> None:
    assert certify(tmp_path, "archive", "notary") == {"archive": "made", "notary": "made"}
    assert [identity(tmp_path, party).name for party in ("archive", "notary")] == ["archive", "notary"]
    kept = sorted(path.name for path in (tmp_path / "identities").rglob("*") if path.is_file())
    assert kept == sorted(2 * ["authority.pem", "certificate.pem", "crl.pem", "key.pem"])
    assert [path.name for path in (tmp_path / "authority").rglob("*key*")] == ["authority.key"]  # a party's key moved


def test_a_second_run_renews_and_keeps_keys(tmp_path: Path) -> None:
    certify(tmp_path, "archive")
    before = identity(tmp_path, "archive")
    assert certify(tmp_path, "archive", "notary") == {"archive": "renewed", "notary": "made"}
    after = identity(tmp_path, "archive")
    assert after.key_pem == before.key_pem
    assert after.certificate_pem != before.certificate_pem


def test_a_revoked_party_stays_revoked_and_the_others_learn_it(tmp_path: Path) -> None:
    certify(tmp_path, "archive", "notary")
    authority.revoke(tmp_path / "authority", "archive")
    said = certify(tmp_path, "archive", "notary")
    assert said["archive"].startswith("not renewed")
    revoked = identity(tmp_path, "notary").revoked
    assert revoked is not None
    assert revoked.has(read_certificate(tmp_path / "identities/archive/certificate.pem"))


# --- data


def test_each_volume_gets_its_own_rows(data: Path) -> None:
    volumes = {where.rsplit("/", 1)[1] for where in mounts("data")}
    assert volumes == {party for party in PARTIES if settings_of(party).datasets}
    for party in volumes:
        datasets = settings_of(party).datasets
        assert {path.name for path in (data / party).iterdir()} == {Path(d.url).name for d in datasets.values()}
        for name, dataset in datasets.items():
            here = dataset.model_copy(update={"url": dataset.url.replace("/data/", f"{data / party}/")})
            assert sum(len(batch.ids) for batch in open_source(here, ROOT, name).batches()) > 500
    assert hand_out_data(data) == []  # existing files stay


def test_east_and_west_have_halves_of_the_clinics_labels(data: Path) -> None:
    east, west = (pq.read_table(data / server / "visits.parquet") for server in ("east", "west"))
    assert east.column_names == west.column_names == ["id", "share", "split_id"]
    assert east["split_id"].unique() == west["split_id"].unique()
    assert east["id"] == west["id"]
    opened = (east["share"].to_numpy().astype(object) + west["share"].to_numpy().astype(object)) % P
    visits = pyarrow.csv.read_csv(data / "clinic" / "visits.csv").sort_by("id")
    assert east["id"] == visits["id"]
    assert opened.tolist() == visits["saw_doctor"].to_pylist()


PREPARED = """#!/bin/sh
mkdir "$3"
for party in hospital laboratory archive; do cp {data}/$party/tumours.csv "$3/$party.csv"; done
cp {data}/hospital/people.parquet "$3/features.parquet"
cp {data}/clinic/visits.csv "$3"
"""


@pytest.fixture
def prepared(tmp_path: Path, data: Path) -> Path:
    """A python whose prepare.py quickly makes the same files as always."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python").write_text(PREPARED.format(data=data))
    (programs / "python").chmod(0o700)
    return programs


def test_what_is_split_stays_where_something_else_is_missing(tmp_path: Path, data: Path, prepared: Path) -> None:
    here = tmp_path / "data"
    shutil.copytree(data, here)
    (here / "laboratory" / "tumours.csv").unlink()
    assert hand_out_data(here, prepared) == [f"{here}/laboratory/tumours.csv"]
    assert contents(here) == contents(data)


@pytest.mark.parametrize(("there", "missing"), [("east", "west"), ("west", "east")])
def test_half_a_split_is_an_error_and_not_split_beside(tmp_path: Path, data: Path, there: str, missing: str) -> None:
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    (tmp_path / missing / "visits.parquet").unlink()
    before = contents(tmp_path)
    done = try_to_hand_out_data(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"{tmp_path}/{there}/visits.parquet is half of a split, and {missing} lacks the other: "
        "remove it, and the labels are split again\n"
    )
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- the submission

BLINDFIT = """#!/bin/sh
trap 'echo "the parties are told"; exit 130' TERM
echo "$@"
[ "$2" != /jobs/slow.toml ] || { sleep 30 >/dev/null & wait; }
[ "$2" != /jobs/bad.toml ] || exit 2
"""


@contextmanager
def submitting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str) -> Iterator[subprocess.Popen[str]]:
    """Run submit.sh with a stand-in for `blindfit`."""
    (tmp_path / "blindfit").write_text(BLINDFIT)
    (tmp_path / "blindfit").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with subprocess.Popen(["sh", CLUSTER / "submit.sh", example], stdout=subprocess.PIPE, text=True) as process:
        yield process


def test_a_submission_says_where_its_report_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with submitting(tmp_path, monkeypatch, "walr") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert said.splitlines()[0] == "submit /jobs/walr.toml --out /reports/walr"
    assert f"docker cp {os.uname().nodename}:/reports/walr walr-report" in said


def test_a_failed_submission_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with submitting(tmp_path, monkeypatch, "bad") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "docker cp" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_submission_stops_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    with submitting(tmp_path, monkeypatch, "slow") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        assert process.communicate(timeout=60)[0] == "the parties are told\n"
    assert process.returncode == 130


# --- the sleep of parties that an example does not need


@pytest.mark.parametrize(
    ("example", "done"),
    [
        ("walr-split", ["blindfit party p.toml"]),
        ("walr-shares", ["blindfit party p.toml"]),
        ("walr", ["sleeps: walr-split walr-shares need this party, and BLINDFIT_EXAMPLE is walr", *ASLEEP]),
        ("split", ["sleeps: walr-split walr-shares need this party, and BLINDFIT_EXAMPLE is split", *ASLEEP]),
    ],
)
def test_a_party_runs_in_its_examples_and_sleeps_in_others(tmp_path: Path, example: str, done: list[str]) -> None:
    for name in ("blindfit", "touch", "sleep"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (tmp_path / name).chmod(0o700)
    words = ("walr-split walr-shares", example, "party", "p.toml")
    assert run("sh", CLUSTER / "party_of.sh", *words, path=f"{tmp_path}:/usr/bin:/bin").stdout.splitlines() == done
