"""A system has one title, which stands next to its name in reports, help, explanations and documents."""

from __future__ import annotations

import re
from pathlib import Path

from blindfit.coordinator.explain.options import all_options
from blindfit.coordinator.report.page import render_template
from blindfit.coordinator.systems import VIEWS
from blindfit.coordinator.terminal.titles import TITLES, with_title
from tests.each_case import each_case

ROOT = Path(__file__).parents[2]
SYSTEMS = [name for name in VIEWS if name not in {"predict", "evaluate"}]


def test_each_system_has_a_title() -> None:
    assert set(TITLES) == set(SYSTEMS)
    assert with_title("walr") == "walr (One noisy sum)"
    assert with_title("predict") == "predict"


@each_case("path", sorted((ROOT / "coordinator").rglob("*.j2")), ids=lambda path: path.name)
def test_every_template_that_names_a_system_shows_its_title(path: Path) -> None:
    named = re.findall(r"\{\{ *((?:report\.)?protocol[^}]*?) *\}\}", path.read_text())
    assert [text for text in named if "with_title" not in text] == []


def test_the_title_of_the_job_files_option() -> None:
    protocol = next(option for option in all_options() if option.path == "protocol")
    assert [name for name in TITLES if with_title(name) not in protocol.text] == []


@each_case("system", SYSTEMS, ids=str)
def test_the_documents_use_the_title(system: str) -> None:
    title = TITLES[system]
    explained = (ROOT / "docs/explanation" / f"{system.replace('-', '_')}.md").read_text()
    assert title.lower() in " ".join(explained.split()[:80]).lower()
    assert title.lower() in (ROOT / "README.md").read_text().lower()


def test_a_page_has_the_title() -> None:
    plan = {"facts": [], "advice": [], "plots": [], "tables": []}
    page = render_template("plan/page.html.j2", title="job", protocol="label-dp", version="1", plan=plan)
    assert "System label-dp (Noisy labels)" in page
