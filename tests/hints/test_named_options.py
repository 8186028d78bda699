"""Every option that a text of the code or a page of the documentation names exists: a renamed option leaves no stale
hint."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from blindfit.coordinator.explain.options import all_options
from blindfit.parties.renamed import NAME
from tests.hints.sites import FOLDERS, ROOT, texts_of

OPTIONS = all_options()
TABLES = sorted({option.table.split(".")[0] for option in OPTIONS if option.table})
NAMED = re.compile(rf"(?<![\w./{{-])((?:{'|'.join(TABLES)})(?:\.[a-z][a-z_-]*[a-z])+)(?![\w/({{-])")
FILES = (".md", ".py", ".toml", ".csv", ".json")
# Fields of reports, and labels of randomness.
NO_OPTIONS = {
    "align.least_common",  # in digests, which keep the first name
    "fit.epochs",
    "fit.fit_released",
    "fit.losses",
    "fit.scale",
    "fit.start",
    "paillier.openings",
    "walr.norm",
}
OLD_NAMES = "parties/renamed.py"


def known() -> set[tuple[str, ...]]:
    """Return the paths of all options and tables, with NAME and, as hints may have them, without it."""
    paths = {tuple(path.split(".")) for option in OPTIONS for path in (option.path, option.table)}
    paths |= {path[:-1] for path in paths if path[-1] == NAME}  # a table of tables
    return paths | {tuple(part for part in path if part != NAME) for path in paths}


def exists(name: str, paths: set[tuple[str, ...]]) -> bool:
    parts = tuple(name.split("."))
    if any(option.kind == "table of names" and name.startswith(f"{option.path}.") for option in OPTIONS):
        return True
    return any(len(p) == len(parts) and all(a in (NAME, b) for a, b in zip(p, parts, strict=True)) for p in paths)


def texts() -> Iterator[tuple[str, str]]:
    """Yield each text and its place; {} stands for computed parts."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in inner:
                    yield from ((f"{path.relative_to(ROOT)}:{node.lineno}", text) for text in texts_of(node))
    for page in [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "SECURITY.md"]:
        yield from ((f"{page.name}:{n}", line) for n, line in enumerate(page.read_text("utf-8").splitlines(), 1))


def unknown(found: Iterator[tuple[str, str]]) -> list[str]:
    paths = known()
    names = ((where, name) for where, text in found for name in NAMED.findall(text))
    return [
        f"{where}: {name}"
        for where, name in names
        if not (name in NO_OPTIONS or name.endswith(FILES) or where.startswith(OLD_NAMES) or exists(name, paths))
    ]


def test_every_option_that_is_named_exists() -> None:
    assert unknown(texts()) == []


def test_a_stale_name_is_found() -> None:
    stale = "lower it, or have the operator raise policy.min_linked or [datasets.visits] datasets.visits.askers"
    assert unknown(iter([("a.py:1", stale)])) == ["a.py:1: policy.min_linked", "a.py:1: datasets.visits.askers"]
    right = "see policy.taylor.min_linked, policy.min_rows, datasets.visits.url, datasets.url and docs/guides/policy.md"
    assert unknown(iter([("a.py:1", right)])) == []
    assert sum(bool(NAMED.search(text)) for _, text in texts()) > 300
