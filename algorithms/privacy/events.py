"""A release as a value: what the ledger stores and the accountant composes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from algorithms.errors import DataError, UnsupportedEvent

Mechanism = Literal["gaussian", "laplace"]

LEAST_MULTIPLIER, MOST_MULTIPLIER = 1e-6, 1e12
"""Past these a release has no privacy or no content, and the accountant's arithmetic no meaning."""


@dataclass(frozen=True)
class ReleaseEvent:
    """One release of a vector with independent noise on each coordinate.

    Args:
        mechanism: the law of the noise.
        noise_multiplier: the noise's scale over the sensitivity: for `gaussian` the standard deviation over
            the L2 sensitivity, for `laplace` the scale b over the L1 sensitivity.
        neighbours: what may differ between two neighbouring data sets, such as "one label changes, N public".
            Only releases under the same words compose.

    Raises:
        UnsupportedEvent: the accountant has no bound for such a release.
    """

    mechanism: Mechanism
    noise_multiplier: float
    neighbours: str

    def __post_init__(self) -> None:
        if self.mechanism not in get_args(Mechanism):
            raise UnsupportedEvent(f"no accountant composes a release by {self.mechanism!r}")
        if not LEAST_MULTIPLIER <= self.noise_multiplier <= MOST_MULTIPLIER:
            raise UnsupportedEvent(
                f"a noise multiplier must lie in [{LEAST_MULTIPLIER:g}, {MOST_MULTIPLIER:g}], "
                f"not {self.noise_multiplier!r}"
            )
        if not self.neighbours:
            raise UnsupportedEvent("a release must say which data sets are neighbours")

    def canonical(self) -> str:
        """The one text of this event; equal events, and only those, have equal texts."""
        # The neighbours stand last because they alone may contain a slash.
        return f"{self.mechanism}/{float(self.noise_multiplier).hex()}/{self.neighbours}"

    @classmethod
    def from_canonical(cls, text: str) -> ReleaseEvent:
        """The event of a canonical text.

        Raises:
            DataError: the text is not what `canonical` writes.
            UnsupportedEvent: it names a release that cannot be composed.
        """
        try:
            mechanism, noise_multiplier, neighbours = text.split("/", 2)
            event = cls(cast(Mechanism, mechanism), float.fromhex(noise_multiplier), neighbours)
        except (ValueError, OverflowError) as error:
            raise DataError(f"not a release event: {text!r}") from error
        if event.canonical() != text:
            raise DataError(f"not the canonical form of a release event: {text!r}")
        return event
