"""Terminal output as HTML for a notebook, and as text."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import RenderableType

from blindfit.coordinator.terminal.terminal import Terminal

WIDTH = 120
PRE = '<pre style="white-space:pre-wrap;line-height:normal;font-family:monospace">{code}</pre>'


def render_html(shown: Iterable[RenderableType]) -> str:
    """Return a command's output as one element of HTML, with its texts escaped."""
    return _record(shown).export_html(inline_styles=True, code_format=PRE)


def render_text(shown: Iterable[RenderableType]) -> str:
    """Return a command's output as lines without colours."""
    return "\n".join(line.rstrip() for line in _record(shown).export_text().splitlines())


def _record(shown: Iterable[RenderableType]) -> Terminal:
    console = Terminal(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False, emoji=False)
    for each in shown:
        console.print(each, highlight=False, markup=False, crop=False, soft_wrap=isinstance(each, str))
    return console
