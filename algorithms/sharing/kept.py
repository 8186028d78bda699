"""A party's shares of a vector, kept after the session has ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.shares import Share


@dataclass(frozen=True, repr=False)
class KeptShares:
    """Kept shares of a vector.

    Attributes:
        share: share of the vector and, with MACs, of a number behind it that nobody knows.
        mac_key_share: share of the key of these MACs, (1,); None without MACs.
    """

    share: Share
    mac_key_share: Elements | None

    @property
    def macs(self) -> bool:
        return self.mac_key_share is not None

    @property
    def flat(self) -> Elements:
        """Values, MACs and the share of their key, as a later session puts them in."""
        if self.share.mac is None or self.mac_key_share is None:
            return self.share.value
        return np.concatenate([self.share.value, self.share.mac, self.mac_key_share])


def length_of_kept_share(columns: int, *, macs: bool) -> int:
    """Return the length of `KeptShares.share`."""
    return columns + macs


def flat_length(columns: int, *, macs: bool) -> int:
    """Return the length of `KeptShares.flat`."""
    kept = length_of_kept_share(columns, macs=macs)
    return 2 * kept + 1 if macs else kept
