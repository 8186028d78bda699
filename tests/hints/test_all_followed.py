"""Every hint that names an option, a value, a flag or a command has a case that follows it."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.hints.sites import Site, all_sites

TESTS = Path(__file__).parents[1]
FOLLOWING = "tests.hints.following"
# functions of that module
DECLARING = ("says", "Told", "refused", "refused_by", "refused_value", "refused_command", "found")
LEAST_CHARS = 12  # shortest text that identifies a hint


def declared() -> dict[str, str]:
    """Return the texts that cases follow, and their places, in this folder and in other tests."""
    texts = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        if FOLLOWING not in path.read_text("utf-8"):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            for value in _declared_by(node):
                text = constants.get(value.id, value) if isinstance(value, ast.Name) else value
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    texts[text.value] = f"{path.relative_to(TESTS)}:{value.lineno}"
    return texts


def _declared_by(node: ast.AST) -> list[ast.expr]:
    if not isinstance(node, ast.Call):
        return []
    by_name = [keyword.value for keyword in node.keywords if keyword.arg == "says"]
    return by_name + (node.args[:1] if isinstance(node.func, ast.Name) and node.func.id in DECLARING else [])


def follows(text: str, site: Site) -> bool:
    return text in site.text and (len(text) >= LEAST_CHARS or text == site.text)


def test_every_hint_that_names_something_is_followed() -> None:
    texts = declared()
    left = [str(site) for site in all_sites() if site.names_something and not any(follows(t, site) for t in texts)]
    assert not left, f"{len(left)} hints are not followed:\n" + "\n".join(left)


def test_every_text_that_a_case_follows_is_one_of_the_code() -> None:
    sites = all_sites()
    gone = [f"{where}: {text!r}" for text, where in declared().items() if not any(follows(text, s) for s in sites)]
    assert not gone, "\n".join(gone)


def test_what_counts_as_naming_something() -> None:
    naming = [
        "set taylor.batch_rows = 400",
        'take "analytic" or less than 5',
        "raise privacy.epsilon",
        "name it in `features`",
        "say where: --out DIR",
        "blindfit certs authority makes one",
        "correct [parties]",
        "a larger norm_bound",
        "use a larger epsilon",
        "set {}.missing",
    ]
    assert all(Site("", 0, text).names_something for text in naming)
    others = [
        "restore it from a backup",
        "rename one of the two",
        "is the disk full?",
        "write ids in the same form in every table",
    ]
    assert not any(Site("", 0, text).names_something for text in others)
