"""Every text that a person reads keeps the rules of plain English that a program can check. No place is exempt."""

from __future__ import annotations

from tests.words.findings import all_findings


def test_every_text_keeps_the_rules() -> None:
    assert [f"{place}: {finding}" for place, finding in all_findings()] == []
