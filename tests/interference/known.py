"""What others can tell today and should not: each of these is expected to fail until it is mended, and then not to.

The line goes with the change that mends it; a test that passes in spite of a line here fails.
"""

from __future__ import annotations

from tests.interference.neighbours import Pair

_ALL = ("*",)

LEAKS: dict[str, tuple[tuple[str, ...], str]] = {}
"""By pair: which observers, and why."""

FIELDS: tuple[str, ...] = ()
"""Which of them random settings meet again and again, and disregard."""

NOT_RANDOM: dict[str, str] = {}
"""By system: ids that a second run on the same data gives again."""


def leak(pair: Pair, observer: str) -> str:
    """Why the pair can be told apart today; empty where it cannot."""
    observers, reason = LEAKS.get(pair.id, ((), ""))
    return reason if observers == _ALL or observer in observers else ""
