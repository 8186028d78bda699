"""What the report of each protocol adds to what all of them have: a package for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from algorithms.errors import DataError
from coordinator.report import dp_lr, label_regression, vertical, walr
from coordinator.report.sections import Section

Report = Mapping[str, Any]


class Kind(Protocol):
    """Each takes the content of report.json, unless it says something else; DataError names a figure that is wrong."""

    def privacy_statement(self, report: Report, /) -> list[Section]: ...

    def render(self, report: Report, /) -> str:
        """The page."""
        ...

    def summary(self, report: Report, /) -> Iterable[tuple[str, str]]:
        """The lines of the terminal."""
        ...

    def cautions(self, report: Report, /) -> list[str]: ...

    def in_short(self, report: Report, /) -> str:
        """The privacy statement in two sentences."""
        ...

    def owners(self, report: Report, /) -> list[str]:
        """Who has the model, or a part of it."""
        ...

    def check_model(self, model: Mapping[str, Any], /) -> None:
        """Takes what a model.json holds."""
        ...

    def members_in(self, party_report: Mapping[str, Any], /) -> Mapping[str, str]:
        """Name and role of the others that a party's own report names."""
        ...


KINDS: Mapping[str, Kind] = {"walr": walr, "label-dp": label_regression, "dp-lr": dp_lr, "taylor": vertical}


def kind_of(protocol: str) -> Kind:
    try:
        return KINDS[protocol]
    except KeyError:
        raise DataError(f"there is no report of a job of the protocol {protocol!r}") from None
