"""SECURITY.md names only addresses that exist."""

from __future__ import annotations

import re
import tomllib

from blindfit import __version__
from tests.command import ROOT


def test_it_names_this_version_and_the_pythons_that_are_tested() -> None:
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    tested = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert f"Version {__version__} is not released yet" in page
    assert f"Python {tested[0]} to {tested[-1]}" in page


def test_it_names_what_there_is() -> None:
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    people = [*project.get("authors", ()), *project.get("maintainers", ())]
    known = {person["email"] for person in people if "email" in person}
    assert set(re.findall(r"[\w.+-]+@[\w.-]+", page)) <= known
    if not known:
        assert "metadata" not in page
        assert "has no address of its own" in page
