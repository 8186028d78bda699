"""Every place in the code that advises a user what to do next, found in the syntax tree.

A text is a hint if it is given as `hint=`, as a policy's reason, as the advice of a leak, as a finding of the
pre-flight, or as the ValueError of a settings class. An error without a hint that names what to remove is a hint too. A
text from a variable, a constant or a function's return is looked up by name. A value in a text is written {}.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parents[2]
FOLDERS = ("algorithms", "parties", "coordinator")

TABLES = (
    "align|compute|datasets|dp_lr|evaluate|falcon|fit|identity|label_dp|paillier|parties|peers|policy|populations|predict"
    "|privacy|scores|secrets|split|taylor|timeouts|walr"
)
#: What a hint may name that a user can get wrong: an option, a value, a flag, or a command to type.
NAMES = re.compile(
    rf"""
      \b({TABLES})\.[a-z] | \{{\}}\.[a-z]            # an option in its table
    | [a-z]\ ?=                                      # an option with its value
    | \b[a-z]+_[a-z_]+\b                             # an option of several words
    | \[[a-z.]+\]                                    # a table
    | `                                              # whatever is quoted as it is typed
    | --[a-z] | \b(blindfit|pip|openssl|chmod|mv)\ [a-z-]   # a flag, a command
    | (?<![A-Za-z])\d                                # a value
    | \b(epsilon|delta|l2)\b                         # options that are named without their table
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, order=True)
class Site:
    file: str
    line: int
    text: str

    @property
    def names_something(self) -> bool:
        return NAMES.search(self.text) is not None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def all_sites() -> list[Site]:
    modules = {_module_of(path): Module(path) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    waiting = [(module, value) for module in modules.values() for value in module.given()]
    seen = {id(value) for _, value in waiting}
    found: set[Site] = set()
    while waiting:
        module, value = waiting.pop()
        found |= {Site(module.file, value.lineno, text) for text in texts_of(value) if " " in text.strip()}
        for where, more in module.behind(value, modules):
            if id(more) not in seen:
                seen.add(id(more))
                waiting.append((where, more))
    return sorted(found)


def _module_of(path: Path) -> str:
    return ".".join(("blindfit", *path.relative_to(ROOT).with_suffix("").parts))


@dataclass
class Module:
    path: Path
    tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.path.read_text("utf-8"))

    @property
    def file(self) -> str:
        return str(self.path.relative_to(ROOT))

    # --- where hints are given

    def given(self) -> Iterator[ast.expr]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield from _given_to(node)
            # refusals of a policy: the field, and the reason
            if isinstance(node, ast.FunctionDef) and node.name == "refusals":
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Yield) and isinstance(inner.value, ast.Tuple):
                        yield inner.value.elts[1]
            if isinstance(node, ast.ClassDef) and "advice" in _fields_of(node):
                yield from (text for inner in node.body if _is_text(inner) for text in _returned_by(inner))
            if isinstance(node, ast.arguments):
                keywords = zip(node.kwonlyargs, node.kw_defaults, strict=True)
                yield from (default for argument, default in keywords if argument.arg == "hint" and default is not None)

    # --- what a name in them stands for

    def behind(self, value: ast.expr, modules: dict[str, Module]) -> Iterator[tuple[Module, ast.expr]]:
        for part in parts_of(value):
            if isinstance(part, ast.Constant | ast.JoinedStr):  # within another text
                yield self, part
            elif isinstance(part, ast.Name):
                yield from self._variable(part, modules)
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                owner = self._owner(part.func.id, modules)
                yield from ((owner, inner) for inner in owner.returns.get(part.func.id, ()))
                yield from ((self, argument) for argument in part.args)
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                on = part.func.value
                if isinstance(on, ast.Name) and part.func.attr in ("get", "format"):  # HINTS.get(...)
                    yield from self._variable(on, modules)
                elif part.func.attr not in ("get", "join", "format"):
                    for module in modules.values():
                        yield from ((module, inner) for inner in module.methods.get(part.func.attr, ()))

    def _variable(self, used: ast.Name, modules: dict[str, Module]) -> Iterator[tuple[Module, ast.expr]]:
        if used.id.strip("_").isupper():
            owner = self._owner(used.id, modules)
            yield from ((owner, value) for value in owner.assigned.get((0, used.id), ()))
        else:
            yield from ((self, value) for value in self.assigned.get((self.scopes.get(id(used), 0), used.id), ()))

    def _owner(self, name: str, modules: dict[str, Module]) -> Module:
        return modules.get(self.imported.get(name, ""), self)

    @cached_property
    def imported(self) -> dict[str, str]:
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in nodes for alias in node.names}

    @cached_property
    def scopes(self) -> dict[int, int]:
        """The function of each name and assignment: the outermost one, 0 for the module."""
        found = {}
        for node in self.tree.body:
            for outer in node.body if isinstance(node, ast.ClassDef) else [node]:
                if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
                    found |= {id(inner): outer.lineno for inner in ast.walk(outer)}
        return found

    @cached_property
    def assigned(self) -> dict[tuple[int, str], list[ast.expr]]:
        """Assigned values by function and name."""
        found: dict[tuple[int, str], list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    pairs = [(target, node.value)]
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                        pairs = list(zip(target.elts, node.value.elts, strict=True))
                    for one, value in pairs:
                        if isinstance(one, ast.Name):
                            found.setdefault((self.scopes.get(id(node), 0), one.id), []).append(value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of = node.func.value
                if node.func.attr == "append" and isinstance(of, ast.Name):
                    found.setdefault((self.scopes.get(id(node), 0), of.id), []).extend(node.args)
        return found

    @cached_property
    def returns(self) -> dict[str, list[ast.expr]]:
        """Returned values by function of the module."""
        return {node.name: _returned_by(node) for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    @cached_property
    def methods(self) -> dict[str, list[ast.expr]]:
        classes = [node for node in self.tree.body if isinstance(node, ast.ClassDef)]
        functions = [node for one in classes for node in one.body if isinstance(node, ast.FunctionDef)]
        return {node.name: _returned_by(node) for node in functions}


def _given_to(call: ast.Call) -> Iterator[ast.expr]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "hint")
    if called.endswith("Error") and call.args and not any(keyword.arg == "hint" for keyword in call.keywords):
        yield from (call.args[0] for text in texts_of(call.args[0]) if re.search(r"\bremove (it|one)\b", text))
    if called in ("refuse", "_refuse") and call.args:  # the field, and the reason
        yield call.args[-1]
    if called == "PolicyRefused":
        yield from (keyword.value for keyword in call.keywords if keyword.arg == "reason")
    places = {"ValueError": 0, "Leak": 2, "Finding": 2}
    if called in places and len(call.args) > places[called]:
        level = call.args[0]
        if not (called == "Finding" and isinstance(level, ast.Constant) and level.value in ("ok", "note")):
            yield call.args[places[called]]


def _fields_of(described: ast.ClassDef) -> set[str]:
    fields = [node.target for node in described.body if isinstance(node, ast.AnnAssign)]
    return {target.id for target in fields if isinstance(target, ast.Name)}


def _is_text(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and node.name == "__str__"


def _returned_by(function: ast.FunctionDef) -> list[ast.expr]:
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Return | ast.Yield)]
    return [node.value for node in nodes if node.value is not None]


def parts_of(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a text."""
    if isinstance(value, ast.BinOp):
        yield from itertools.chain(parts_of(value.left), parts_of(value.right))
    elif isinstance(value, ast.IfExp):
        for way in (value.body, value.orelse):
            yield from parts_of(way)
            yield from [way] if isinstance(way, ast.JoinedStr) else []
    elif isinstance(value, ast.BoolOp):
        yield from itertools.chain(*map(parts_of, value.values))
    elif isinstance(value, ast.List | ast.Tuple | ast.Dict):
        inner = value.values if isinstance(value, ast.Dict) else value.elts
        yield from itertools.chain(*map(parts_of, inner))
    elif isinstance(value, ast.Starred):
        yield from parts_of(value.value)
    elif isinstance(value, ast.ListComp | ast.GeneratorExp):
        yield from parts_of(value.elt)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "join":
        yield from itertools.chain(*map(parts_of, value.args))
    elif isinstance(value, ast.JoinedStr):
        for piece in value.values:
            if isinstance(piece, ast.FormattedValue):
                yield from parts_of(piece.value)
                yield from [piece.value] if isinstance(piece.value, ast.JoinedStr) else []
    else:
        yield value


def texts_of(value: ast.expr) -> Iterable[str]:
    """Return all that a text can be, with {} for a part that is computed."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return [value.value]
    if isinstance(value, ast.JoinedStr):
        pieces = [piece.value if isinstance(piece, ast.Constant) else "{}" for piece in value.values]
        return ["".join(map(str, pieces))]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and not isinstance(value.left, ast.List):
        sides = ([*texts_of(side)] or ["{}"] for side in (value.left, value.right))
        return ["".join(pair) for pair in itertools.product(*sides)]
    if isinstance(value, ast.IfExp):
        return [*texts_of(value.body), *texts_of(value.orelse)]
    if isinstance(value, ast.Dict | ast.List | ast.Tuple | ast.BoolOp):
        inner = value.elts if isinstance(value, ast.List | ast.Tuple) else value.values
        return [text for one in inner for text in texts_of(one)]
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        return texts_of(value.elt)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("join", "get"):
        return [text for one in value.args for text in texts_of(one)]
    return []


if __name__ == "__main__":
    for site in all_sites():
        if site.names_something:
            print(site)
