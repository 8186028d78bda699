"""Commands end as docs/guides/script.md describes, and its table equals that of the code."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from unittest import mock

import pytest

from blindfit import __version__
from blindfit.coordinator.cli import inspecting
from blindfit.coordinator.terminal.exit_codes import ExitCode
from tests.command import ROOT, Piped, blindfit
from tests.world import World
from tests.world.measured import project

__all__ = ["project"]  # a fixture
PAGE = (ROOT / "docs/guides/script.md").read_text("utf-8")


def test_the_page_has_every_status() -> None:
    assert [int(status) for status in re.findall(r"^ *\| (\d+) \|", PAGE, re.M)] == [int(code) for code in ExitCode]


def test_what_is_wrong_with_the_input(tmp_path: Path) -> None:
    assert blindfit(tmp_path, "run", "none.toml").returncode == ExitCode.WRONG_INPUT
    assert blindfit(tmp_path, "run", "--no-such-option").returncode == ExitCode.WRONG_INPUT
    assert blindfit(tmp_path, "no-such-command").returncode == ExitCode.WRONG_INPUT


def test_what_does_not_hold(project: World) -> None:
    assert project.blindfit("show", "job.toml").returncode == ExitCode.DONE
    assert project.blindfit("check", "job.toml").returncode == ExitCode.DONE
    assert project.blindfit("check", "job.toml", "--set", "privacy.epsilon=3").returncode == ExitCode.FAILED
    refused = project.blindfit("run", "job.toml", "--set", "privacy.epsilon=3", "--out", "out")
    assert refused.returncode == ExitCode.FAILED


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ZeroDivisionError("s3cret"), ExitCode.BUG, "a bug in Blindfit: ZeroDivisionError"),
        (MemoryError(), ExitCode.FAILED, "there is not enough memory"),
        (KeyboardInterrupt(), ExitCode.STOPPED, ""),
    ],
)
def test_what_nobody_expects(tmp_path: Path, error: BaseException, status: int, said: str) -> None:
    def raises(_path: Path, _overrides: object) -> object:
        raise error

    does: Callable[..., object] = raises
    with mock.patch.object(inspecting, "read_job", does):
        done = blindfit(tmp_path, "show", "job.toml")
    assert done.returncode == status
    assert said in done.stderr
    assert "s3cret" not in done.stderr


def test_a_party_that_is_told_to_stop_has_done_what_was_asked(project: World) -> None:
    project.start("shop")
    assert project.kill("shop", signal.SIGTERM) == ExitCode.DONE


def test_a_job_that_is_told_to_stop(project: World) -> None:
    project.edit("meter.toml", "[policy]", '[policy]\napprove = "ask"')
    process = Piped([sys.executable, "-m", "blindfit", "run", "job.toml", "--out", "out"], cwd=project.root)
    with contextlib.closing(process):
        assert any("approval" in line for line in process.stdout)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == ExitCode.STOPPED


@pytest.mark.parametrize(("redirected", "status"), [(">/dev/full", ExitCode.FAILED), (">&-", ExitCode.DONE)])
def test_what_cannot_be_printed_is_no_bug(project: World, redirected: str, status: ExitCode) -> None:
    command = f"{sys.executable} -m blindfit show job.toml {redirected}"
    done = subprocess.run(command, shell=True, cwd=project.root, capture_output=True, text=True)
    assert done.returncode == status
    assert "bug" not in done.stderr
    assert ("the disk is full" in done.stderr) == (status == ExitCode.FAILED)


# --- version and completion --------------------------------------------------------------------------------


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    told = blindfit(tmp_path, "--version")
    assert (told.returncode, told.stdout) == (0, f"blindfit {metadata.version('blindfit')}\n")
    with mock.patch.object(metadata, "version", side_effect=metadata.PackageNotFoundError):
        assert blindfit(tmp_path, "--version").stdout == f"blindfit {__version__}\n"


def completed(**environment: str) -> str:
    command = Path(sys.executable).parent / "blindfit"
    return subprocess.run([command], env={**os.environ, **environment}, capture_output=True, text=True).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str) -> None:
    assert "_BLINDFIT_COMPLETE=complete_" in completed(_BLINDFIT_COMPLETE=f"source_{shell}")


def test_commands_are_completed() -> None:
    asked = {"_BLINDFIT_COMPLETE": "complete_bash", "COMP_WORDS": "blindfit ev", "COMP_CWORD": "1"}
    assert completed(**asked).split() == ["evaluate"]
