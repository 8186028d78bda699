"""Numbers as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence

from blindfit.algorithms.texts import printable


def count(number: int) -> str:
    return f"{number:,}"


def quantity(number: int, noun: str, nouns: str = "") -> str:
    """Return "3 rows". `nouns` is the plural if it is not the noun and an s."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def figure(number: float) -> str:
    return f"{number:.4g}"


def percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.2g} s" if seconds >= 0.1 else f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def size(n_bytes: int) -> str:
    amount, unit = float(n_bytes), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.3g} {unit}" if unit != "B" else f"{n_bytes} B"


def capitalise(text: str) -> str:
    """Return the text with a large first letter. str.capitalize would make the rest small."""
    return text[:1].upper() + text[1:]


def join_names(names: Sequence[str], word: str = "and", *, most: int | None = None) -> str:
    """Return "a, b and c"; for more than `most` names, "a, b and 3 more"."""
    if most is not None and len(names) > most:
        names, word = [*names[:most], f"{len(names) - most:,} more"], "and"
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last


MAX_TEXT_CHARS = 300


def plain(text: str) -> str:
    """Return a text on one line, printable, and short enough for a page."""
    shown = printable(text)
    return shown if len(shown) <= MAX_TEXT_CHARS else shown[: MAX_TEXT_CHARS - 1] + "…"
