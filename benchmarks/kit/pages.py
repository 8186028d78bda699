"""Figures in a document, between two marks."""

from __future__ import annotations

from blindfit.algorithms.errors import ConfigError


def put_between(page: str, begin: str, end: str, text: str) -> str:
    """Return the page with this text between its two marks.

    Raises:
        ConfigError: the page has no such marks.
    """
    before, has_begin, rest = page.partition(begin)
    _, has_end, after = rest.partition(end)
    if not (has_begin and has_end):
        raise ConfigError(f"the page has no place for the figures, between {begin} and {end}")
    return before + begin + "\n" + text + end + after
