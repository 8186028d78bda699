"""Find the functions, classes and constants of a module by their qualified names."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

FOLDERS = ("algorithms", "parties", "coordinator", "blindfit")


@lru_cache(8)
def definitions_of(text: str) -> dict[str, slice]:
    """Return the place of every definition by its qualified name: `f`, `Class`, `Class.method`, `CONSTANT`."""
    ends = [0, *itertools.accumulate(len(line) + 1 for line in text.split("\n"))]
    return {name: slice(ends[first - 1], ends[last]) for name, first, last in _spans(ast.parse(text).body)}


def _spans(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, int, int]]:
    for node in body:
        last = node.end_lineno or node.lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)]), last
            if isinstance(node, ast.ClassDef):
                yield from _spans(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield prefix + ast.unparse(target), node.lineno, last


def module_of(file: str) -> str:
    """Return the dotted name of a file's module: algorithms/x.py is blindfit.algorithms.x."""
    parts = Path(file).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts if parts[0] == "blindfit" else ("blindfit", *parts))


def path_of(root: Path, module: str) -> Path:
    """Return the file of a module. The folders of blindfit/ are links."""
    path = root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def modules_with(root: Path, qualified: str) -> list[str]:
    """Return every module that defines this name."""
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    found = [path for path in files if qualified in definitions_of(path.read_text("utf-8"))]
    return [module_of(str(path.relative_to(root))) for path in found]
