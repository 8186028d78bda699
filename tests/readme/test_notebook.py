"""The notebooks of the examples: what they show is there, and their cells run from the top in a fresh folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))


def cells(notebook: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(notebook.read_text())["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_was_executed_and_none_failed(notebook: Path) -> None:
    for cell in cells(notebook):
        assert cell["outputs"], "".join(cell["source"])
        assert all(output["output_type"] != "error" for output in cell["outputs"])
        assert not [output for output in cell["outputs"] if output.get("name") == "stderr"]
    assert not re.search(r'[" ]/(home|tmp|root|work|usr)/', notebook.read_text())


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_cells_run_from_the_top(notebook: Path, tmp_path: Path) -> None:
    kept = shutil.ignore_patterns("data", "state", "certificates")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=kept)
    script = "\n\n".join("".join(cell["source"]) for cell in cells(notebook))
    (tmp_path / "cells.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "cells.py"],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg", "FORCE_COLOR": "1"},  # as a notebook has it, but for the pictures
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b[?25l" not in done.stdout, "progress is drawn into a pipe"
