"""A defence between what is sent and anyone who would read rows in it: one line of a page each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Defence:
    name: str
    is_on: bool
    text: str

    @property
    def sentence(self) -> str:
        return f"{self.name}{'' if self.is_on else ' (off)'}: {self.text}"


def names_of_those_on(defences: Iterable[Defence]) -> str:
    """Return the names of the defences that are on: a, b and c."""
    names = [defence.name[:1].lower() + defence.name[1:] for defence in defences if defence.is_on]
    return ", ".join(names[:-1]) + f" and {names[-1]}"
