"""The page that counts the refusals of `run`, and how many of them `check` makes too."""

from __future__ import annotations

from pathlib import Path

from tests.refusals.cases import CASES
from tests.refusals.sites import sites
from tests.refusals.table import EXCEPTIONS, OUTSIDE, counts, reason_of

PAGE = Path(__file__).parent / "README.md"

HEAD = """# What `run` refuses, and what `check` refuses

`python -m tests.refusals` writes this page. It lists the places in the code where a job may be refused, which
tests/refusals/sites.py finds in the syntax tree. A refusal is equal if both commands print the same words, name the
same party, and come from the same place in the code; two come from the same numbers in another place.
tests/refusals/test_refusals.py runs a job of each with both commands. Every refusal is equal, with the exceptions
that the table counts.

"""


def render() -> str:
    found = counts()
    refusals = found[""] + sum(found[reason] for reason in EXCEPTIONS)
    rows = [
        ("refusals of `run` before the first message that depends on a row", refusals),
        ("of these, `check` makes too, equal", found[""]),
        *((f"`check` cannot make: {reason}", found[reason]) for reason in EXCEPTIONS),
        ("jobs that both commands refuse in the tests", len(CASES)),
    ]
    table = "| what | count |\n|---|---:|\n" + "".join(f"| {what} | {count} |\n" for what, count in rows)
    outside = "\nThese places refuse something else:\n\n| reason | count |\n|---|---:|\n"
    outside += "".join(f"| {reason} | {found[reason]} |\n" for reason in OUTSIDE)
    listed = "".join(f"\n## {title}\n\n" + _list(reason) for title, reason in _sections())
    return HEAD + table + outside + listed


def _sections() -> list[tuple[str, str]]:
    return [("Equal", ""), *((f"Not in `check`: {reason}", reason) for reason in EXCEPTIONS)]


def _list(reason: str) -> str:
    return "".join(f"- `{site}`\n" for site in sites().values() if reason_of(site) == reason)
