"""Every benchmark runs, at toy size, and says on what; no figure of it is asserted."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from tests.benchmarks.toy_data import write_toy_data
from tests.command import blindfit

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text())
READ_DATA = {
    *("gradients", "housing", "label_dp", "label_dp_variance", "taylor", "taylor_privacy", "walr_forecast"),
    *("quality", "quality_linear", "walr_utility"),
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    write_toy_data(directory)
    return directory


@pytest.mark.parametrize("module", MODULES)
def test_a_benchmark_runs_and_names_its_machine(module: str, data: Path, tmp_path: Path) -> None:
    options = ["--quick", "--json", str(tmp_path / "figures.json")]
    if module in READ_DATA:
        options += ["--data", str(data)]
    if module == "label_dp":
        options += ["--results", str(tmp_path / "results.jsonl")]
    done = blindfit(ROOT, *options, main=importlib.import_module(f"benchmarks.{module}").main)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    machine = json.loads((tmp_path / "figures.json").read_text())["machine"]
    assert machine["processor"]
    assert machine["product_us"] > 0
    assert machine["vector_product_us"] is None or machine["vector_product_us"] > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_command_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"python\s+-m\s+benchmarks\.(\w+)", page.read_text())
    assert set(named) <= set(MODULES)


def test_pages_name_every_benchmark() -> None:
    text = " ".join(page.read_text() for page in PAGES)
    assert set(re.findall(r"benchmarks\.(\w+)", text)) >= set(MODULES) - {"join_attack", "psi"}
