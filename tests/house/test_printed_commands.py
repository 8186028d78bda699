"""A command that the code prints can be pasted into a shell, for any names of paths and datasets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for folder in ("parties", "coordinator") for path in (ROOT / folder).rglob("*.py"))
COMMAND = re.compile(r"\b(blindfit|mv|chmod|rm|cp) [a-z0-9-][^`\n,;]*$")  # begun, and not ended before the value
SAFE = {
    "wanted": "one of the roles",
    "RUNS / 'before'": "our own folder",
    "LATEST": "our own folder",
    "party": "a party's name, which was checked",
    "folder.name": "likewise",
    "seat.name": "likewise",
}


def unquoted(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the values that an f-string puts into a command and that shlex.quote does not quote."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        before = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                before += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                value = ast.unparse(part.value)
                if COMMAND.search(before) and not re.match(r"(shlex\.)?(quote|join)\(", value):
                    yield part.lineno, value
                before += "{}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_value_in_a_command_is_quoted(path: Path) -> None:
    found = [f"{path}:{line}: {value}" for line, value in unquoted(ast.parse(path.read_text())) if value not in SAFE]
    assert not found


@pytest.mark.parametrize("said", ['f"run `blindfit run {path}`"', 'f"`blindfit party {q(path)} {name}`"'])
def test_an_unquoted_value_is_found(said: str) -> None:
    assert list(unquoted(ast.parse(said)))


def test_a_value_after_the_command_needs_no_quotes() -> None:
    assert not list(unquoted(ast.parse('f"`blindfit run` with {name}; `blindfit run {quote(path)}` too, {x}"')))
