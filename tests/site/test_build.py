"""The check of the built pages, on a site of three pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.site.scripts import script

WHOLE = '<h1 id="top">Title</h1><a href="part/two.html#end">two</a><img src="picture.svg">'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "part").mkdir()
    (tmp_path / "picture.svg").write_text("<svg/>")
    (tmp_path / "index.html").write_text(WHOLE)
    (tmp_path / "part/two.html").write_text(
        '<p id="end"></p><a href="../index.html#top">back</a><a href="#end">end</a>'
    )
    return tmp_path


def test_a_whole_site_has_no_broken_links(site: Path) -> None:
    assert list(script("build_site").broken_links(site)) == []


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        ('<a href="three.html">', "index.html: three.html leads to no file"),
        ('<a href="part/two.html#start">', "index.html: part/two.html#start leads to no anchor"),
        ('<a href="#bottom">', "index.html: #bottom leads to no anchor"),
        ('<img src="none.png">', "index.html: none.png leads to no file"),
        (
            '<script src="https://cdn.example.org/a.js"></script>',
            "index.html: loads https://cdn.example.org/a.js from the network",
        ),
        (
            '<link rel="stylesheet" href="//cdn.example.org/a.css">',
            "index.html: loads //cdn.example.org/a.css from the network",
        ),
    ],
)
def test_each_kind_of_broken_link_is_found(site: Path, part: str, complaint: str) -> None:
    (site / "index.html").write_text(WHOLE + part)
    assert list(script("build_site").broken_links(site)) == [complaint]


def test_a_link_to_another_site_may_stand(site: Path) -> None:
    (site / "index.html").write_text(WHOLE + '<a href="https://example.org/paper.pdf">')
    assert list(script("build_site").broken_links(site)) == []
