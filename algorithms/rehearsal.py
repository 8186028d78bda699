"""The sentence that marks everything that a rehearsal writes, and the field of its warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIELD = "rehearsal"  # of a report, a model and a column of scores
WARNINGS = "warnings"  # of a report
NOTHING = "nothing was charged, nothing may be released from it"
STAMP = f"{FIELD}: {NOTHING}"


def stamp_of(stored: object) -> str:
    """Return the stamp of a JSON document that a rehearsal wrote; "" of any other."""
    return STAMP if isinstance(stored, Mapping) and stored.get(FIELD) else ""


def with_stamp(document: Mapping[str, Any], stamp: str = STAMP) -> dict[str, Any]:
    """Return the document with a stamp as its first field; without one if the stamp is empty."""
    return {FIELD: stamp, **document} if stamp else dict(document)
