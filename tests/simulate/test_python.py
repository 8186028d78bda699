"""`blindfit.simulate` in a program and in a notebook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import blindfit
from blindfit.coordinator.simulate import command
from tests.command import forked_parties
from tests.hints.following import refused
from tests.readme.pages import ROOT
from tests.readme.terminal import Terminal
from tests.simulate.patients import COLUMNS, patients

PARTIES = {"shop": COLUMNS[:4], "clinic": COLUMNS[4:]}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> blindfit.Simulation:
    out = tmp_path_factory.mktemp("python") / "study"
    with forked_parties():
        return blindfit.simulate(
            patients(), label="ill", parties=PARTIES, systems=["dp-lr"], epsilon=[0.5, 1], out=out, progress=False
        )


def test_it_is_a_sequence_of_rows(study: blindfit.Simulation) -> None:
    assert [(row.system, row.epsilon) for row in study] == [("dp-lr", 0.5), ("dp-lr", 1.0)]
    assert (len(study), study[1].name, len(study[:1])) == (2, "dp-lr, epsilon 1", 1)
    assert study.baselines["joined, no privacy"]["auc"].mean > 0.7
    assert study.recommendation
    assert study.page.exists()
    assert study.document["columns"] == {name: list(columns) for name, columns in PARTIES.items()}


def test_a_notebook_shows_it(study: blindfit.Simulation) -> None:
    assert "dp-lr" in study._repr_html_()
    assert "active party only" in repr(study)
    frame = study.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["system"]) == ["joined, no privacy", "active party only", "constant", "dp-lr", "dp-lr"]


def test_the_snippet_of_the_page_runs(tmp_path: Path) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guides/compare_systems.md").read_text(), re.S)
    terminal = Terminal(tmp_path)
    assert terminal.type("python examples/walr/prepare.py").returncode == 0
    done = terminal.run_cells(snippet + "assert study.page.exists() and len(study) == 1\n")
    assert done.returncode == 0, done.stderr


def test_a_single_text_stands_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(command, "simulate", lambda _, wish, *__: asked.append(wish))
    alike: list[dict[str, Any]] = [
        {"parties": {"shop": "age", "bank": "rate"}, "systems": "walr", "overrides": "walr.l2=2"},
        {"parties": {"shop": ["age"], "bank": ["rate"]}, "systems": ["walr"], "overrides": ["walr.l2=2"]},
    ]
    for words in alike:
        blindfit.simulate({}, label="ill", out=tmp_path, **words)
    assert asked[0] == asked[1]
    assert asked[0].asked.parties == {"shop": ("age",), "bank": ("rate",)}


def test_numbers_of_numpy_are_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(command, "simulate", lambda _, wish, *__: asked.append(wish))
    own: dict[str, Any] = {"parties": 2, "seed": 1, "epsilon": [1.0, 2.0], "repeats": 2, "overlap": 0.5, "at_once": 1}
    of_numpy = {
        "parties": np.int64(2),
        "seed": np.int32(1),
        "epsilon": np.array([1.0, 2.0]),
        "repeats": np.int64(2),
        "overlap": np.float64(0.5),
        "at_once": np.int64(1),
    }
    for words in (own, of_numpy):
        blindfit.simulate({}, label="ill", out=tmp_path, **words)
    assert repr(asked[0]) == repr(asked[1])


def test_a_network_of_tables_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "simulate", lambda *_: None)
    call: dict[str, Any] = {"label": "ill", "out": tmp_path}
    with refused('such as network="40ms 100mbit"'):
        blindfit.simulate({}, network={"latency": "40ms"}, **call)
    blindfit.simulate({}, network="40ms 100mbit", **call)
