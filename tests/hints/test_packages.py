"""A hint to install something names a package that can be installed, in a version that Blindfit works with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.hints.test_all_followed import all_sites

ROOT = Path(__file__).parents[2]
INSTALLS = re.compile(r"pip install (?:--[\w-]+ (?:[A-Z]\w+ )?)*'([^']+)'")


def requirements() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    return {requirement.split(";")[0].strip() for requirement in named}


def test_every_hint_to_install_names_a_requirement_of_this_project() -> None:
    hints = [site.text for site in all_sites() if "pip install" in site.text]
    named = [INSTALLS.findall(hint) for hint in hints]
    assert len(hints) >= 4
    assert all(named), hints
    assert {package for packages in named for package in packages} <= requirements()


def test_pages_install_nothing_else() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = {package for page in pages for package in INSTALLS.findall(page.read_text("utf-8"))}
    assert named
    assert named <= requirements()
