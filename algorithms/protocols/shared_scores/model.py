"""One party's part of a model that no party has: the scales of its own columns, and its shares of all weights.

The shares are uniform by themselves. A person who has the parts of all data parties has the model; without one part,
nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.sharing.field import Elements, P
from blindfit.algorithms.sharing.kept import KeptShares, length_of_kept_share
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.statistics.linear import fields
from blindfit.algorithms.statistics.linear.named_columns import Features
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import probabilities, rows_on_grid

FORMAT = "blindfit shared model part v1"
FEATURE_BOUND = 8.0  # as in training


@dataclass(frozen=True, repr=False)
class SharedModelPart:
    """One party's part of a model in shares.

    Args:
        data_parties: data parties of the model: the active one, then the passive ones by name.
        standardiser: standardiser of the party's columns; a column that was constant in training is 0.
        columns: number of columns of each data party in shares, with the intercept.
        intercept: True if the active party's last column is an intercept.
        kept_bits: weights are in steps of 2^-kept_bits.
        score_limit, score_bits: the party's part of a score is clipped to the limit and has at most so many bits; 0: it
            is neither clipped nor rounded.
        trained_in: the session of the training, whose shares fit together.

    Raises:
        DataError: this is not a part of such a model.
    """

    party: str
    role: str
    data_parties: tuple[str, ...]
    standardiser: Standardiser
    columns: tuple[int, ...]
    intercept: bool
    kept_bits: int
    score_limit: float
    score_bits: int
    trained_in: str
    kept: KeptShares
    model: str = "logistic"

    def __post_init__(self) -> None:
        names = self.data_parties
        if self.party not in names or len(names) != len(self.columns) or len(set(names)) != len(names):
            raise DataError(f"data_parties: {self.party} is not among them, or they are not those of columns")
        if (self.party == names[0]) != (self.role == "active"):
            raise DataError("role: not that of data_parties")
        if self.columns[self.place] != len(self.standardiser.columns) + self.has_intercept:
            raise DataError("columns: another number than the standardiser has")
        if len(self.kept.share) != length_of_kept_share(sum(self.columns), macs=self.kept.macs):
            raise DataError("shares: another number than of columns")

    @property
    def place(self) -> int:
        return self.data_parties.index(self.party)

    @property
    def has_intercept(self) -> bool:
        """True if one of the party's own columns is the intercept."""
        return self.intercept and self.role == "active"

    def rows(self, features: Features) -> npt.NDArray[np.int64]:
        """Convert (n, columns) raw features to (n, own columns in shares), in steps of 2^-12.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        kept = rows_on_grid(self.standardiser, features, FEATURE_BOUND, intercept=self.has_intercept)
        rows = np.zeros((len(kept), self.columns[self.place]), dtype=np.int64)
        rows[:, [*self.standardiser.kept, *([-1] if self.has_intercept else [])]] = kept
        return rows

    def predictions(self, scores: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Convert scores in steps of 2^-42 to probabilities."""
        return probabilities(scores)

    def to_dict(self) -> dict[str, Any]:
        share, key = self.kept.share, self.kept.mac_key_share
        return {
            "format": FORMAT,
            "party": self.party,
            "role": self.role,
            "data_parties": list(self.data_parties),
            "model": self.model,
            "standardiser": self.standardiser.to_dict(),
            "columns": list(self.columns),
            "intercept": self.intercept,
            "kept_bits": self.kept_bits,
            "score_limit": self.score_limit,
            "score_bits": self.score_bits,
            "trained_in": self.trained_in,
            "shares": share.value.tolist(),
            "macs": None if share.mac is None else share.mac.tolist(),
            "mac_key_share": None if key is None else key.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> SharedModelPart:
        """Restore a part; raise DataError, which names the wrong field and no number of it."""
        fields.check_format(stored, FORMAT)
        intercept = stored.get("intercept")
        if not isinstance(intercept, bool):
            raise DataError("intercept: missing or not true or false")
        return cls(
            party=fields.text(stored, "party"),
            role=fields.text(stored, "role"),
            data_parties=fields.texts(stored, "data_parties"),
            standardiser=Standardiser.from_dict(fields.table(stored, "standardiser")),
            columns=tuple(_wholes(stored, "columns")),
            intercept=intercept,
            kept_bits=_whole(stored, "kept_bits"),
            score_limit=fields.number(stored, "score_limit"),
            score_bits=_whole(stored, "score_bits"),
            trained_in=fields.text(stored, "trained_in"),
            kept=_read_kept_shares(stored),
        )


def _read_kept_shares(stored: Mapping[str, Any]) -> KeptShares:
    if stored.get("macs") is None:
        return KeptShares(Share(_elements(stored, "shares"), None), None)
    share = Share(_elements(stored, "shares"), _elements(stored, "macs"))
    key = _elements(stored, "mac_key_share")
    if share.mac is None or share.mac.shape != share.value.shape or key.shape != (1,):
        raise DataError("macs: not one for each share, under one key")
    return KeptShares(share, key)


def _elements(stored: Mapping[str, Any], name: str) -> Elements:
    numbers = _wholes(stored, name)
    if any(not 0 <= number < P for number in numbers):
        raise DataError(f"{name}: not elements of the field")
    return np.array(numbers, dtype=np.uint64)


def _wholes(stored: Mapping[str, Any], name: str) -> list[int]:
    numbers = stored.get(name)
    if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
        raise DataError(f"{name}: missing or not a list of whole numbers")
    return numbers


def _whole(stored: Mapping[str, Any], name: str) -> int:
    number = stored.get(name)
    if type(number) is not int:
        raise DataError(f"{name}: missing or not a whole number")
    return number
