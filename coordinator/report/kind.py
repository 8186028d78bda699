"""The part of a report that is special to one system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rich.console import RenderableType

from blindfit.coordinator.report.sections import Section

Report = Mapping[str, Any]


class Owned(Protocol):
    """Figures of a report."""

    @property
    def owners(self) -> list[str]:
        """Parties that have the model, or a part of it."""
        ...


F = TypeVar("F", bound=Owned)
F_contra = TypeVar("F_contra", bound=Owned, contravariant=True)


class Statement(Protocol[F_contra]):
    """The module of a system's privacy statement, in short and in full."""

    def two_sentences(self, facts: F_contra, /) -> str: ...

    def privacy_statement(self, report: Report, /) -> list[Section]: ...


def _nobody(_party_report: Report) -> Mapping[str, str]:
    return {}


def _nowhere(_report: Report) -> Iterable[tuple[str, str]]:
    return ()


@dataclass(frozen=True)
class Kind(Generic[F]):
    """Functions that take the content of report.json, or the figures F that `figures_of` reads from it.

    All but `members_in` raise DataError, which names a missing or wrong figure.

    Args:
        render: function that returns the page.
        summary: function that returns the lines of the terminal.
        check_model: function that takes the content of a model.json; None if such a job leaves no model.
        members_in: function that takes a party's own report and returns name and role of the other parties in it.
        places: function that returns name and place of the job's files that are not models.
    """

    figures_of: Callable[[Report], F]
    cautions_of: Callable[[F], list[str]]
    statement: Statement[F]
    render: Callable[[Report], str]
    summary: Callable[[Report], Iterable[tuple[str, str]]]
    check_model: Callable[[Mapping[str, Any]], object] | None
    members_in: Callable[[Report], Mapping[str, str]] = _nobody
    places: Callable[[Report], Iterable[tuple[str, str]]] = _nowhere

    def cautions(self, report: Report) -> list[str]:
        return self.cautions_of(self.figures_of(report))

    def in_short(self, report: Report) -> str:
        return self.statement.two_sentences(self.figures_of(report))

    def owners(self, report: Report) -> list[str]:
        return self.figures_of(report).owners


class Written(Protocol):
    """A report in its folder."""

    @property
    def json_path(self) -> Path: ...

    @property
    def content(self) -> Mapping[str, Any]: ...

    def summarise(self) -> Iterator[RenderableType]:
        """Yield the report in short."""
        ...
