"""Find the texts of this project that break the rules."""

from __future__ import annotations

from collections.abc import Iterator

from tests.words.rules import findings_of, opener_of
from tests.words.sources import Text, all_texts
from tests.words.verbs import opens_with_a_verb


def findings_in(text: Text) -> Iterator[str]:
    """Yield what one text breaks of the rules, in words."""
    yield from findings_of(text.prose, text.kind)
    if text.describes is None:
        return
    if word := opener_of(text.prose):
        yield f"opening: {word!r}: open with a verb, or with the noun that this describes"
    elif text.describes == "function" and not opens_with_a_verb(text.prose):
        opening = " ".join(text.prose.split()[:3])
        yield f"verb: {opening!r}: open with a verb (Return, Check ...) or with the formula"


def all_findings() -> Iterator[tuple[str, str]]:
    """Yield the place and the words of each finding."""
    for text in all_texts():
        for finding in findings_in(text):
            yield text.place, finding
