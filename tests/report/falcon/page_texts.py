"""The text of a report's page."""

from __future__ import annotations

from tests.report.pages import (
    Elements,
)


def text_of(page: str) -> str:
    return " ".join(Elements(page).text.split())
