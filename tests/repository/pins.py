"""pyproject.toml and constraints/ as the tests read them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()


@dataclass(frozen=True)
class Pin:
    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> Version:
        (specifier,) = self.requirement.specifier
        assert specifier.operator == "=="
        return Version(specifier.version)

    def is_for(self, environment: dict[str, str]) -> bool:
        return self.requirement.marker is None or self.requirement.marker.evaluate(environment)


def pins(name: str) -> list[Pin]:
    return pins_in((CONSTRAINTS / name).read_text())


def pins_in(text: str) -> list[Pin]:
    """Read lines as pip does: a backslash continues one, and # begins a comment."""
    found = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        requirement, *hashes = re.sub(r"(^|\s)#.*", "", line).split(" --hash=")
        if requirement.strip():
            found.append(Pin(Requirement(requirement), tuple(one.strip() for one in hashes)))
    return found


def listed(extra: str = "dev") -> Iterator[Requirement]:
    """Yield everything that pyproject.toml needs to build and run, and an extra with the extras in it."""
    extras = PROJECT["project"]["optional-dependencies"]
    yield from map(Requirement, PROJECT["build-system"]["requires"])
    yield from map(Requirement, PROJECT["project"]["dependencies"])
    for requirement in map(Requirement, extras[extra]):
        if requirement.name != PROJECT["project"]["name"]:
            yield requirement
        for inner in sorted(requirement.extras) if requirement.name == PROJECT["project"]["name"] else ():
            yield from map(Requirement, extras[inner])


def lower_bound(requirement: Requirement) -> Version | None:
    for specifier in requirement.specifier:
        if specifier.operator in (">=", "=="):
            return Version(specifier.version)
    return None
