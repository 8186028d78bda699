"""The runner, on a project of two files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants import run
from tests.mutants.mutant import Mutant
from tests.mutants.run import Copies, Run

PURSE = """
import time

LEAST = 1

def admits(spent, budget):
    return spent <= budget

def left(spent, budget):
    while spent > budget:
        time.sleep(0.001)
        spent = budget
    return budget - spent
"""
TESTS = """
import purse

def test_admits():
    assert purse.admits(1, 1)
    assert not purse.admits(2, 1)

def test_left():
    assert purse.left(2, 1) == 0

def test_that_fails():
    assert False
"""
FILES = ("purse.py", "test_purse.py")


def mutant(name: str, before: str, after: str, test: str = "test_admits", place: str = "admits") -> Mutant:
    return Mutant(name, (2,), f"purse:{place}", before, after, (f"test_purse.py::{test}",))


NOTICED = mutant("noticed", "spent <= budget", "spent >= budget")
SURVIVES = mutant("survives", "LEAST = 1", "LEAST = 0", place="LEAST")
HANGS = mutant("hangs", "        spent = budget", "        budget = budget", "test_left", "left")
DOES_NOT_START = mutant("does not start", "LEAST = 1", "LEAST = 1 // 0", place="LEAST")
IS_NOT_THERE = mutant("is not there", "spent == budget", "spent != budget")


class Toy:
    def __init__(self, root: Path) -> None:
        self.root, self.said = root, list[str]()
        (root / "purse.py").write_text(PURSE)
        (root / "test_purse.py").write_text(TESTS)

    def run(self, *mutants: Mutant, fresh: bool = False) -> bool:
        self.said.clear()
        state = self.root / ".mutants" / "results.jsonl"
        return Run(self.root, FILES, state, jobs=2, timeout_s=12, fresh=fresh, say=self.said.append).verdicts(mutants)

    def has_said(self, text: str) -> bool:
        return any(text in line for line in self.said)


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


def test_each_has_its_verdict_and_an_interrupted_run_goes_on(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    known = replace(SURVIVES, known=True)
    assert toy.run(NOTICED, known, HANGS)
    assert toy.said[-1].startswith("3 mutants: 2 noticed (1 by a deadline), 1 known, 0 survived, 0 errors")
    assert (toy.root / "purse.py").read_text() == PURSE

    monkeypatch.setattr(run, "run_tests", lambda *_: pytest.fail("it was known"))
    assert toy.run(NOTICED, known, HANGS)
    assert toy.has_said("3 of 3 results are those of an earlier run")
    assert not toy.run(NOTICED, SURVIVES, HANGS)
    assert toy.has_said("survives: survived test_purse.py::test_admits")
    assert not toy.run(replace(NOTICED, known=True), known, HANGS)
    assert toy.has_said("noticed: is noticed now; remove its mark `known`")

    state = toy.root / ".mutants" / "results.jsonl"
    state.write_text(state.read_text() + '{"tree": "cut o')
    assert toy.run(NOTICED, known, HANGS)
    with pytest.raises(pytest.fail.Exception):
        toy.run(NOTICED, fresh=True)
    (toy.root / "purse.py").write_text(PURSE + "\nMOST = 9\n")
    with pytest.raises(pytest.fail.Exception):
        toy.run(NOTICED)


def test_what_cannot_be_tried_fails_the_run_and_is_tried_again(toy: Toy) -> None:
    for _ in range(2):
        assert not toy.run(DOES_NOT_START, IS_NOT_THERE)
        assert toy.has_said("does not start: its tests could not run")
        assert toy.has_said("is not there: `before` occurs 0 times")
        assert toy.said[-1].startswith("2 mutants: 0 noticed (0 by a deadline), 0 known, 0 survived, 2 errors")


def test_tests_that_fail_by_themselves_say_nothing_of_mutants(toy: Toy) -> None:
    assert not toy.run(mutant("m", "spent <= budget", "spent >= budget", "test_that_fails"))
    assert toy.has_said("test_purse.py: does not pass without any mutant")
    assert not toy.has_said("survived")


def test_a_copy_is_as_it_was_and_holds_no_stale_bytecode(tmp_path: Path) -> None:
    (tmp_path / "purse.py").write_text(PURSE)
    copies = Copies(tmp_path, ["purse.py"], 1)
    with copies.one(NOTICED) as copy:
        assert "spent >= budget" in (copy / "purse.py").read_text()
        cached = copy / "__pycache__" / "purse.cpython-311.pyc"
        cached.parent.mkdir()
        cached.touch()
    with copies.one() as copy:
        assert (copy / "purse.py").read_text() == PURSE
        assert not cached.exists()
    copies.remove()
    assert not copy.exists()
