"""Texts that somebody else wrote, as a line of a terminal, a log or an error may have them."""

from __future__ import annotations


def printable(text: str) -> str:
    """On one line, without control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def cut(text: str, most: int) -> str:
    """Return the text, or its beginning and how much was left out."""
    return text if len(text) <= most else f"{text[:most]} ... ({len(text) - most} characters left out)"
