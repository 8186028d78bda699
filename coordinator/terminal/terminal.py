"""The terminal. Other people write many of the printed texts, and must not control it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from blindfit.algorithms.texts import printable


class Terminal(Console):
    """A console that prints no control character of a text, only its own, which are separate segments."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Remove control characters here already, so that a table measures what it prints."""
        return super().render_str(_without_controls(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        return map(_printable, super().render(renderable, options))


def terminal(*, stderr: bool = False, quiet: bool = False) -> Terminal:
    # A notebook sets FORCE_COLOR. Rich would then take any pipe for a terminal and draw progress into it.
    is_one = (sys.stderr if stderr else sys.stdout).isatty() and not quiet
    draws_nothing = importlib.util.find_spec("ipywidgets") is None  # in a notebook rich needs them
    return Terminal(
        stderr=stderr,
        quiet=quiet,
        force_terminal=is_one,
        force_jupyter=False if draws_nothing else None,
        emoji=False,  # a path may hold :smile:
    )


def line(markup: str) -> Text:
    """Return a text that stays on one line of any length. Escape texts of other people."""
    text = Text.from_markup(markup, emoji=False)
    text.no_wrap, text.overflow = True, "ignore"
    return text


def _printable(segment: Segment) -> Segment:
    return segment if segment.control else segment._replace(text=_without_controls(segment.text))


def _without_controls(text: str) -> str:
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a text that another person may have written.

    Later lines are indented: only ours start a line.
    """
    for number, line in enumerate(text.splitlines()):
        yield ("    " if number else "") + printable(line)
