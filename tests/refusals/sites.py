"""Every place in the code where a job can be refused, found in the syntax tree; and which of them an action reaches.

A place is the call that makes an error, or that hands a field and a reason to `_refuse`. Its name is the file, the
function and the beginning of the text.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

from blindfit.algorithms import errors
from tests.hints.sites import texts_of

ROOT = Path(__file__).parents[2]
SCOPE = (
    "coordinator/running/*.py",
    "parties/sessions/*.py",
    "parties/snapshots/*.py",
    "parties/account/*.py",
    "parties/training/*.py",
    "parties/vertical/*.py",
    "parties/measurement/*.py",
    "parties/measurement/ways/*.py",
    *(f"parties/{system}/*.py" for system in ("walr", "label_dp", "dp_lr", "taylor", "falcon", "evaluate", "predict")),
    "parties/store/charging.py",
    "parties/store/receipts.py",
    "parties/store/database.py",
    "parties/settings.py",
    "algorithms/privacy/ledger.py",
)
"""Code that a job passes from its files to the first message that depends on a row."""

REFUSALS = (
    errors.PolicyRefused,
    errors.ConfigError,
    errors.DataError,
    errors.RangeError,
    errors.TooFewRows,
    errors.BudgetExhausted,
    errors.UnsupportedEvent,
    errors.LedgerBehind,
    errors.LimitExceeded,
    errors.UnknownId,
    errors.DuplicateId,
    errors.CannotAnswer,
    errors.ComputeFailed,
    errors.RequestConflict,
)
NAMES = frozenset(kind.__name__ for kind in REFUSALS)
HELPERS = frozenset({"_refuse", "refuse"})  # functions that make the error from a field and a reason
TEXT_CHARS = 48


@cache
def sites() -> dict[tuple[str, int], str]:
    """Return the name of each place, by its file and line."""
    found: dict[tuple[str, int], str] = {}
    for pattern in SCOPE:
        for path in sorted(ROOT.glob(pattern)):
            file = str(path.relative_to(ROOT))
            named = Counter[str]()
            for function, call in _calls(ast.parse(path.read_text("utf-8"))):
                name = f"{file} {function}: {_text(call)}"
                named[name] += 1
                found[file, call.lineno] = name + (f" #{named[name]}" if named[name] > 1 else "")
    return found


def _calls(
    tree: ast.AST, within: tuple[str, ...] = (), *, in_function: bool = False, is_nested: bool = False
) -> Iterator[tuple[str, ast.Call]]:
    """
    Args:
        is_nested: True if the innermost function is within another one, so that it is not a helper of its class or
            module.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            is_function = not isinstance(node, ast.ClassDef)
            nested = is_function and in_function
            yield from _calls(node, (*within, node.name), in_function=is_function, is_nested=nested)
            continue
        if isinstance(node, ast.Call) and within and (within[-1] not in HELPERS or is_nested):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in NAMES or (called in HELPERS and node.args):
                yield ".".join(within), node
        yield from _calls(node, within, in_function=in_function, is_nested=is_nested)


def _text(call: ast.Call) -> str:
    reason = next((keyword.value for keyword in call.keywords if keyword.arg == "reason"), None)
    given = reason if reason is not None else call.args[-1] if call.args else None
    texts = list(texts_of(given)) if given is not None else []
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return (texts[0] if texts else f"({called})")[:TEXT_CHARS].strip()


@contextmanager
def reached() -> Iterator[set[str]]:
    """Yield the names of the places where errors are made meanwhile, in any thread."""
    found: set[str] = set()
    made = errors.BlindfitError.__init__

    def noting(self: errors.BlindfitError, *arguments: Any, **named: Any) -> None:
        if place := _place_of(sys._getframe(1)):
            found.add(place)
        made(self, *arguments, **named)

    with mock.patch.object(errors.BlindfitError, "__init__", noting):
        yield found


def _place_of(frame: FrameType | None) -> str:
    """Return the place that made an error, past the errors' own classes and the functions that make errors."""
    while frame is not None:
        code = frame.f_code
        is_between = code.co_filename.endswith("algorithms/errors.py") or (
            code.co_name in HELPERS and "<locals>" not in code.co_qualname
        )
        if not is_between:
            return _name_of(code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return ""


def _name_of(file: str, line: int) -> str:
    """Return the name of the place whose call covers a line: the last one that begins before the line."""
    path = Path(file).resolve()
    if ROOT not in path.parents:
        return ""
    inside = str(path.relative_to(ROOT))
    before = [at for where, at in sites() if where == inside and at <= line]
    return sites()[inside, max(before)] if before and line - max(before) < LINES_OF_A_CALL else ""


LINES_OF_A_CALL = 8
