"""What the report of one protocol adds to what all of them have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rich.console import RenderableType

from blindfit.coordinator.report.sections import Section

Report = Mapping[str, Any]
F = TypeVar("F")


def _nowhere(_report: Report) -> Iterable[tuple[str, str]]:
    return ()


@dataclass(frozen=True)
class Kind(Generic[F]):
    """Functions that take the content of report.json, or the figures F that `figures_of` reads from it.

    All but `members_in` raise DataError, which names a figure that is missing or wrong.

    Args:
        two_sentences: the privacy statement in short.
        render: the page.
        summary: the lines of the terminal.
        owners_of: who has the model, or a part of it.
        check_model: takes what a model.json holds; None where such a job leaves none.
        members_in: takes a party's own report; name and role of the others that it names.
        places: of what else the job left than models: what it is called, and where it is.
    """

    figures_of: Callable[[Report], F]
    cautions_of: Callable[[F], list[str]]
    two_sentences: Callable[[F], str]
    privacy_statement: Callable[[Report], list[Section]]
    render: Callable[[Report], str]
    summary: Callable[[Report], Iterable[tuple[str, str]]]
    owners_of: Callable[[F], list[str]]
    check_model: Callable[[Mapping[str, Any]], object] | None
    members_in: Callable[[Report], Mapping[str, str]]
    places: Callable[[Report], Iterable[tuple[str, str]]] = _nowhere

    def cautions(self, report: Report) -> list[str]:
        return self.cautions_of(self.figures_of(report))

    def in_short(self, report: Report) -> str:
        return self.two_sentences(self.figures_of(report))

    def owners(self, report: Report) -> list[str]:
        return self.owners_of(self.figures_of(report))


class Written(Protocol):
    """A report that is on the disk."""

    @property
    def json_path(self) -> Path: ...

    @property
    def content(self) -> Mapping[str, Any]: ...

    def shown(self) -> Iterator[RenderableType]:
        """Yield the report in short."""
        ...
