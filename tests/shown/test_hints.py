"""An error's hint appears once for each reader: in str(error), on a separate line, or in a field."""

from __future__ import annotations

import ast
import json
import pickle
import traceback
from pathlib import Path

import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError, DataError
from blindfit.parties.wire import error_codes
from blindfit.parties.work.ending import describe_error
from tests.command import ROOT, blindfit
from tests.each_case import each_case
from tests.wire.error_samples import SAMPLES

CANARY = "canary-of-a-hint"
CODE = ("algorithms", "parties", "coordinator", "benchmarks", "examples")


def test_an_error_says_its_hint() -> None:
    error = ConfigError("epsilon is missing", hint="write privacy.epsilon")
    assert (str(error), error.message) == ("epsilon is missing (write privacy.epsilon)", "epsilon is missing")
    assert str(ConfigError("epsilon is missing")) == "epsilon is missing"
    error.hint = "write it"  # some are found out later
    assert str(error) == "epsilon is missing (write it)"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.message) == (ConfigError, str(error), error.message)


def test_a_traceback_shows_it_as_a_notebook_does() -> None:
    with pytest.raises(DataError) as caught:
        raise DataError("row 3 is empty", hint="leave it out")
    (line,) = traceback.format_exception_only(caught.value)
    assert line.endswith("DataError: row 3 is empty (leave it out)\n")


@each_case("error", [error for error, _ in SAMPLES], ids=lambda error: type(error).__name__)
def test_every_class_says_it_and_no_peer_hears_more_of_it(error: BlindfitError) -> None:
    said, before = error_codes.status_of(error), error.hint
    try:
        error.hint = CANARY
        assert str(error) == f"{error.message} ({CANARY})"
        assert error_codes.status_of(error) == said
        assert CANARY.encode() not in said.SerializeToString()
        assert describe_error(error)["hint"] == CANARY
        assert CANARY not in describe_error(error)["reason"]
    finally:
        error.hint = before


def test_a_command_prints_it_on_a_line_of_its_own(tmp_path: Path) -> None:
    done = blindfit(tmp_path, "check", "job.toml")
    assert done.stderr.splitlines() == ["error: job.toml does not exist", "hint: give the path of a TOML file"]
    error = json.loads(blindfit(tmp_path, "check", "job.toml", "--json").stderr)["error"]
    assert (error["message"], error["hint"]) == ("job.toml does not exist", "give the path of a TOML file")


def test_no_code_shows_an_error_together_with_its_hint() -> None:
    """The text of `error` includes the hint: code that shows `error.hint` must show `error.message` with it."""
    checked, twice = 0, []
    for path in (path for part in CODE for path in (ROOT / part).rglob("*.py")):
        for statement in ast.walk(ast.parse(path.read_text())):
            if not isinstance(statement, ast.stmt) or hasattr(statement, "body"):
                continue
            shown, hinted = set(), set()
            for node in ast.walk(statement):
                if isinstance(node, ast.Attribute) and node.attr == "hint" and isinstance(node.value, ast.Name):
                    hinted.add(node.value.id)
                if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
                    shown.add(node.value.id)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
                    shown |= {argument.id for argument in node.args if isinstance(argument, ast.Name)}
            checked += bool(hinted)
            if hinted & shown - {"stopped"}:  # no error
                twice.append(f"{path.relative_to(ROOT)}:{statement.lineno}")
    assert not twice
    assert checked > 10
