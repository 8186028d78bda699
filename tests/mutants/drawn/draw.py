"""Draw changes of the product's code by a seed."""

from __future__ import annotations

import ast
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tests.mutants.drawn.operators import OPERATORS, Defaults, Operator, Place, places_of

FOLDERS = (
    *(f"algorithms/{room}" for room in ("privacy", "sharing", "protocols")),
    *(f"parties/{room}" for room in ("measurement", "store", "wire", "snapshots", "vertical")),
)
"""Folders in which mutants are drawn: code that counts, hides, shares, releases, keeps and receives."""

TRIES = 50  # a change may have no effect, or its line may have one already


@dataclass(frozen=True, slots=True)
class Drawn:
    """
    Args:
        file: path from the project's root, such as "parties/store/rows.py".
        lines: the first and the last line of the statement; of a compound statement, the lines of its head.
        code: the line in which the change begins.
        start, stop: place of `before` in the file's text.
    """

    operator: str
    file: str
    lines: tuple[int, int]
    code: str
    start: int
    stop: int
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.place} {_in_one_line(self.before)} -> {_in_one_line(self.after)}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Return a name that outlives changes of other lines."""
        return self.file, self.code, _in_one_line(self.after)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.lines[0]}"

    def path_in(self, root: Path) -> Path:
        return root / self.file

    def applied_in(self, root: Path) -> str:
        """Return the text of its file with the change in it.

        Raises:
            ValueError: the file has changed since the draw.
        """
        text = self.path_in(root).read_text("utf-8")
        if text[self.start : self.stop] != self.before:
            raise ValueError(f"{self.name}: {self.file} has changed since the draw; draw again")
        return text[: self.start] + self.after + text[self.stop :]


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def draw(root: Path, files: Sequence[str], count: int, seed: int) -> list[Drawn]:
    """Return `count` changes of different lines. The kind of each is drawn first, then its file, then its place.

    Raises:
        ValueError: the code has too few places.
    """
    generator = random.Random(seed)
    code = {name: (root / name).read_text("utf-8") for name in sorted(files) if name.endswith(".py") and _counts(name)}
    inside = [name for name in code if name.startswith(tuple(f"{folder}/" for folder in FOLDERS))]
    sizes = [len(code[name]) for name in inside]
    defaults = Defaults()
    for text in code.values():
        defaults.learn(ast.parse(text))
    places: dict[str, list[Place]] = {}
    drawn: dict[tuple[str, int], Drawn] = {}
    for _ in range(TRIES * count):
        if len(drawn) == count:
            return list(drawn.values())
        operator, [file] = generator.choice(OPERATORS), generator.choices(inside, sizes)
        if file not in places:
            places[file] = list(places_of(ast.parse(code[file]), defaults))
        changes = [(place, *change) for place in places[file] for change in operator(place)]
        change = _drawn(file, code[file], operator, *generator.choice(changes)) if changes else None
        if change is not None:
            drawn.setdefault((file, change.lines[0]), change)
    raise ValueError(f"{count} mutants are too many for the code of {', '.join(FOLDERS)}: draw fewer")


def _counts(file: str) -> bool:
    return file.startswith(("algorithms/", "parties/"))


def _drawn(file: str, text: str, operator: Operator, place: Place, node: ast.AST, after: str) -> Drawn | None:
    start, stop = _span(text, node)
    try:
        compile(text[:start] + after + text[stop:], file, "exec")
    except SyntaxError:  # a name that cannot be stored in, or a generator without its parentheses
        return None
    lines = _lines(_statement_of(place.module, node))
    code = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0].strip()
    return Drawn(operator.__name__, file, lines, code, start, stop, text[start:stop], after)


@lru_cache(4)
def _starts(text: str) -> list[int]:
    return [0, *itertools.accumulate(len(line) for line in text.splitlines(keepends=True))]


def _span(text: str, node: ast.AST) -> tuple[int, int]:
    """Return where a node stands. The parser counts columns in bytes."""
    lines = text.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        return _starts(text)[line - 1] + len(lines[line - 1].encode()[:column].decode())

    return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def _statement_of(module: ast.Module, node: ast.AST) -> ast.stmt:
    """Return the innermost statement that has the node's line."""
    line: int = node.lineno  # type: ignore[attr-defined]
    around = [each for each in ast.walk(module) if isinstance(each, ast.stmt)]
    around = [each for each in around if each.lineno <= line <= (each.end_lineno or each.lineno)]
    return max(around, key=lambda each: each.lineno)


def _lines(statement: ast.stmt) -> tuple[int, int]:
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return statement.lineno, max(statement.lineno, last)
