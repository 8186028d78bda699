"""SECURITY.md sends nobody to an address that is not there."""

from __future__ import annotations

import re
import tomllib

from tests.command import ROOT


def test_it_names_what_there_is() -> None:
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    people = [*project.get("authors", ()), *project.get("maintainers", ())]
    known = {person["email"] for person in people if "email" in person}
    assert set(re.findall(r"[\w.+-]+@[\w.-]+", page)) <= known
    if not known:
        assert "metadata" not in page
        assert "has no address of its own" in page
