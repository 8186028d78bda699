"""What `make` says on a machine that lacks something, each time it is asked."""

from __future__ import annotations

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


@pytest.mark.parametrize(("does", "said"), LACKS.values(), ids=LACKS)
def test_what_is_missing_is_said_every_time(tmp_path: Path, does: str, said: str) -> None:
    for file in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / file, tmp_path)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{does}\n")
    python.chmod(0o755)
    for _ in range(2):
        done = subprocess.run(["make", "demo", f"PYTHON={python}"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode != 0
        assert said in done.stdout
        assert not (tmp_path / ".venv").exists()
