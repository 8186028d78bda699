"""On a machine that lacks something, `make` prints what, each time it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LACKS = {
    "an old Python": ("exit 1", "Blindfit needs Python 3.11 or newer"),
    "a Python without its package venv": (
        'case "$2" in *ensurepip*) exit 1;; *) exit 0;; esac',
        "install its package venv (Debian, Ubuntu: apt install python3-venv)",
    ),
    "a disk with room for half of it": (
        'case "$1$2" in -mvenv) mkdir -p "$3/bin"; touch "$3/bin/python"; echo "no space left"; exit 1;; esac',
        "no space left",
    ),
}
CANNOT, CAN_SLOWLY, CAN = (
    f'case "$2" in *{asked}*) exit 1;; esac; case "$1$2" in -mvenv) echo "made by $0"; exit 1;; esac'
    for asked in ("ensurepip", "optimizations", "nothing")
)


@pytest.mark.parametrize(("does", "said"), LACKS.values(), ids=LACKS)
def test_what_is_missing_is_said_every_time(tmp_path: Path, does: str, said: str) -> None:
    python = stands_in(tmp_path / "python", does)
    for _ in range(2):
        assert said in made(tmp_path, f"PYTHON={python}")


@pytest.mark.parametrize(
    ("paths", "systems", "chosen"),
    [(CAN, CAN, "python3"), (CAN_SLOWLY, CAN, "system"), (CAN_SLOWLY, CANNOT, "python3")],
    ids=["the path's is fast", "the path's is slow", "the path's is slow and there is no other"],
)
def test_a_python_compiled_without_optimization_gives_way_to_the_systems_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: str, systems: str, chosen: str
) -> None:
    monkeypatch.delenv("PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    stands_in(tmp_path / "python3", paths)
    system = stands_in(tmp_path / "system", systems)
    assert f"made by {tmp_path / chosen}" in made(tmp_path, f"SYSTEM_PYTHON={system}")


def stands_in(python: Path, does: str) -> Path:
    """Return a script that stands in for a program."""
    python.write_text(f"#!/bin/sh\n{does}\n")
    python.chmod(0o755)
    return python


def made(folder: Path, setting: str) -> str:
    """Run `make demo` in a separate folder, where it fails and leaves nothing; return its output."""
    for file in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / file, folder)
    shutil.copytree(ROOT / "constraints", folder / "constraints", dirs_exist_ok=True)
    done = subprocess.run(["make", "demo", setting], cwd=folder, capture_output=True, text=True)
    assert done.returncode != 0
    assert not (folder / ".venv").exists()
    return done.stdout
