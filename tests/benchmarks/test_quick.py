"""Every benchmark runs, at toy size, and reports its machine; no figure is asserted."""

from __future__ import annotations

import importlib
import json
import pickle
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from benchmarks.kit import machine
from benchmarks.network import __main__ as network
from benchmarks.vertical import falcon, falcon_threshold, psi
from benchmarks.vertical.taylor import Party
from benchmarks.walr import __main__ as walr
from benchmarks.walr import choice as walr_choice
from benchmarks.walr import forecast as walr_forecast
from benchmarks.walr.utility import data as walr_utility_data
from blindfit.algorithms.paillier.keys import insecure_private_key
from blindfit.parties.work import compute
from tests.benchmarks.toy_data import write_toy_data
from tests.command import Done, blindfit
from tests.modules import without_main

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


def name_of(path: Path) -> str:
    """Return the name after `python -m benchmarks.`: a folder with a __main__ has the folder's name."""
    return ".".join(path.relative_to(BENCHMARKS).with_suffix("").parts).removesuffix(".__main__")


MODULES = {name_of(path): path for path in sorted(BENCHMARKS.rglob("*.py")) if '"__main__"' in path.read_text()}
READ_DATA = {
    *("gradients", "label_dp", "label_dp.variance", "walr.forecast", "walr.choice", "walr.utility"),
    *(f"vertical.{name}" for name in ("housing", "taylor", "taylor_privacy", "quality", "quality_linear")),
}
KEY_BITS = 512
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    write_toy_data(directory)
    return directory


class TwoHere:
    """Stand-in for two processes, which tests/work has: tasks and results are pickled as on their way to them."""

    count = 2

    def map(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [pickle.loads(pickle.dumps(run(*arguments))) for run, arguments in self._sent(function, tasks)]

    def _sent(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [pickle.loads(pickle.dumps((function, arguments))) for arguments in tasks]


def started_here(words: Sequence[str], *, check: bool, stdout: int | None = None) -> Done:
    """Run the script that makes an example's rows here, in place of `subprocess.run`: its imports are done already."""
    assert check
    program, script, *options = words
    assert program == sys.executable
    done = blindfit(Path.cwd(), *options, main=lambda: runpy.run_path(script, run_name="__main__"))
    done.check_returncode()
    return done


def kept(epoch_of: Callable[..., falcon.Epoch]) -> Callable[..., falcon.Epoch]:
    """Keep two jobs of each kind, and return them again if the growth begins with the same shape."""
    found: dict[tuple[int, int, str], falcon.Epoch] = {}

    def once(parties: list[Party], rows: int, security: str) -> falcon.Epoch:
        kind = (len(parties), rows, security)
        if kind not in found:
            found[kind] = epoch_of(parties, rows, security)
        return found[kind]

    return once


@pytest.fixture(scope="module")
def _small() -> Iterator[None]:
    """Small sizes for everything that other tests check at full size."""
    processes = SimpleNamespace(**{**vars(subprocess), "run": started_here})
    with (
        mock.patch.object(walr, "subprocess", processes),
        mock.patch.object(walr_forecast, "subprocess", processes),
        mock.patch.object(walr_utility_data, "subprocess", processes),
        mock.patch.object(falcon, "epoch_of", kept(falcon.epoch_of)),
        without_main(),
        mock.patch.object(psi, "OPERATIONS", 400),
        mock.patch.object(walr_choice, "SIMULATED_DRAWS", 2),
        mock.patch.object(network, "is_available", return_value=False),  # tests change no network of the machine
        mock.patch.object(machine, "product_times", cache(machine.product_times)),  # a tenth of a second each
        mock.patch.object(compute, "_loky_workers", return_value=TwoHere()),
        mock.patch.object(falcon_threshold, "KEY_BITS", KEY_BITS),
        mock.patch.object(falcon_threshold, "generate_private_key", insecure_private_key),
    ):
        yield


TAKEN_APART = {"vertical.falcon": ("online_us_per_row", "expanding_us_per_row", "dealing_us_per_row")}
"""Figures that depend on names of the product, whose time a benchmark takes inside a run."""


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("module", MODULES)
def test_a_benchmark_runs_and_names_its_machine(module: str, data: Path, tmp_path: Path) -> None:
    options = ["--quick", "--json", str(tmp_path / "figures.json")]
    if module in READ_DATA:
        options += ["--data", str(data)]
    if module == "label_dp":
        options += ["--results", str(tmp_path / "results.jsonl")]
    path = MODULES[module].relative_to(ROOT).with_suffix("")
    main = importlib.import_module(".".join(path.parts)).main
    if module == "network":
        options += ["--case", "tcp", "--case", "psi"]
    if module == "paillier":
        options += ["--bits", str(KEY_BITS)]
        main = partial(main, make_key=insecure_private_key)
    done = blindfit(ROOT, *options, main=main)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [name for name in TAKEN_APART.get(module, ()) if not figures[name] > 0] == []
    machine = figures["machine"]
    assert machine["processor"]
    assert machine["product_us"] > 0
    assert machine["vector_product_us"] is None or machine["vector_product_us"] > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_command_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"python\s+-m\s+benchmarks\.([\w.]*\w)", page.read_text())
    assert set(named) <= set(MODULES)


def test_pages_name_every_benchmark() -> None:
    text = " ".join(page.read_text() for page in PAGES)
    assert set(re.findall(r"benchmarks\.([\w.]*\w)", text)) >= set(MODULES) - {"walr.join_attack", "vertical.psi"}
