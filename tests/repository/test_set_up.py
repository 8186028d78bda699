"""`make` installs the pinned versions, or others only with a message; scripts stand in for Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repository.pins import ROOT

OF_AN_ENVIRONMENT = """#!/bin/sh
echo "$*" >> {log}
case "$*" in
  -V) echo "Python 3.x" ;;
  -c*"(3, 14)"*) exit {has_no_pins} ;;
  *--require-hashes*) [ {index} = whole ] || {{ echo "No matching distribution found for numpy" >&2; exit 1; }} ;;
esac
"""
PYTHON = """#!/bin/sh
case "$1$2" in
  -mvenv) mkdir -p "$3/bin" && cp {environment} "$3/bin/python" ;;
esac
"""
PINNED = {
    "setup": "--require-hashes -r constraints/all.txt",
    "demo": "--require-hashes -r .venv/demo.txt",
    "docs": "--require-hashes -r constraints/docs.txt",
}
CHOSEN_BY_PIP = {"setup": "-e .[dev]", "demo": "hatchling -e .[demo,phe]", "docs": "-e .[docs]"}
MARKERS = {"setup": ".venv/.dev", "demo": ".venv/.demo", "docs": ".venv-docs/.made"}


def copy_once(folder: Path) -> None:
    if not (folder / "Makefile").exists():
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(ROOT / name, folder)
        shutil.copytree(ROOT / "constraints", folder / "constraints")


def make(
    folder: Path, target: str, *, has_pins: bool = True, index: str = "whole"
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run make in a separate folder; return how it ended, and the calls of pip."""
    copy_once(folder)
    log, environment, python = (folder / name for name in ("log", "environment", "python"))
    environment.write_text(OF_AN_ENVIRONMENT.format(log=log, has_no_pins=int(not has_pins), index=index))
    python.write_text(PYTHON.format(environment=environment))
    for program in (environment, python):
        program.chmod(0o755)
    log.write_text("")
    done = subprocess.run(["make", target, f"PYTHON={python}"], cwd=folder, capture_output=True, text=True)
    return done, [line for line in log.read_text().splitlines() if line.startswith("-m pip install")]


@pytest.mark.parametrize("target", PINNED)
def test_a_python_with_pins_gets_them_and_then_blindfit_without_its_dependencies(tmp_path: Path, target: str) -> None:
    done, (packages, itself) = make(tmp_path, target)
    assert done.returncode == 0, done.stderr
    assert packages.endswith(PINNED[target])
    assert itself.endswith("--no-deps --no-build-isolation -e .")
    assert (tmp_path / MARKERS[target]).exists()
    assert make(tmp_path, target)[1] == []  # the second time there is nothing to do


@pytest.mark.parametrize("target", PINNED)
def test_versions_that_an_index_lacks_are_an_error_every_time(tmp_path: Path, target: str) -> None:
    for _ in range(2):
        done, installed = make(tmp_path, target, index="partial")
        assert done.returncode != 0
        assert "No matching distribution found for numpy" in done.stderr
        assert "error: pip cannot install the versions that constraints/ pins; the reason is above" in done.stdout
        assert "make constraints" in done.stdout
        assert [line for line in installed if "--require-hashes" not in line] == []
        assert not (tmp_path / MARKERS[target]).exists()


@pytest.mark.parametrize("target", PINNED)
def test_a_python_without_pins_is_set_up_and_make_says_that_pip_chooses(tmp_path: Path, target: str) -> None:
    done, (packages, itself) = make(tmp_path, target, has_pins=False)
    assert done.returncode == 0, done.stderr
    assert "constraints/ pins packages for Python 3.11 to 3.13: pip chooses the versions for Python 3.x" in done.stdout
    assert packages.endswith(CHOSEN_BY_PIP[target])
    assert "--require-hashes" not in packages
    assert itself.endswith("-e .")


def test_the_lowest_versions_are_for_one_python(tmp_path: Path) -> None:
    """Later Pythons have no wheels of some of them."""
    environment = OF_AN_ENVIRONMENT.replace('-c*"(3, 14)"*', '-c*"== (3, 11)"*')
    python = tmp_path / "python3.12"
    (tmp_path / "environment").write_text(environment.format(log=tmp_path / "log", has_no_pins=1, index="whole"))
    (tmp_path / "environment").chmod(0o755)
    python.write_text(PYTHON.format(environment=tmp_path / "environment"))
    python.chmod(0o755)
    copy_once(tmp_path)
    done = subprocess.run(["make", "lowest", f"PYTHON={python}"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "constraints/lowest.txt is for Python 3.11; name it: make PYTHON=python3.11 lowest" in done.stdout
    assert not (tmp_path / ".venv-lowest").exists()
