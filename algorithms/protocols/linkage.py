"""The settings that the roles of a linkage (link.py) agree on, and the result that each of them gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.alignment import clk, matching
from blindfit.algorithms.alignment.matching import Histogram, Pairs
from blindfit.algorithms.alignment.sensitivity import ExpectedErrors
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.paillier.ciphertexts import Ciphertext
from blindfit.algorithms.paillier.vectors import EncryptedVector


@dataclass(frozen=True, slots=True)
class LinkageSettings:
    """Settings of a linkage: public, and the same at all three parties.

    Args:
        threshold: least Dice coefficient of a match.
        min_matches: least number of matches; fewer end the session. A party with few records, or with one record and
            inventions, would otherwise learn whether the other party has single people.
    """

    encoding: clk.Encoding
    threshold: float = 0.8
    min_matches: int = 100

    def __post_init__(self) -> None:
        matching.check_threshold(self.threshold)
        if not 1 <= self.min_matches <= MAX_RECORDS:
            raise ConfigError(f"min_matches is {self.min_matches}: it must be from 1 to {MAX_RECORDS:,}")

    def parameters(self) -> dict[str, ParameterValue]:
        """Return the values that the handshake compares."""
        return {
            **self.encoding.parameters(),
            "linkage_threshold": self.threshold,
            "linkage_min_matches": self.min_matches,
        }


@dataclass(frozen=True, slots=True, repr=False)
class LinkedRows:
    """Result of a linkage at one data party.

    Attributes:
        positions: for each slot this party's own row, each row once, or -1 for a row of zeros.
        mask_enc: for each slot [[1]] if both parties' rows are one person, else [[0]]; frac_bits 0.
    """

    positions: Positions
    mask_enc: EncryptedVector[Ciphertext]


@dataclass(frozen=True, slots=True)
class LinkageSummary:
    """Summary for the key node's own report; a data party must not see how many rows match."""

    sizes: tuple[int, int]
    n_matches: int
    threshold: float
    histogram: Histogram
    errors: ExpectedErrors


@dataclass(frozen=True, slots=True, repr=False)
class Matched:
    """Matches that the key node found; `matches` are positions in the two shuffled lists.

    Attributes:
        anybody: error for the key node's own operator, if too many pairs are alike; `matches` is then empty. A data
            party gets the same answer as for too few matches. Otherwise it could use copies of one record to look for a
            group smaller than `min_matches`.
    """

    matches: Pairs
    summary: LinkageSummary
    anybody: DataError | None = None


MAX_RECORDS = 2**18  # of one party: 7e10 pairs, ten minutes of one core


Positions = npt.NDArray[np.int64]
