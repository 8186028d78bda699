"""What a data party keeps of a training in shares that may have to go on: its shares after an epoch.

They are of one run of the training: another run's shares of the same epoch are others, and do not fit. So a party that
resumes drops what it kept of later epochs before it computes anything.

Where somebody deviated from the protocol nothing of the training is kept, at anybody: the MAC key was tried out, and is
not used again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from blindfit.algorithms.errors import MacCheckFailed, MalformedMessage, PeerAborted, UnexpectedStep
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.protocols.falcon import EncryptedState, Model, ModelState
from blindfit.algorithms.sharing.descent import State
from blindfit.algorithms.sharing.shares import Share
from blindfit.parties.vertical.checkpoints import Checkpoints, damaged

DEVIATIONS = frozenset({"MAC_CHECK_FAILED", "MALFORMED_MESSAGE", "UNEXPECTED_STEP"})  # as a peer says them


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
    """
    Args:
        public_key: of encrypted weights.

    Raises:
        DataError: it is not what was kept.
    """
    try:
        shares = {name: _share(values, state["macs"][name]) for name, values in state["values"].items()}
        if public_key is None:
            weights: ModelState = State(shares["weights"], shares["velocity"])
        else:
            weights = EncryptedState.from_json(state["encrypted"], public_key)
        return Model(weights, shares["best"], shares["since"], epochs)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise damaged(resume_option) from None


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
