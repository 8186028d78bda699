"""Files that a data party keeps of a training in shares, so that it can be resumed: the dealt values, and its shares of
each epoch.

The shares belong to one run of the training. Another run's shares of the same epoch are different, and do not fit. So a
party that resumes drops its files of later epochs before it computes anything.

If a party deviated from the protocol, nobody keeps anything of the training: the MAC key may be known, and is not used
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from blindfit.algorithms.errors import MacCheckFailed, MalformedMessage, PeerAborted, UnexpectedStep
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.threshold import KeyShare
from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.protocols.falcon import EncryptedState, Model, ModelState
from blindfit.algorithms.sharing.descent import State
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.shares import Share
from blindfit.parties.falcon.settings import FalconSettings
from blindfit.parties.vertical.checkpoints import Checkpoints, make_damage_error
from blindfit.parties.vertical.seats import Seats


@dataclass(frozen=True, repr=False)
class Dealt:
    """Values that the key node deals once for a training.

    Attributes:
        key_share: share of the key, if weights are encrypted.
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
        """Return the values for a party's checkpoints, which its vault locks."""
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


DEVIATIONS = frozenset({"MAC_CHECK_FAILED", "MALFORMED_MESSAGE", "UNEXPECTED_STEP"})  # codes that a peer reports


def to_state(model: Model) -> dict[str, Any]:
    shares = {"best": model.best, "since": model.since}
    encrypted: dict[str, Any] = {}
    if isinstance(model.state, State):
        shares |= {"weights": model.state.weights, "velocity": model.state.velocity}
    else:
        encrypted = {"encrypted": model.state.to_json()}
    values = {name: share.value.tolist() for name, share in shares.items()}
    macs = {name: None if share.mac is None else share.mac.tolist() for name, share in shares.items()}
    return {"values": values, "macs": macs} | encrypted


def from_state(state: Mapping[str, Any], epochs: int, resume_option: str, public_key: PublicKey | None = None) -> Model:
    """Return the model of a checkpoint.

    Args:
        public_key: key of encrypted weights.

    Raises:
        DataError: it is not a state that `to_state` wrote.
    """
    try:
        shares = {name: _share(values, state["macs"][name]) for name, values in state["values"].items()}
        if public_key is None:
            weights: ModelState = State(shares["weights"], shares["velocity"])
        else:
            weights = EncryptedState.from_json(state["encrypted"], public_key)
        return Model(weights, shares["best"], shares["since"], epochs)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise make_damage_error(resume_option) from None


def _share(values: list[int], macs: list[int] | None) -> Share:
    return Share(np.array(values, dtype=np.uint64), None if macs is None else np.array(macs, dtype=np.uint64))


@contextmanager
def drop_when_somebody_deviates(checkpoints: Checkpoints) -> Iterator[None]:
    try:
        yield
    except (MacCheckFailed, MalformedMessage, UnexpectedStep):
        checkpoints.remove()
        raise
    except PeerAborted as aborted:
        if aborted.code in DEVIATIONS:
            checkpoints.remove()
        raise
