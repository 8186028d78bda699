"""A folder that cannot be written is the user's to mend, and is reported before a job begins."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from pathlib import Path
from unittest import mock

import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.cli import inspecting
from blindfit.coordinator.job.out_dir import OF_A_JOB, explain_refusal, make_folder, make_out, remove_stale
from blindfit.coordinator.running import launcher
from tests.command import blindfit
from tests.hints.following import refused
from tests.world.measured import files_of_shop_and_meter

READ_ONLY = OSError(errno.EROFS, os.strerror(errno.EROFS), "/mnt/out/x")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    files_of_shop_and_meter(tmp_path)
    return tmp_path


def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    with mock.patch.object(tempfile, "TemporaryFile", side_effect=READ_ONLY):
        with pytest.raises(ConfigError, match=r"^--out .*: nothing can be written there: Read-only file system( \(|$)"):
            make_out(tmp_path)


def test_no_process_starts_whose_report_has_no_place(job: Path) -> None:
    (job / "taken").write_text("a file")
    with mock.patch.object(launcher, "publish_first", side_effect=AssertionError("begun")):
        done = blindfit(job, "run", "job.toml", "--out", "taken/out")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --out taken/out: nothing can be written there: Not a directory\nhint: name")


@pytest.mark.parametrize(("error", "code"), [(READ_ONLY, 1), (OSError(errno.EROFS, "no file is named"), 70)])
def test_what_the_system_refuses_is_no_bug(job: Path, error: OSError, code: int) -> None:
    with mock.patch.object(inspecting, "read_job", side_effect=error):
        done = blindfit(job, "show", "job.toml")
    assert done.returncode == code
    assert ("a bug in Blindfit" in done.stderr) == (code == 70)
    if code == 1:
        assert done.stderr.startswith("error: /mnt/out/x: Read-only file system\nhint: ")


def test_an_error_of_ours_stays_one() -> None:
    assert not explain_refusal(OSError(errno.EBADF, "Bad file descriptor", "x"))
    assert not explain_refusal(OSError("no number"))


# --- a folder never mixes two jobs ----------------------------------------------------------------------------


def report(out: Path, protocol: str = "taylor", parties: tuple[str, ...] = ("bank", "shop")) -> None:
    """Write the files of an earlier job."""
    out.mkdir(exist_ok=True)
    for name in parties:
        (out / name).mkdir(exist_ok=True)
        for file in ("report.json", "test_scores.csv"):
            (out / name / file).write_text("earlier")
    content = {"session": "monday-1", "protocol": protocol, "job": {"parties": {name: {} for name in parties}}}
    (out / "report.json").write_text(json.dumps(content))


def test_what_an_earlier_job_left_goes_and_what_is_newer_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    report(out)
    later = (out / "report.json").stat().st_mtime_ns + 1_000_000
    for file in (out / "bank" / "report.json", out / "bank" / "notes.txt"):
        file.write_text("later")
        os.utime(file, ns=(later, later))
    assert make_folder(out, "taylor") == out
    remove_stale(out)
    assert sorted(path.name for path in (out / "bank").iterdir()) == ["notes.txt", "report.json"]
    assert not (out / "shop").exists()


def test_files_that_no_job_writes_stay(tmp_path: Path) -> None:
    """The keys of a party whose own folder was named stay, for example."""
    report(tmp_path)
    kept = ("secret.key", "party.sqlite", "certificate.pem", "notes.txt")
    for name in kept:
        (tmp_path / "bank" / name).write_text("mine")
        os.utime(tmp_path / "bank" / name, ns=(1, 1))
    remove_stale(tmp_path)
    assert sorted(path.name for path in (tmp_path / "bank").iterdir() if path.name in kept) == sorted(kept)
    assert not (tmp_path / "bank/test_scores.csv").exists()


def test_every_file_that_a_party_writes_for_a_job_is_known() -> None:
    parties = Path(launcher.__file__).parents[2] / "parties"
    texts = [path.read_text("utf-8") for path in parties.rglob("*.py")]
    writes = re.compile(r"\.write(?:_table)?\(\s*(?:me|session)[^,\n]*,\s*\"([^\"]+)\"")
    written = {name for text in texts for name in writes.findall(text)}
    assert len(written) >= 8
    assert written <= OF_A_JOB


@pytest.mark.parametrize("name", ["..", ".", "/etc", "../other", ""])
def test_only_folders_of_parties_are_looked_at(tmp_path: Path, name: str) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("mine")
    (tmp_path / "mine").write_text("mine")
    report(out, parties=())
    content = {"session": "monday-1", "protocol": "taylor", "job": {"parties": {name: {}}}}
    (out / "report.json").write_text(json.dumps(content))
    (out / "linked").symlink_to(other)
    remove_stale(out)
    assert (other / "mine").exists()
    assert (tmp_path / "mine").exists()
    assert (out / "report.json").exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"session": 3}', '{"session": "s", "job": []}'])
def test_another_file_of_that_name_is_nothing_of_ours(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    assert make_folder(tmp_path, "walr") == tmp_path
    remove_stale(tmp_path)
    assert (tmp_path / "report.json").read_text() == content


def test_a_folder_with_the_report_of_another_kind_of_job_is_refused(job: Path) -> None:
    report(job / "out")
    with refused("name another folder, or remove this one first") as told:
        make_folder(job / "out", "walr")
    assert "out has the report of monday-1, a taylor job" in told.text
    with mock.patch.object(launcher, "publish_first", side_effect=AssertionError("begun")):
        done = blindfit(job, "run", "job.toml", "--out", "out")
    assert done.returncode == 2
    assert "--out out has the report of monday-1, a taylor job" in done.stderr
    assert (job / "out/shop/test_scores.csv").exists()
