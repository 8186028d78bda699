"""Every mutant still fits the project: its place is there once, its tests are there, and every promise has one."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, WITHOUT_A_MUTANT
from tests.mutants.mutant import PROMISES, Mutant

ROOT = Path(__file__).parents[2]


def test_every_mutant_can_be_made() -> None:
    faults = []
    for mutant in MUTANTS:
        try:
            mutant.applied_in(ROOT)
        except ValueError as fault:
            faults.append(str(fault))
    assert faults == []


def test_names_are_unique_and_two_mutants_are_two_changes() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.place, mutant.before, mutant.after) for mutant in MUTANTS}) == len(MUTANTS)


def test_every_mutant_has_tests_that_are_there() -> None:
    assert all(mutant.tests for mutant in MUTANTS)
    missing = {test for mutant in MUTANTS for test in mutant.tests if not is_there(test)}
    assert missing == set()


def is_there(test: str) -> bool:
    file, _, name = test.partition("[")[0].partition("::")
    path = ROOT / file
    return path.is_file() and (not name or name in names_of(path))


@cache
def names_of(path: Path) -> set[str]:
    """Return the names that a page defines: functions, and classes that hypothesis makes."""
    body = ast.parse(path.read_text("utf-8")).body
    assigned = {ast.unparse(target) for node in body if isinstance(node, ast.Assign) for target in node.targets}
    return assigned | {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_promise_has_a_mutant_that_is_noticed_or_a_reason() -> None:
    noticed = {promise for mutant in MUTANTS if not mutant.known for promise in mutant.promises}
    assert noticed == PROMISES.keys() - WITHOUT_A_MUTANT.keys()
    assert WITHOUT_A_MUTANT.keys() <= PROMISES.keys()


def test_no_mutant_is_left_that_nothing_notices() -> None:
    """The mark `known` is for a change whose test is still being written."""
    assert {mutant.name for mutant in MUTANTS if mutant.known} == set()


CODE = "def f():\n    a = 1\n    b = 1\n\nclass C:\n    def f(self):\n        a = 1\n"


def applied(root: Path, before: str, after: str, place: str = "blindfit.x:f") -> str:
    (root / "blindfit").mkdir()
    (root / "blindfit" / "x.py").write_text(CODE)
    return Mutant("m", (1,), place, before, after, ("tests/x.py",)).applied_in(root)


def test_a_mutant_changes_one_place_of_the_definition_that_it_names(tmp_path: Path) -> None:
    assert applied(tmp_path, "a = 1", "a = 2", "blindfit.x:C.f") == CODE.replace("        a = 1", "        a = 2")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("= 1", "= 2", "occurs 2 times"),
        ("c", "d", "occurs 0 times"),
        ("a = 1", "a = 1", "`after` is `before`"),
        ("a = 1", "a = 1  # one", "nothing but comments"),
        ("a = 1", "a = ", "would not parse"),
    ],
)
def test_a_mutant_that_cannot_be_is_refused(tmp_path: Path, before: str, after: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"m: .*{reason}"):
        applied(tmp_path, before, after)


@pytest.mark.parametrize(
    ("place", "now"), [("blindfit.y:C.f", "blindfit.x defines it"), ("blindfit.x:g", "no module defines it")]
)
def test_a_definition_that_has_moved_is_named_where_it_is_now(tmp_path: Path, place: str, now: str) -> None:
    with pytest.raises(ValueError, match=f"m: .* does not define .*; {now}"):
        applied(tmp_path, "a = 1", "a = 2", place)
