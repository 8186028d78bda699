"""A stand-in for ed25519: a group whose points are as long, and a thirtieth of the work. It serves every test whose
claim is not about points. Those of tests/alignment and tests/benchmarks, and all processes that start from nothing,
have the
curve.

Squares modulo a safe prime, to the power of a scalar's first 32 bits. Blinding commutes, a wrong point is refused where
it would be, and no point shows whose it is at a glance; nobody who tries is kept from finding out.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gmpy2
from nacl import bindings as ed25519
from nacl.exceptions import CryptoError

from blindfit.algorithms.alignment import psi

P = gmpy2.mpz(2**255 - 46545)  # a prime, and so is its half: every square but 1 is of the same large order
EXPONENT_BYTES = 4


def _from_uniform(octets: bytes) -> bytes:
    return _point(gmpy2.mpz(int.from_bytes(octets, "little")) ** 2 % P)


def _scalarmult(scalar: bytes, point: bytes) -> bytes:
    if not _is_valid_point(point):
        raise CryptoError
    exponent = int.from_bytes(scalar[:EXPONENT_BYTES], "little") | 1
    return _point(gmpy2.powmod(int.from_bytes(point, "little"), exponent, P))


def _is_valid_point(point: bytes) -> bool:
    number = int.from_bytes(point, "little")
    return 1 < number < P and gmpy2.jacobi(number, P) == 1


def _point(number: gmpy2.mpz) -> bytes:
    return int(number).to_bytes(psi.POINT_BYTES, "little")


QUICK: Any = SimpleNamespace(
    crypto_core_ed25519_from_uniform=_from_uniform,
    crypto_scalarmult_ed25519_noclamp=_scalarmult,
    crypto_core_ed25519_is_valid_point=_is_valid_point,
    crypto_core_ed25519_add=ed25519.crypto_core_ed25519_add,  # to ask whether the library is sound
)


def take_the_place() -> None:
    psi.require_sound_library()
    psi.bindings = QUICK
