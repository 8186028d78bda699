"""Interface of every sink of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from blindfit.parties.data.origin import Origin

CHOOSE = 'set scores.if_exists = "append" or "replace", or name another in scores.url'
SCORES, OPTION = "scores", "scores.url"  # their name in errors, and the option that names the sink


class Sink(Protocol):
    """Destination of a table of ids (text) and numbers; no number is missing."""

    @property
    def origin(self) -> Origin: ...

    def check(self, names: Sequence[str]) -> None:
        """Raise DataError if a table with these columns would be refused."""

    def write(self, table: Any) -> None:
        """Write the table. Raise DataError if it is refused or cannot be written; then nothing has changed."""


def require_columns(present: Sequence[str], names: Sequence[str], origin: Origin) -> None:
    if list(present) != list(names):
        raise origin.error(
            f"its columns are {', '.join(present)}, not {', '.join(names)}", hint="name another in `scores.url`"
        )
