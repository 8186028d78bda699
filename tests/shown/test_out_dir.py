"""A folder that nothing can be written into is the user's to mend, and is said before a job begins."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from unittest import mock

import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.cli import inspecting
from blindfit.coordinator.job.out_dir import explain_refusal, make_out
from blindfit.coordinator.running import launcher
from tests.command import blindfit
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
