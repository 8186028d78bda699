"""The public parameters of a prediction in shares, the same at every party."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blindfit.algorithms.errors import MalformedMessage, RangeError
from blindfit.algorithms.protocols.falcon.parameters import FEATURE_BOUND, WEIGHT_BOUND
from blindfit.algorithms.protocols.ready import MOST_COLUMNS
from blindfit.algorithms.protocols.shared_scores.messages import ModelTold
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.algorithms.statistics.vertical.score_leaks import LEAST_SCORE_BITS, MOST_SCORE_BITS

MOST_KEPT_BITS = 24
LARGEST_LIMIT = 64.0
MOST_BITS = 57  # most bits of a number that is clipped or rounded


@dataclass(frozen=True)
class ScoringParameters:
    """The public parameters of a prediction in shares.

    Attributes:
        data_parties: the chain, the active party first; it gets the dealer's corrections.
        columns: number of columns of each data party; the active party's last one is the intercept, if there is one.
        kept_bits: weights are in steps of 2^-kept_bits.
        score_limit, score_bits: a party's part of a score is clipped to the limit and rounded to at most so many bits;
            0: the part goes into the sum as it is.
    """

    data_parties: tuple[str, ...]
    key_node: str
    columns: tuple[int, ...]
    rows: int
    kept_bits: int
    score_limit: float
    score_bits: tuple[int, ...]
    macs: bool = True

    @property
    def scale(self) -> int:
        """Bits of a score after the binary point."""
        return FEATURE_BITS + self.kept_bits

    @property
    def limit(self) -> int:
        """Limit of a part of a score, in steps of 2^-scale."""
        return round(math.ldexp(self.score_limit, self.scale))

    @property
    def rounded(self) -> dict[int, int]:
        """Place of a party whose part is rounded -> the bits that the part loses."""
        return {
            place: bits_to_drop(bits, self.score_limit, self.scale)
            for place, bits in enumerate(self.score_bits)
            if bits
        }

    def column_slice(self, place: int) -> slice:
        """Return the places of a party's columns among all."""
        start = sum(self.columns[:place])
        return slice(start, start + self.columns[place])

    def check(self) -> None:
        """Raise RangeError if there is nothing to score, or numbers do not fit into the field."""
        if self.rows < 1:
            raise RangeError("there is no row to score")
        largest = sum(self.columns) * FEATURE_BOUND * WEIGHT_BOUND + self.score_limit
        spread = max(self.rounded.values(), default=0) - min(self.rounded.values(), default=0)
        if math.log2(largest) + self.scale + spread >= MOST_BITS:
            raise RangeError(f"scores of {sum(self.columns)} columns do not fit into the field")


def parameters_of(
    told: Mapping[str, ModelTold], data_parties: Sequence[str], key_node: str, rows: int
) -> ScoringParameters:
    """Return the parameters that follow from the data parties' announcements.

    Args:
        told: announcement of each data party, all of one model in shares.

    Raises:
        MalformedMessage: a party announced what no model has, or what the first party did not; the error names it.
    """
    first = told[data_parties[0]]
    for name in data_parties:
        _check(told[name], first, len(data_parties), name)
    _require(first.score_bits == 0, data_parties[0], "score_bits", "is not 0: an active party rounds nothing")
    return ScoringParameters(
        tuple(data_parties),
        key_node,
        tuple(first.columns.tolist()),
        rows,
        first.kept_bits,
        first.score_limit,
        tuple(told[name].score_bits for name in data_parties),
        bool(first.macs),
    )


def _check(told: ModelTold, first: ModelTold, parties: int, name: str) -> None:
    columns = told.columns
    fits = columns.shape == (parties,) and int(columns.min()) >= 1 and int(columns.max()) <= MOST_COLUMNS
    _require(fits, name, "columns", "are not those of each data party")
    _require(0 <= told.kept_bits <= MOST_KEPT_BITS, name, "kept_bits", "is out of range")
    _require(1 <= told.score_limit <= LARGEST_LIMIT, name, "score_limit", "is out of range")
    _require(told.macs in (0, 1), name, "macs", "is not 0 or 1")
    known = told.score_bits == 0 or LEAST_SCORE_BITS <= told.score_bits <= MOST_SCORE_BITS
    _require(known, name, "score_bits", "is out of range")
    _require(told.agrees_with(first), name, "columns", "are of another model than the active party's")


def _require(condition: bool, culprit: str, field: str, reason: str) -> None:
    if not condition:
        raise MalformedMessage(culprit=culprit, field=field, reason=reason, step="ModelTold")


# --- how a part is rounded ------------------------------------------------------------------------------------------


def bits_to_drop(bits: int, limit: float, scale: int) -> int:
    """Return the fewest bits that a part, in steps of 2^-scale, must lose to have at most `bits` bits."""
    dropped = 0
    while part_bits(limit, scale, dropped) > bits:
        dropped += 1
    return dropped


def part_bits(limit: float, scale: int, dropped: int) -> float:
    """Return log2 of the number of possible parts of a score."""
    most = round(math.ldexp(limit, scale))
    return math.log2((most >> dropped) - (-most >> dropped) + 1)
