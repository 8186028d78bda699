"""Every page of the documentation has its place, and every link leads somewhere."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import blindfit
import blindfit.label_mechanisms
import blindfit.paillier
from blindfit.algorithms import errors
from blindfit.algorithms.errors import BlindfitError, PeerError, PrivacyError, ProtocolError, TransportError
from tests.each_case import each_case
from tests.site.links import DOCS, ROOT, broken, pages

ERRORS = (DOCS / "reference/errors.md").read_text()
SECTIONS = ["start", "tutorials", "guides", "reference", "explanation", "evidence", "project"]


@each_case("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    found = list(broken(page))
    assert not found, "; ".join(found)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One\n\n## The [align] table\n\n## One\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n[a](other.md) [b](other.md#the-align-table) [c](other.md#one-1) [d](#page) `[e](none.md)`\n"
        "```text\n[f](none.md)\n```\n[g](none.md) [h](other.md#two) [i](#none) ![j](none.svg) [k](https://example.org)\n"
    )
    assert list(broken(page)) == ["none.md", "other.md#two", "#none", "none.svg"]


# --- tables of contents -----------------------------------------------------------------------------------


def listed(index: Path) -> list[Path]:
    """Return the pages that the toctrees of a page list."""
    found = []
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", index.read_text(), re.M | re.S):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                found += [path for suffix in (".md", ".ipynb") if (path := index.parent / f"{line}{suffix}").exists()]
    return found


def test_every_page_stands_once_in_a_table_of_contents() -> None:
    times = Counter(child for page in pages(DOCS) if page.name == "index.md" for child in listed(page))
    assert times == dict.fromkeys({*pages(DOCS)} - {DOCS / "index.md"}, 1)


def test_every_page_belongs_to_one_section() -> None:
    assert listed(DOCS / "index.md") == [DOCS / section / "index.md" for section in SECTIONS]
    assert {page.relative_to(DOCS).parts[0] for page in pages(DOCS)} == {"index.md", *SECTIONS}


# --- the network ------------------------------------------------------------------------------------------


@each_case("path", [DOCS / "conf.py", *(DOCS / "_static").iterdir()], ids=lambda path: path.name)
def test_the_site_loads_nothing_from_the_network(path: Path) -> None:
    assert "://" not in path.read_text()


# --- the Python API ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "module"),
    [
        ("python_api", blindfit),
        ("python_paillier", blindfit.paillier),
        ("python_label_mechanisms", blindfit.label_mechanisms),
    ],
)
def test_every_public_name_stands_once_in_the_reference(page: str, module: object) -> None:
    text = (DOCS / f"reference/{page}.md").read_text()
    names = re.findall(rf"^\.\. auto\w+:: {module.__name__}\.(\w+)$", text, re.M)
    assert sorted(names) == sorted(module.__all__)


# --- errors -----------------------------------------------------------------------------------------------


def test_every_error_has_a_row() -> None:
    rows = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in ERRORS.splitlines() if line.startswith("| `")]
    groups = {BlindfitError, ProtocolError, PeerError, PrivacyError, TransportError}
    assert sorted(name for row in rows for name in row) == sorted(
        [one.__name__ for one in tree_below(BlindfitError) - groups if one.__module__ == errors.__name__] + ["Stopped"]
    )


def tree_below(root: type[BlindfitError]) -> set[type[BlindfitError]]:
    return {root}.union(*map(tree_below, root.__subclasses__()))
