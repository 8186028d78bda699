"""The report of a protocol, by its name."""

from __future__ import annotations

from typing import Any

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.report.kind import Kind
from blindfit.coordinator.systems import VIEWS, view


def kind_of(protocol: str) -> Kind[Any]:
    """Raises DataError: there is none."""
    kind = view(protocol).report if protocol in VIEWS else None
    if kind is None:
        raise DataError(f"there is no report of a job of the protocol {protocol!r}")
    return kind
