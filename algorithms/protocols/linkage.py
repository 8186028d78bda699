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
    """Public, and the same at all three.

    Args:
        threshold: least Dice coefficient of a match.
        min_matches: fewer end the session. A party with few records, or with one and inventions, would otherwise
            learn of single people whether the other has them.
    """

    encoding: clk.Encoding
    threshold: float = 0.8
    min_matches: int = 100

    def __post_init__(self) -> None:
        matching.check_threshold(self.threshold)
        if not 1 <= self.min_matches <= MAX_RECORDS:
            raise ConfigError(f"min_matches is {self.min_matches}: it must be from 1 to {MAX_RECORDS:,}")

    def parameters(self) -> dict[str, ParameterValue]:
        """For the handshake."""
        return {
            **self.encoding.parameters(),
            "linkage_threshold": self.threshold,
            "linkage_min_matches": self.min_matches,
        }


@dataclass(frozen=True, slots=True, repr=False)
class LinkedRows:
    """
    Attributes:
        positions: for each slot this party's own row, each of them once, or -1 for a row of zeros.
        mask_enc: for each slot [[1]] where both parties' rows are one person, else [[0]]; frac_bits 0.
    """

    positions: Positions
    mask_enc: EncryptedVector[Ciphertext]


@dataclass(frozen=True, slots=True)
class LinkageSummary:
    """For the key node's own report; a data party must not see how many match."""

    sizes: tuple[int, int]
    n_matches: int
    threshold: float
    histogram: Histogram
    errors: ExpectedErrors


@dataclass(frozen=True, slots=True, repr=False)
class Matched:
    """What the key node found; `matches` are positions in the two shuffled lists.

    Attributes:
        anybody: there are none, as too many pairs are alike; for the key node's own operator. A data party is told the
            same as of too few matches: with copies of one record it could ask for a group smaller than `min_matches`.
    """

    matches: Pairs
    summary: LinkageSummary
    anybody: DataError | None = None


MAX_RECORDS = 2**18  # of one party: 7e10 pairs, ten minutes of one core


Positions = npt.NDArray[np.int64]
