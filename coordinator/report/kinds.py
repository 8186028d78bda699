"""The reports of all protocols, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.report import dp_lr, label_regression, vertical, walr
from blindfit.coordinator.report.kind import Kind

KINDS: Mapping[str, Kind[Any]] = {
    "walr": walr.KIND,
    "label-dp": label_regression.KIND,
    "dp-lr": dp_lr.KIND,
    "taylor": vertical.KIND,
}


def kind_of(protocol: str) -> Kind[Any]:
    try:
        return KINDS[protocol]
    except KeyError:
        raise DataError(f"there is no report of a job of the protocol {protocol!r}") from None
