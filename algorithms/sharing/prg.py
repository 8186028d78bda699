"""Elements of the field that follow from a seed: the dealer and one party expand the same elements.

AES-256 in counter mode (hardware does gigabytes a second), under a separate key for every name. The seed's owner can
repeat each stream, in any order; to all others it is uniform.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from blindfit.algorithms.sharing.field import BITS, Elements, P

SEED_BYTES = 32
_LOW_BITS = np.uint64(P)


@dataclass(frozen=True, repr=False)
class Seed:
    octets: bytes

    @classmethod
    def random(cls) -> Seed:
        return cls(secrets.token_bytes(SEED_BYTES))

    def elements(self, name: str, shape: tuple[int, ...]) -> Elements:
        """Return uniform elements of the field."""
        return self._words(name, math.prod(shape)).reshape(shape)

    def _words(self, name: str, count: int) -> Elements:
        """Return words of 61 bits; 2^61 - 1, which is not an element, is drawn once in 2^61 and replaced."""
        words = np.frombuffer(self._octets(name, 8 * count), dtype="<u8").astype(np.uint64, copy=False)
        words >>= np.uint64(64 - BITS)
        outside = np.flatnonzero(words == _LOW_BITS) if words.size and words.max() == _LOW_BITS else words[:0]
        if outside.size:
            words[outside] = self._words(f"{name}, again", outside.size)
        return words

    def _octets(self, name: str, count: int) -> bytearray:
        key = hashlib.sha256(b"blindfit sharing v1/" + self.octets + b"/" + name.encode()).digest()
        encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        octets = bytearray(count)
        encryptor.update_into(octets, octets)  # encrypt zeros, in place
        return octets
