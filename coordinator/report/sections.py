"""The privacy statement that ends every report, section by section."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

TEXT_WIDTH = 100


@dataclass(frozen=True)
class Section:
    topic: str  # name for programs
    title: str
    sentences: tuple[str, ...]


def statement_text(sections: Iterable[Section]) -> str:
    """Return the sections as plain text for a terminal."""
    indent = "  "
    return "\n".join(
        section.title
        + "\n"
        + textwrap.fill(" ".join(section.sentences), TEXT_WIDTH, initial_indent=indent, subsequent_indent=indent)
        for section in sections
    )
