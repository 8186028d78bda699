"""Texts that other people wrote, as a notebook shows them."""

from __future__ import annotations

from rich.text import Text

from blindfit.coordinator.preflight.findings import Finding
from blindfit.coordinator.python.calls import Findings
from blindfit.coordinator.terminal.html import render_html, render_text

HOSTILE = "<script>alert(1)</script> [bold]x[/] \x1b[31mred\x1b[0m &amp;"


def test_no_text_is_markup_of_a_page_or_of_a_terminal() -> None:
    for shown in (HOSTILE, Text(HOSTILE)):
        page = render_html([shown])
        assert "<script>" not in page
        assert "&lt;script&gt;" in page
        assert "[bold]x[/]" in page
        assert "\x1b" not in page
        assert "\x1b" not in render_text([shown])


def test_findings_are_a_page_a_text_and_a_sequence() -> None:
    found = Findings([Finding("ok", "rows", HOSTILE), Finding("refuses", "<b>", "no")])
    assert "<script>" not in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert repr(found).splitlines()[-1] == "refuses: <b>: no"
    assert found.refuses
    assert len(found[:1]) == 1
    assert not Findings(found[:1]).refuses


def test_a_long_line_is_not_broken() -> None:
    path = "/" + "a" * 300
    assert path in render_text([path])
