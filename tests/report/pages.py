"""Parts of a written report that tests read, and checks for the page of every system."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from html.parser import HTMLParser

from rich.console import Console

from blindfit.coordinator.report import Written
from blindfit.coordinator.terminal.json_output import Found

HOSTILE = "<script>alert('x')</script>"
LOADS = ("src", "href", "xlink:href", "srcset", "data", "action", "poster", "background")


class Elements(HTMLParser):
    """Every element and attribute, and the text in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data) -> None:
        self.text += data


def check_nothing_is_loaded_or_run(written: str, *, plots: int) -> None:
    elements = Elements(written)
    assert {"script", "link", "img", "iframe", "object", "embed", "base", "form"}.isdisjoint(elements.tags)
    assert elements.tags.count("svg") == plots
    for name, value in elements.attributes:
        assert not name.startswith("on")
        if name in LOADS:
            assert value.startswith("#")
    assert all(target.startswith("#") for target in re.findall(r"url\(\s*['\"]?([^)]*)", written))
    assert "@import" not in written
    # The only addresses that stay: names of XML's namespaces.
    addresses = [value for name, value in elements.attributes if "//" in value and not name.startswith("xmlns")]
    assert addresses == []
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in elements.attributes


def check_it_ends_with_the_privacy_statement(written: str) -> None:
    start = written.index('id="privacy-statement"')
    assert re.fullmatch(r".*</dl>\s*</section>\s*</main>\s*</body>\s*</html>\s*", written[start:], re.DOTALL)
    assert written.index("The job, with every default") < start


def check_nothing_is_kept_of_models(written: Written, secrets: Iterable[str]) -> None:
    """Check that neither file has parts of a model, or anything that only its owner may know."""
    assert written.content["models"] == written.content["party_reports"] == {}
    for path in (written.json_path, written.html_path):
        text = path.read_text("utf-8")
        for secret in secrets:
            assert secret not in text


def on_screen(written: Written, width: int) -> str:
    """Return what the terminal shows of the report."""
    screen = io.StringIO()
    Found({}, written.summarise()).show(Console(file=screen, width=width))
    return screen.getvalue()
