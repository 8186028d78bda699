"""A function is named by a verb or by the noun that it returns: `release()` or `noise_std()`, not `released()`.

A participle says neither what the function does nor what it returns. Some participles are part of a term of the field,
such as "weighted sum": the table lists them. Properties and fields are values, and may begin with a participle.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("algorithms", "coordinator", "parties")

TERMS = {
    *("composed", "debiased", "expected", "keyed", "left", "normalised", "sampled", "signed", "spent", "squared"),
    *("standardised", "transposed", "weighted"),
}
PARTICIPLE = re.compile(
    r"\w*(ed|ght|ept|told|made|sent|drawn|given|taken|shown|known|worn|torn|heard|said|written|chosen|seen|done|gone)"
    r"|found|left|lost|held|learnt|spent|built|begun|paid"
)
LOOK_ALIKES = {
    "accept",
    "embed",
    "except",
    "exceed",
    "feed",
    "height",
    "intercept",
    "need",
    "proceed",
    "right",
    "seed",
    "weight",
}


def functions_of(tree: ast.AST) -> Iterator[str]:
    """Yield the name of each function and method that is not a property."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
            yield node.name


def participle_of(function: str) -> str | None:
    """Return the participle that a function's name begins with; None where it begins with another word."""
    first = function.strip("_").split("_")[0]
    return first if PARTICIPLE.fullmatch(first) and first not in LOOK_ALIKES else None


def participles_in(folder: str) -> dict[str, list[str]]:
    """Return the functions of a folder that a participle names, by the participle."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / folder).rglob("*.py")):
        for function in functions_of(ast.parse(file.read_text("utf-8"))):
            if word := participle_of(function):
                found.setdefault(word, []).append(f"{file.relative_to(ROOT)}: {function}")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_is_named_by_a_participle(folder: str) -> None:
    others = [place for word, places in participles_in(folder).items() if word not in TERMS for place in places]
    assert others == [], "name each by what it does, or by the noun that it returns"


def test_every_term_is_in_use() -> None:
    assert {word for folder in FOLDERS for word in participles_in(folder)} >= TERMS


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def summed(rows): ...", ["summed"]),
        ("async def _kept_rows(): ...", ["kept"]),
        ("class Tally:\n    def released(self): ...", ["released"]),
        ("def outer():\n    def told(): ...", ["told"]),
        ("class Record:\n    @property\n    def renamed(self): ...", []),
        ("class Record:\n    @cached_property\n    def made(self): ...", []),
        ("def need(): ...", []),
        ("def weights(): ...", []),
        ("def is_shared(): ...", []),
        ("def __reduce__(self): ...", []),
    ],
)
def test_what_counts_as_a_participle(source: str, found: list[str]) -> None:
    assert [word for name in functions_of(ast.parse(source)) if (word := participle_of(name))] == found
