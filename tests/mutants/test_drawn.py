"""Drawn mutants: the possible changes of a line, the draw by a seed, and the tests that a mutant is given."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from pathlib import Path

import coverage
import pytest

from tests.each_case import each_case
from tests.mutants.drawn import operators
from tests.mutants.drawn.draw import FOLDERS, Drawn, draw
from tests.mutants.drawn.operators import Defaults, Operator, places_of
from tests.mutants.drawn.record import Record, combine_the_late
from tests.mutants.drawn.score import score
from tests.mutants.run import ROOT, Outcome, Result, Trial, tracked_files

CASES: list[tuple[Operator, str, set[str]]] = [
    (operators.moves_an_edge, "a < b", {"(a <= b)"}),
    (operators.moves_an_edge, "0 < a <= b", {"(0 <= a <= b)", "(0 < a < b)"}),
    (operators.reverses_a_comparison, "a is None", {"(a is not None)"}),
    (operators.moves_a_bound, "range(n)", {"(n + 1)", "(n - 1)"}),
    (operators.moves_a_bound, "x[a:]", {"(a + 1)", "(a - 1)"}),
    (operators.changes_arithmetic, "a + b", {"(a - b)"}),
    (operators.changes_arithmetic, "a += b", {"a -= b"}),
    (operators.changes_arithmetic, "'a' + b", set()),
    (operators.swaps_and_with_or, "a and b", {"(a or b)"}),
    (operators.drops_a_condition, "a and b", {"(a)", "(b)"}),
    (operators.drops_a_condition, "[a for a in b if a.c]", {"True"}),
    (operators.negates, "not a", {"(a)"}),
    (operators.negates, "if a: b()", {"(not (a))"}),
    (operators.moves_a_constant, "a = 3", {"(3 + 1)", "(3 - 1)"}),
    (operators.moves_a_constant, "a = True", {"False"}),
    (operators.moves_a_constant, "raise ValueError(3)", set()),
    (operators.moves_a_constant, "@cache(8)\ndef f(): pass", set()),
    (operators.returns_a_sibling, "def f(a, b): return a", {"b"}),
    (operators.returns_a_sibling, "def f(): return a, b", {"((b, a))"}),
    (operators.leaves_an_argument_out, "def f(a, *, b=1): pass\nf(1, b=2)", {"f(1)"}),
    (operators.leaves_an_argument_out, "def f(a, *, b): pass\nf(1, b=2)", set()),
    (operators.leaves_an_argument_out, "class A:\n    b: int = 1\nA(b=2)", {"A()"}),
    (operators.leaves_an_argument_out, "np.sum(a, axis=1)", {"np.sum(a)"}),
    (operators.deletes_a_statement, "a.check()", {"pass"}),
    (operators.deletes_a_statement, "log.info('a')", set()),
    (operators.deletes_a_raise, "raise ValueError", {"pass"}),
    (operators.swaps_min_with_max, "np.min(a)", {"np.max"}),
    (operators.swaps_names, "f(a, b)", {"(f(b, a))"}),
    (operators.swaps_names, "f(a=x, b=y)", {"(f(b=x, a=y))"}),
    (operators.swaps_names, "class A:\n    a: int\n    b: int\n    c: str\n    def f(self): self.a", {"self.b"}),
    (operators.swaps_names, "d['a']; d['b']", {"'b'", "'a'"}),
]


@each_case("operator, code, expected", CASES)
def test_the_changes_of_a_line(operator: Operator, code: str, expected: set[str]) -> None:
    tree, defaults = ast.parse(code), Defaults()
    defaults.learn(tree)
    found = {after for place in places_of(tree, defaults) for _, after in operator(place)}
    assert found == expected


CODE = "def spend(left, cost):\n    if cost > left:\n        raise ValueError\n    left -= cost\n    return left\n"
FILE = f"{FOLDERS[0]}/purse.py"
EDGE = Drawn("moves_an_edge", FILE, (2, 2), "if cost > left:", 30, 41, "cost > left", "cost >= left")


@pytest.fixture
def purse(tmp_path: Path) -> Path:
    (tmp_path / FILE).parent.mkdir(parents=True)
    (tmp_path / FILE).write_text(CODE)
    return tmp_path


def test_a_seed_draws_the_same_changes_of_different_lines(purse: Path) -> None:
    drawn = draw(purse, [FILE, "tests/x.py"], 4, 3)
    assert drawn == draw(purse, ["tests/x.py", FILE], 4, 3)
    assert {change.lines[0] for change in drawn} == {2, 3, 4, 5}
    assert {tuple(draw(purse, [FILE], 1, seed)) for seed in range(9)} != {tuple(drawn[:1])}
    for change in drawn:
        assert ast.dump(ast.parse(change.applied_in(purse))) != ast.dump(ast.parse(CODE))
    with pytest.raises(ValueError, match="draw fewer"):
        draw(purse, [FILE], 5, 3)


def test_a_change_that_no_longer_fits_is_refused(purse: Path) -> None:
    assert EDGE.applied_in(purse) == CODE.replace("cost > left", "cost >= left")
    (purse / FILE).write_text("\n" + CODE)
    with pytest.raises(ValueError, match="has changed since the draw"):
        EDGE.applied_in(purse)


def test_every_drawn_change_of_the_project_can_be_made() -> None:
    for change in draw(ROOT, tracked_files(ROOT), 20, 7):
        ast.parse(change.applied_in(ROOT))


TIMES = {
    "tests/store/test_a.py::test_slow": 9.0,
    "tests/store/test_a.py::test_quick": 0.5,
    "tests/privacy/test_b.py::test_own": 3.0,
    "tests/privacy/test_b.py::test_after_setup": 1.0,
    "tests/wire/test_c.py::test_of_a_party": 0.1,
    "tests/wire/test_d.py::test_elsewhere": 0.1,
}


def record_of(root: Path, lines: dict[str, list[int]]) -> Record:
    data = coverage.CoverageData(str(root / "lines"))
    for context, numbers in lines.items():
        data.set_context(context)
        data.add_lines({str(root / FILE): numbers})
    data.write()
    (root / "times.json").write_text(json.dumps(TIMES))
    return Record(root / "lines", root / "times.json", root)


def test_a_mutant_gets_the_tests_that_run_its_line(purse: Path) -> None:
    slow, quick, own, after_setup, of_a_party, _ = TIMES
    record = record_of(
        purse,
        {
            f"{slow}|run": [2],
            f"{quick}|run": [2, 3],
            f"{own}|setup": [2],
            f"{of_a_party} (call)": [2],
            "tests/store/test_a.py::test_that_is_gone|run": [2],
            "": [1],
        },
    )
    assert record.tests_of(EDGE) == {slow, quick, own, after_setup, of_a_party}
    assert record.chosen_for(EDGE, 30.0) == (own, after_setup, of_a_party, slow, quick)
    assert record.chosen_for(EDGE, 20.0) == (own, after_setup, of_a_party, quick)
    assert record.chosen_for(EDGE, 4.3) == (after_setup, of_a_party, quick)


@pytest.mark.parametrize(("lines", "expected"), [([3], "its module's"), ([], "its folder's")])
def test_a_line_that_no_test_is_known_to_run_gets_tests_too(purse: Path, lines: list[int], expected: str) -> None:
    slow, _, own, after_setup, *_ = TIMES
    record = record_of(purse, {"": [2], f"{slow}|run": lines})
    assert record.tests_of(EDGE) == ({slow} if expected == "its module's" else {own, after_setup})


def test_what_a_process_saves_late_is_added(tmp_path: Path) -> None:
    for name, test in (("lines", "a"), ("lines.late", "b"), ("lines.later", "c")):
        data = coverage.CoverageData(str(tmp_path / name))
        data.set_context(test)
        data.add_lines({"/code.py": [1]})
        data.close()
    combine_the_late(tmp_path / "lines")
    data = coverage.CoverageData(str(tmp_path / "lines"))
    data.read()
    assert sorted(data.contexts_by_lineno("/code.py")[1]) == ["a", "b", "c"]
    assert [path.name for path in tmp_path.iterdir()] == ["lines"]


class Survives:
    """Tests that notice every mutant but those of some lines."""

    def __init__(self, *lines: int, control: Outcome = "survived") -> None:
        self.lines, self.control = lines, control

    def results(self, trials: Sequence[Trial]) -> list[Result]:
        return [Result(trial.key, trial.name, self._outcome(trial), 1.0, "tests/x.py::test_x") for trial in trials]

    def _outcome(self, trial: Trial) -> Outcome:
        if trial.mutant is None:
            return self.control
        return "survived" if trial.mutant.place.endswith(self.ends) else "noticed"

    @property
    def ends(self) -> tuple[str, ...]:
        return tuple(f":{line}" for line in self.lines)


def test_the_score_leaves_out_equivalent_mutants_and_names_survivors(purse: Path) -> None:
    record, said = record_of(purse, {f"{next(iter(TIMES))}|run": [2, 3, 4, 5]}), list[str]()
    drawn = draw(purse, [FILE], 4, 3)

    def passes(survives: Survives, equivalent: dict[tuple[str, str, str], str]) -> bool:
        said.clear()
        return score(survives, drawn, record, equivalent, seconds=20.0, say=said.append)

    assert passes(Survives(), {})
    assert said == ["\n4 mutants: 4 of 4 noticed (100.0%; 0 by a deadline, 0 as their tests cannot run), 0 equivalent"]
    assert not passes(Survives(2), {})
    assert f"{FILE}:2" in said[0]
    assert "1 of the 1 tests" in said[1]
    assert said[-1].startswith("\n4 mutants: 3 of 4 noticed (75.0%")
    line_2 = next(change for change in drawn if change.lines[0] == 2)
    assert passes(Survives(2), {line_2.key: "the caller has looked"})
    assert "the caller has looked" in said[0]
    assert said[-1].endswith("3 of 3 noticed (100.0%; 0 by a deadline, 0 as their tests cannot run), 1 equivalent")
    assert not passes(Survives(control="noticed"), {})
    assert said == ["tests/x.py::test_x\nTests that noticed a mutant do not pass without one"]
