"""What a data party gets of the key node once for a training, and keeps as long as it may have to go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.messages import Channel
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.threshold import KeyShare
from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.sharing.prg import Seed
from blindfit.parties.falcon.settings import FalconSettings
from blindfit.parties.vertical.seats import Seats


@dataclass(frozen=True, repr=False)
class Dealt:
    """
    Attributes:
        key_share: where weights are encrypted.
    """

    seed: Seed
    key_share: KeyShare | None

    @classmethod
    async def receive(cls, settings: FalconSettings, seats: Seats, channel: Channel) -> Dealt:
        seed = await falcon.receive_seed(seats.key_node, channel)
        if not settings.is_encrypted:
            return cls(seed, None)
        share = await falcon.receive_key_share(seats.me, seats.chain, seats.key_node, settings.key_bits, channel)
        return cls(seed, share)

    @property
    def public_key(self) -> PublicKey | None:
        return None if self.key_share is None else self.key_share.public_key

    def to_base(self) -> dict[str, Any]:
        """For a party's checkpoints, which its vault locks."""
        base = {"seed": self.seed.octets.hex()}
        if self.key_share is not None:
            base |= {"public_key": self.key_share.public_key.to_bytes().hex(), "key": self.key_share.to_bytes().hex()}
        return base

    @classmethod
    def of_base(cls, base: Mapping[str, Any]) -> Dealt:
        seed = Seed(bytes.fromhex(base["seed"]))
        if "key" not in base:
            return cls(seed, None)
        public_key = PublicKey.from_bytes(bytes.fromhex(base["public_key"]))
        return cls(seed, KeyShare.from_bytes(bytes.fromhex(base["key"]), public_key))
