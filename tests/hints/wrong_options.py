"""Wrong options of a job, and the advice of the error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.hints.following import Told, with_changes

REMOVE: dict[str, Any] = {}


def option_named_by(told: Told, values: dict[str, Any]) -> str:
    """Return the option that an error names: `the job: taylor: decay does nothing ...` names taylor.decay."""
    path, inner = "", values
    for segment in told.text.removeprefix("the job: ").removeprefix("parties: ").split(": "):
        for part in segment.split()[0].strip("[]").split("."):
            if part not in inner:
                return path
            path, inner = f"{path}.{part}".strip("."), inner[part]
            if not isinstance(inner, dict):
                return path
    return path


def follow(values: dict[str, Any], told: Told, mend: dict[str, Any]) -> dict[str, Any]:
    if mend is not REMOVE:
        return with_changes(values, mend)
    assert "remove" in told.text
    return with_changes(values, {option_named_by(told, values): None})


@dataclass(frozen=True)
class Wrong:
    """
    Attributes:
        changes: wrong values, by option.
        says: text in the code.
        mend: changes that the text advises; by default it advises to remove an option, and names it.
    """

    job: str
    changes: dict[str, Any]
    says: str
    mend: dict[str, Any] = field(default_factory=lambda: REMOVE)
