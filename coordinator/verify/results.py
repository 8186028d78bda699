"""Results of the checks of a release file: each result is a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class NotCovered:
    """Result of a check if nothing in the file shows that a part of the claim is true."""

    what: str


@dataclass(frozen=True)
class Result:
    """
    Attributes:
        why: reason of the failure; empty if the check passed.
        not_covered: part of the claim that the file does not show; empty if the check covers the whole claim.
    """

    name: str
    why: str = ""
    not_covered: str = ""


@dataclass(frozen=True)
class Verified:
    results: list[Result]
    fingerprints: dict[str, str] = field(default_factory=dict)  # SHA-256 of the certificates in the file
    model: Mapping[str, Any] = field(default_factory=dict)
    not_for: tuple[str, ...] = ()  # servers to which the noisy sum would reveal rows that they could not read

    @property
    def passed(self) -> bool:
        """True if no check failed. A result that is not covered does not fail."""
        return not any(result.why for result in self.results)

    @property
    def not_covered(self) -> list[Result]:
        return [result for result in self.results if result.not_covered]
