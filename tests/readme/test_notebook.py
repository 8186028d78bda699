"""The notebooks of the examples: their outputs are there, and their cells run from the top in a fresh folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.readme.terminal import Terminal

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs/tutorials").glob("*.ipynb"))


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


FEWER = {  # replacements of repetitions in a cell: one pass shows all
    "walr": ("draws=10", "draws=3"),
    "taylor": ('"epochs": 6', '"epochs": 1'),
    "falcon": ('"epochs": 3', '"epochs": 2'),
    "dp_lr": ("range(5)", "range(1)"),
    "five_systems": ("repeats=2", 'repeats=1, overrides=["taylor.epochs=1", "falcon.epochs=1"]'),
    "two_tables": ("select={", 'falcon={"epochs": 1}, select={'),
}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_cells_run_from_the_top(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "\n\n".join("".join(cell["source"]) for cell in cells(notebook))
    many, fewer = FEWER.get(notebook.stem, ("", ""))
    assert many in script
    monkeypatch.setenv("FORCE_COLOR", "1")  # a notebook sets this
    done = Terminal(tmp_path).run_cells(script.replace(many, fewer) if many else script)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert "\x1b[?25l" not in done.stdout, "progress is drawn into a pipe"


def test_two_tables_become_a_model_inside_a_running_loop(tmp_path: Path) -> None:
    """A stranger would write it like this: fifteen lines, as a coroutine."""
    script = "\n".join("".join(cell["source"]) for cell in cells(ROOT / "docs/tutorials/two_tables.ipynb"))
    lines = [line for line in script.splitlines() if line.strip()]
    assert (
        len([line for line in lines if not line.startswith(("table", "len(table"))]) <= 15
    )  # without making the tables
    quick = [line.replace(*FEWER["two_tables"]) for line in lines]
    coroutine = ["import asyncio", "async def work():", *(f"    {line}" for line in quick)]
    ends = [
        "    assert trained.report.selected and scored.scores.probability.between(0, 1).all()",
        "asyncio.run(work())",
    ]
    done = Terminal(tmp_path).run_cells("\n".join([*coroutine, *ends]))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "study/score.py").exists()


def test_the_six_lines_of_the_first_page_run(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    terminal = Terminal(tmp_path)
    assert terminal.type("python examples/walr/prepare.py").returncode == 0
    done = terminal.run_cells(lines)
    assert done.returncode == 0, done.stderr
    assert "lncoins" in done.stdout
    assert "epsilon 0.5" in done.stdout or "(0.5, 1e-05)" in done.stdout


def test_the_calls_of_the_page_run(tmp_path: Path) -> None:
    page = (ROOT / "docs/guides/python.md").read_text()
    jobs, own_tables, watched, *_ = re.findall(r"```python\n(.*?)```", page, re.S)
    terminal = Terminal(tmp_path)
    assert terminal.type("python examples/taylor/prepare.py").returncode == 0
    done = terminal.run_cells(
        jobs.replace('"epochs": 6', '"epochs": 1')
        + "assert len(scored.scores) and trained.report.evaluation.classes.auc > 0.9\n"
        + own_tables.replace("job", "own_job")
        + "assert len(shared.models) == 2\n"
        + 'job = blindfit.Job(job, taylor={"epochs": 10_000, "patience": 0})\n'
        + "try:\n"
        + "".join(f"    {line}\n" for line in watched.splitlines())
        + "except blindfit.Stopped as stopped:\n    print(stopped.hint)\n"
    )
    assert done.returncode == 0, done.stderr
    assert "taylor.resume=" in done.stdout
