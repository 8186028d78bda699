"""The page of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blindfit.coordinator.report.page import render_template
from blindfit.version import __version__


def render_evaluation(
    report: Mapping[str, Any], facts: Sequence[tuple[str, str]], figures: Sequence[tuple[str, str]]
) -> str:
    """Return the HTML page.

    Args:
        facts, figures: names and values.
    """
    parts = {"report": report, "facts": facts, "figures": figures}
    return render_template("evaluate/page.html.j2", title=report["name"], version=__version__, **parts)
