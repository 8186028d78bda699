"""What every sink of scores has in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from blindfit.parties.data.origin import Origin

CHOOSE = 'set scores.if_exists = "append" or "replace", or name another in scores.url'
SCORES, OPTION = "scores", "scores.url"  # what errors call it, and the option that names it


class Sink(Protocol):
    """Where a table of ids (text) and numbers goes; no number is missing."""

    @property
    def origin(self) -> Origin: ...

    def check(self, names: Sequence[str]) -> None:
        """Raise DataError: a table with these columns would be refused."""

    def write(self, table: Any) -> None:
        """Raise DataError: it was refused, or could not be written; then nothing has changed."""


def require_columns(present: Sequence[str], names: Sequence[str], origin: Origin) -> None:
    if list(present) != list(names):
        raise origin.error(
            f"its columns are {', '.join(present)}, not {', '.join(names)}", hint="name another in `scores.url`"
        )
