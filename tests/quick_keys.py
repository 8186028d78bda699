"""Paillier keys of 512 bits in the place of full ones, with everything else unchanged.

They are for every test whose claim is not about how well ciphertexts hide. Forked parties have such keys, unless their
environment asks for others. Parties that start as a user's do have keys of full size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from blindfit.algorithms.paillier.engines import BlindfitEngine
from blindfit.algorithms.paillier.key_checks import LEAST_BITS, check_public_key
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey, insecure_private_key
from blindfit.algorithms.protocols.falcon import roles as falcon_roles
from blindfit.algorithms.protocols.taylor import roles
from blindfit.algorithms.protocols.walr import encrypted_rows
from blindfit.parties.falcon import key_node as falcon_key_node
from blindfit.parties.measurement.ways import encrypted_rows as hidden_rows

BITS = 512


def small_key(*_: object) -> PrivateKey:
    """Return another key each time."""
    return insecure_private_key(BITS)


@contextmanager
def quick_keys(make: Callable[..., PrivateKey] = small_key) -> Iterator[None]:
    """Use small keys for the vertical trainings of this process, and for rows that it hides."""
    with ExitStack() as patched:
        for making in (BlindfitEngine, falcon_key_node, hidden_rows):
            patched.enter_context(mock.patch.object(making, "generate_private_key", make))
        for checking in (roles, falcon_roles, encrypted_rows):
            patched.enter_context(mock.patch.object(checking, "check_public_key", _check))
        yield


def _check(key: PublicKey, *, min_bits: int = LEAST_BITS, **how: Any) -> None:
    """Check that a key larger than the small ones is as large as required."""
    check_public_key(key, min_bits=BITS if key.bits == BITS else min_bits, **how)
