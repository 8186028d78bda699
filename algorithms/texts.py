"""Texts of other people, in a form that a line of a terminal, a log or an error may have."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text on one line, without control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def cut(text: str, most: int) -> str:
    """Return the text, or its beginning and the number of characters left out."""
    return text if len(text) <= most else f"{text[:most]} ... ({len(text) - most} characters left out)"
