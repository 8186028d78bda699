"""A hint to install something names an installable package, in a version that Blindfit works with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import blindfit
from tests.hints.test_all_followed import all_sites

ROOT = Path(__file__).parents[2]
INSTALLS = re.compile(r"pip install (?:--[\w-]+ (?:[A-Z]\w+ )?)*'([^']+)'")
FOR_DEVELOPERS = {"dev", "docs"}


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def extras() -> dict[str, list[str]]:
    found: dict[str, list[str]] = project()["optional-dependencies"]
    return found


def requirements() -> set[str]:
    named = [*project()["dependencies"], *(one for packages in extras().values() for one in packages)]
    return {requirement.split(";")[0].strip() for requirement in named}


def test_every_hint_to_install_names_a_requirement_of_this_project() -> None:
    hints = [site.text for site in all_sites() if "pip install" in site.text]
    named = [INSTALLS.findall(hint) for hint in hints]
    assert len(hints) >= 4
    assert all(named), hints
    assert {package for packages in named for package in packages} <= requirements()


def test_pages_install_nothing_else() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = {package for page in pages for package in INSTALLS.findall(page.read_text("utf-8"))}
    assert named
    assert named <= requirements() | {f".[{extra}]" for extra in extras()}


def test_the_page_about_installing_lists_every_extra() -> None:
    page = (ROOT / "docs/start/install.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (.*?) \|", page, re.M)
    listed = {extra: re.findall(r"`([^`]+)`", packages) for extra, packages in rows}
    assert listed == {extra: packages for extra, packages in extras().items() if extra not in FOR_DEVELOPERS}
    assert f"blindfit-{blindfit.__version__}-py3-none-any.whl" in page
