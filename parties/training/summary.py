"""What of a party's report the coordinator may see."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from blindfit.algorithms.messages import ParameterValue


def told(report: Mapping[str, Any], parts: Sequence[str], kept_here: Collection[str] = ()) -> dict[str, ParameterValue]:
    """The tables of these names, flat: {"rows.trained": 80}.

    Args:
        kept_here: entries that stay at the party.
    """
    return {
        f"{part}.{name}": tuple(value) if isinstance(value, list) else value
        for part in parts
        for name, value in (report[part] or {}).items()
        if name not in kept_here and value is not None
    }
