"""Files of the product import each other in one direction: no file is reached again from what it imports.

An import counts wherever it stands: at the top, inside a function or under TYPE_CHECKING. A circle of files cannot be
read, tested or moved one file at a time. import-linter orders packages; this test orders the files within them.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("blindfit", "algorithms", "parties", "coordinator", "protos")  # blindfit/ links to the others

Graph = Mapping[str, frozenset[str]]


def modules_of(root: Path) -> dict[str, Path]:
    """Return the file of each module of the product, by the module's dotted name."""
    found = {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            if folder == "blindfit" and file.parent != root / folder:
                continue  # reached through one of the links
            parts = file.relative_to(root).with_suffix("").parts
            name = ".".join(parts if folder == "blindfit" else ("blindfit", *parts))
            found[name.removesuffix(".__init__")] = file
    return found


def imported_modules(module: str, tree: ast.AST, is_package: bool, modules: Container[str]) -> Iterator[str]:
    """Yield the modules that a file names in its import statements, wherever these stand.

    `from package import name` names the package, and the module `package.name` where there is one. So a module whose
    package exports it may not import from the package, but from its neighbours by their full names. To import a module
    runs the packages around it too, except the packages of the importing file, which run already.
    """
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            names = [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
        for name in names:
            for found in (name, *_packages_to_run(name, module)):
                if found in modules and found != module:
                    yield found


def _packages_to_run(name: str, importing: str) -> Iterator[str]:
    while name := name.rpartition(".")[0]:
        if not importing.startswith(f"{name}."):
            yield name


def import_graph(root: Path) -> Graph:
    modules = modules_of(root)
    return {
        name: frozenset(
            imported_modules(name, ast.parse(file.read_text("utf-8")), file.name == "__init__.py", modules.keys())
        )
        for name, file in modules.items()
    }


def circles(graph: Graph) -> list[list[str]]:
    """Return a shortest circle through the first module of each group of modules that reach each other."""
    reached = {name: _reached_from(name, graph) for name in graph}
    found, done = [], set[str]()
    for name in sorted(graph):
        if name not in done and name in reached[name]:
            done |= {other for other in reached[name] if name in reached[other]}
            found.append(_shortest_circle(name, graph))
    return found


def _reached_from(start: str, graph: Graph) -> set[str]:
    seen, waiting = set[str](), list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(graph[name])
    return seen


def _shortest_circle(start: str, graph: Graph) -> list[str]:
    paths = [[start]]
    seen = set[str]()
    while paths:
        path = paths.pop(0)
        for name in sorted(graph[path[-1]]):
            if name == start:
                return [*path, start]
            if name not in seen:
                seen.add(name)
                paths.append([*path, name])
    raise AssertionError(f"{start} is on no circle")


def test_no_file_imports_itself_through_others() -> None:
    found = circles(import_graph(ROOT))
    assert not found, "files import each other in a circle:\n" + "\n".join(" -> ".join(circle) for circle in found)


def test_the_graph_holds_every_file_and_every_kind_of_import() -> None:
    graph = import_graph(ROOT)
    for folder in FOLDERS[1:]:
        assert len([name for name in graph if name.startswith(f"blindfit.{folder}.")]) == len(
            [file for file in (ROOT / folder).rglob("*.py") if file != ROOT / folder / "__init__.py"]
        )
    assert "blindfit.coordinator.cli" in {name.rpartition(".")[0] for name in graph["blindfit.__main__"]}


PACKAGES = {
    "algorithms/__init__.py": "",
    "algorithms/pair/__init__.py": "",
    "algorithms/exports/__init__.py": "from blindfit.algorithms.pair.one import ONE",
    "algorithms/exports/harmless.py": "NOTHING = 0",
}
PLANTED = {
    "at the top": "from blindfit.algorithms.pair.one import ONE",
    "the module by its package": "from blindfit.algorithms.pair import one",
    "an import statement": "import blindfit.algorithms.pair.one",
    "an import under another name": "import blindfit.algorithms.pair.one as first",
    "a relative import": "from .one import ONE",
    "a relative import of the module": "from . import one",
    "a relative import from above": "from ..pair import one",
    "inside a function": "def lazy():\n    from blindfit.algorithms.pair.one import ONE",
    "for the type checker": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .one import ONE",
    "through a file between": "from blindfit.algorithms.pair.between import ONE",
    "through a package that exports it": "from blindfit.algorithms.exports.harmless import NOTHING",
}


def _plant(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_circle_is_found(kind: str, tmp_path: Path) -> None:
    files = PACKAGES | {
        "algorithms/pair/one.py": "from blindfit.algorithms.pair import two\nONE = 1",
        "algorithms/pair/two.py": PLANTED[kind],
        "algorithms/pair/between.py": "from blindfit.algorithms.pair.one import ONE",
    }
    (circle,) = circles(import_graph(_plant(tmp_path, files)))
    assert circle[0] == circle[-1]
    assert {"blindfit.algorithms.pair.one", "blindfit.algorithms.pair.two"} <= set(circle)
    assert not circles(import_graph(_plant(tmp_path, {"algorithms/pair/two.py": "import math"})))


@pytest.mark.parametrize("imported", ["ONE", "two"])
def test_a_module_may_not_import_the_package_that_exports_it(imported: str, tmp_path: Path) -> None:
    files = PACKAGES | {
        "algorithms/pair/__init__.py": "from blindfit.algorithms.pair.one import ONE",
        "algorithms/pair/one.py": f"from blindfit.algorithms.pair import {imported}",
        "algorithms/pair/two.py": "TWO = 2",
    }
    (circle,) = circles(import_graph(_plant(tmp_path, files)))
    assert circle == ["blindfit.algorithms.pair", "blindfit.algorithms.pair.one", "blindfit.algorithms.pair"]
