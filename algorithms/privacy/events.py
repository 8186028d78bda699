"""A release as a value, which the ledger stores and the accountant composes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast, get_args

from blindfit.algorithms.errors import DataError, UnsupportedEvent

Mechanism = Literal["gaussian", "laplace", "pure", "sampled-gaussian"]

LEAST_MULTIPLIER, MOST_MULTIPLIER = 1e-6, 1e12
"""Outside this range a release has no privacy or no content, and the accountant's arithmetic has no meaning."""

MOST_SAMPLED_RELEASES = 100_000
"""Releases of one run over samples. The time to compose a run grows with their number."""


@dataclass(frozen=True)
class Sampling:
    """Several Gaussian releases; each is a sum over a fresh Poisson sample of the rows.

    Args:
        batch_fraction: the probability of each row.
        sensitivity: sensitivity of the sum over one row's largest norm: 2 if a neighbour replaces a row, otherwise 1.
    """

    batch_fraction: float
    n_releases: int
    sensitivity: int

    def __post_init__(self) -> None:
        if not (0 < self.batch_fraction < 1 and self.sensitivity in (1, 2)):
            raise UnsupportedEvent("a sampled release needs a fraction between 0 and 1, and a sensitivity of 1 or 2")
        if not 1 <= self.n_releases <= MOST_SAMPLED_RELEASES:
            raise UnsupportedEvent(f"a run has 1 to {MOST_SAMPLED_RELEASES:,} sampled releases")

    def canonical(self) -> str:
        return f"{float(self.batch_fraction).hex()}*{self.n_releases}*{self.sensitivity}"

    @classmethod
    def from_canonical(cls, text: str) -> Sampling:
        fraction, n_releases, sensitivity = text.split("*")
        return cls(float.fromhex(fraction), int(n_releases), int(sensitivity))


@dataclass(frozen=True)
class ReleaseEvent:
    """One release: a vector with independent noise on each coordinate, or a result of any epsilon-DP mechanism.

    Args:
        mechanism: the law of the noise.
        noise_multiplier: the noise's scale over the sensitivity. For `gaussian`: the standard deviation over the L2
            sensitivity. For `laplace`: the scale b over the L1 sensitivity. For `pure`, whose law is not known further:
            that of the Laplace release with the same epsilon, 1/epsilon. For `sampled-gaussian`, many releases in one:
            that of each release.
        neighbours: the difference between two neighbouring data sets, such as "one label changes, N public". Releases
            with other words compose if the accountant knows what they imply.
        sampling: the samples of `sampled-gaussian`; None for other mechanisms.

    Raises:
        UnsupportedEvent: the accountant has no bound for such a release.
    """

    mechanism: Mechanism
    noise_multiplier: float
    neighbours: str
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        if self.mechanism not in get_args(Mechanism):
            raise UnsupportedEvent(f"no accountant composes a release by {self.mechanism!r}")
        if not LEAST_MULTIPLIER <= self.noise_multiplier <= MOST_MULTIPLIER:
            too_much = self.noise_multiplier > MOST_MULTIPLIER
            raise UnsupportedEvent(
                f"a noise multiplier must lie in [{LEAST_MULTIPLIER:g}, {MOST_MULTIPLIER:g}], "
                f"not {self.noise_multiplier!r}",
                hint=f"use a {'larger privacy.epsilon or privacy.delta' if too_much else 'smaller privacy.epsilon'}",
            )
        if not self.neighbours:
            raise UnsupportedEvent("a release must declare which data sets are neighbours")
        if (self.sampling is not None) != (self.mechanism == "sampled-gaussian"):
            raise UnsupportedEvent("a sampled-gaussian release must declare its sampling, and other releases must not")

    @classmethod
    def pure(cls, epsilon: float, neighbours: str) -> ReleaseEvent:
        """Return an epsilon-DP release; its `epsilon` is this number or, by rounding, the next above it."""
        if not 1 / MOST_MULTIPLIER <= epsilon <= 1 / LEAST_MULTIPLIER:
            raise UnsupportedEvent(f"a release of epsilon {epsilon!r} cannot be composed")
        multiplier = 1 / epsilon
        while 1 / multiplier < epsilon:
            multiplier = math.nextafter(multiplier, 0.0)
        return cls("pure", multiplier, neighbours)

    @property
    def epsilon(self) -> float:
        """Epsilon at delta 0 of a `laplace` or `pure` release; infinite for others."""
        return 1 / self.noise_multiplier if self.mechanism in ("laplace", "pure") else math.inf

    @property
    def unsampled_multiplier(self) -> float:
        """For a Gaussian: the multiplier of the one release of all rows that reveals at least as much."""
        return self.noise_multiplier / math.sqrt(self.sampling.n_releases if self.sampling else 1)

    def canonical(self) -> str:
        """Return the text of this event; only equal events have equal texts."""
        # The neighbours stand last because only they may contain a slash.
        sampling = f"{self.sampling.canonical()}/" if self.sampling else ""
        return f"{self.mechanism}/{float(self.noise_multiplier).hex()}/{sampling}{self.neighbours}"

    @classmethod
    def from_canonical(cls, text: str) -> ReleaseEvent:
        """Return the event of a canonical text.

        Raises:
            DataError: the text is not an output of `canonical`.
            UnsupportedEvent: the text names a release that cannot be composed.
        """
        try:
            mechanism, noise_multiplier, neighbours = text.split("/", 2)
            sampling = None
            if mechanism == "sampled-gaussian":
                sampled, neighbours = neighbours.split("/", 1)
                sampling = Sampling.from_canonical(sampled)
            event = cls(cast(Mechanism, mechanism), float.fromhex(noise_multiplier), neighbours, sampling)
        except (ValueError, OverflowError) as error:
            raise DataError(f"not a release event: {text!r}") from error
        if event.canonical() != text:
            raise DataError(f"not the canonical form of a release event: {text!r}")
        return event


UNITS = {
    "row": ("the label of one row", "one row's label changes, number and weights of the rows public"),
    "person": (
        "the labels of one person",
        "one person's labels change, number and weights of the rows public",
    ),
}

WHOLE_ROWS = {
    "replace-one": "one row, features and label, is replaced by another; their number is public",
    "add-or-remove": "one row, features and label, is added or removed; the number by which sums are divided is public",
}
IMPLIED = {WHOLE_ROWS["replace-one"]: UNITS["row"][1]}
"""Neighbours -> other neighbours that are of this kind too. A row of which only the label changes is a row that is
replaced, so a bound for replaced rows also holds for changed labels. The reverse is not true: label DP does not protect
features. A row that is added or removed is neither: a replaced row is one removed and one added, and costs about twice
as much."""
