"""The reason why tables on this machine have no row in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.compute as pc

from blindfit.algorithms.errors import DataError

#: Possible differences of ids, and a function that removes each. White space around ids never counts.
DIFFERENCES: Mapping[str, Callable[[Any], Any]] = {
    "capitals": pc.utf8_lower,
    "white space within": lambda ids: pc.replace_substring_regex(ids, r"\s+", ""),
    "leading letters": lambda ids: pc.replace_substring_regex(ids, r"^\D+", ""),
    "leading zeros": lambda ids: pc.utf8_ltrim(ids, "0"),
}
ALL = "all of these"


def none_in_common(ids: Mapping[str, Any]) -> DataError:
    """Return an error that names the likely difference.

    Args:
        ids: ids by party, in the form in which they are compared.
    """
    said = "0 common rows: no id is in the tables of all parties"
    for what, without in _ways().items():
        alike = len(set.intersection(*(set(without(own).to_pylist()) - {""} for own in ids.values())))
        if alike:
            return DataError(
                f"{said}; {alike:,} would be in all tables without {what}",
                hint="write ids in the same form in every table",
            )
    return DataError(said, hint="check that the ids are of the same kind and the same people")


def _ways() -> Mapping[str, Callable[[Any], Any]]:
    def every(ids: Any) -> Any:
        for without in DIFFERENCES.values():
            ids = without(ids)
        return ids

    return {**DIFFERENCES, ALL: every}
