"""What a terminal shows, as HTML for a notebook."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import RenderableType

from blindfit.coordinator.terminal.terminal import Terminal

WIDTH = 120
PRE = '<pre style="white-space:pre-wrap;line-height:normal;font-family:monospace">{code}</pre>'


def render_html(shown: Iterable[RenderableType]) -> str:
    """Return what a command shows as one element of HTML, with its texts escaped."""
    console = Terminal(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False, emoji=False)
    for each in shown:
        console.print(each, highlight=False, markup=False, crop=False)
    return console.export_html(inline_styles=True, code_format=PRE)
