"""Why tables that are all on this machine have no row in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.compute as pc

from blindfit.algorithms.errors import DataError

#: What ids may differ in, and how they look without it. White space around them counts nowhere.
DIFFERENCES: Mapping[str, Callable[[Any], Any]] = {
    "capitals": pc.utf8_lower,
    "white space within": lambda ids: pc.replace_substring_regex(ids, r"\s+", ""),
    "leading letters": lambda ids: pc.replace_substring_regex(ids, r"^\D+", ""),
    "leading zeros": lambda ids: pc.utf8_ltrim(ids, "0"),
}
ALL = "all of these"


def none_in_common(ids: Mapping[str, Any]) -> DataError:
    """
    Args:
        ids: by party, as they are compared.
    """
    said = "0 common rows: no id is in the tables of all parties"
    for what, without in _ways().items():
        alike = len(set.intersection(*(set(without(own).to_pylist()) - {""} for own in ids.values())))
        if alike:
            return DataError(f"{said}, and {alike:,} would be but for {what}", hint="write ids alike in every table")
    return DataError(said, hint="are they ids of the same kind, of the same people?")


def _ways() -> Mapping[str, Callable[[Any], Any]]:
    def every(ids: Any) -> Any:
        for without in DIFFERENCES.values():
            ids = without(ids)
        return ids

    return {**DIFFERENCES, ALL: every}
