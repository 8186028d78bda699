"""In the place of Paillier keys of full size: of 512 bits, and all else as ever. For every test whose claim is not
about how well ciphertexts hide. Forked parties have such keys, unless their environment says otherwise; those that
start as a user's do have keys of full size.
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
from blindfit.parties.measurement import row_key

BITS = 512


def small_key(*_: object) -> PrivateKey:
    """Another one each time."""
    return insecure_private_key(BITS)


@contextmanager
def quick_keys(make: Callable[..., PrivateKey] = small_key) -> Iterator[None]:
    """Of the vertical trainings that this process takes part in, and of rows that it hides."""
    with ExitStack() as patched:
        for making in (BlindfitEngine, falcon_key_node, row_key):
            patched.enter_context(mock.patch.object(making, "generate_private_key", make))
        for checking in (roles, falcon_roles, encrypted_rows):
            patched.enter_context(mock.patch.object(checking, "check_public_key", _check))
        yield


def _check(key: PublicKey, *, min_bits: int = LEAST_BITS, **how: Any) -> None:
    """A larger key must be as large as was asked for."""
    check_public_key(key, min_bits=BITS if key.bits == BITS else min_bits, **how)
