"""Sources of random numbers: the operating system for secrets and noise, a seed for public choices.

Every function that draws takes its source as an argument, so a test can pass a seeded one and repeat a run.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

UniformInt = Callable[[int], int]
"""Takes m >= 1 and returns an integer uniform on [0, m)."""


def system_uniform(m: int) -> int:
    """Return an integer uniform on [0, m), from the operating system's generator."""
    return secrets.randbelow(m)


def public_generator(seed: int, purpose: str) -> np.random.Generator:
    """Return a reproducible generator, only for public choices (splits, batch plans): a seed's reader can repeat them.

    Two purposes under one seed give unrelated streams, so a split reveals nothing about a batch plan.
    """
    digest = hashlib.sha256(f"blindfit public randomness v1/{seed}/{purpose}".encode()).digest()
    # PCG64 by name: numpy may change what default_rng means, and parties must draw the same plan.
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def generator_of(seed: bytes) -> np.random.Generator:
    """Return the generator of a seed from `PublicRandomness.seed_of`."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(seed, "big")))


@dataclass(frozen=True, repr=False)
class PublicRandomness:
    """Randomness for public choices, drawn once for one purpose.

    Nobody chose the key, and no secret rests on it. But if only the key's owners can repeat a split, nobody else learns
    it.

    Attributes:
        orders_by_count: True if an order depends on the number of held-out rows, not on their fraction. It is for a
            seed, whose owner chooses the held-out rows anyway, and for the draws of an older version.
    """

    key: bytes
    orders_by_count: bool = False

    @classmethod
    def from_seed(cls, seed: int) -> PublicRandomness:
        """Make the randomness of a job on one machine; anyone who knows the seed can repeat it."""
        return cls(hashlib.sha256(f"blindfit public randomness v2/{seed}".encode()).digest(), orders_by_count=True)

    def generator(self, purpose: str) -> np.random.Generator:
        """Return a generator; two purposes under one key give unrelated streams."""
        return generator_of(self.seed_of(purpose))

    def seed_of(self, purpose: str) -> bytes:
        """Return the seed of one purpose's stream. It may be shared: it reveals nothing of the key or others."""
        return hashlib.sha256(self.key + b"/" + purpose.encode()).digest()

    def draws(self, purpose: str, texts: Iterable[str]) -> npt.NDArray[np.uint64]:
        """Return a number of 64 bits for each text; it depends only on the key and that text, not on other texts.


        Source: BLAKE2b with a key, as a pseudo-random function.
        """
        key = hashlib.sha256(self.key + b"/texts/" + purpose.encode()).digest()
        octets = b"".join([hashlib.blake2b(text.encode(), key=key, digest_size=8).digest() for text in texts])
        return np.frombuffer(octets, ">u8").astype(np.uint64)

    def choose(self, purpose: str, texts: Iterable[str], share: float) -> npt.NDArray[np.bool_]:
        """Choose about this share of the texts, each by itself."""
        return self.draws(purpose, texts) < np.uint64(min(round(share * 2**64), 2**64 - 1))


def keyed_uniform(key: bytes, purpose: str) -> UniformInt:
    """Return uniform integers that only the key's owner can repeat: secret noise that a resumed step must draw again.

    They come from SHAKE-256 of key and purpose; values past the last multiple of m are thrown away.
    """
    state = hashlib.shake_256(b"blindfit keyed randomness v1/" + len(key).to_bytes(4, "big") + key + purpose.encode())
    stream, used = state.digest(4096), 0

    def uniform(m: int) -> int:
        nonlocal stream, used
        octets = ((m - 1).bit_length() + 7) // 8 + 8
        while True:
            if used + octets > len(stream):
                stream = state.digest(2 * len(stream) + octets)
            drawn = int.from_bytes(stream[used : used + octets], "big")
            used += octets
            space = 1 << 8 * octets
            if drawn < space - space % m:
                return drawn % m

    return uniform


def keyed_normals(key: bytes, purpose: str, count: int) -> npt.NDArray[np.float64]:
    """Return standard normal numbers that only the key's owner can repeat: for jitter, which claims no DP."""
    from scipy.special import ndtri  # here, because code that only reads a job draws nothing

    uniform = keyed_uniform(key, purpose)
    draws = np.array([uniform(1 << 52) for _ in range(count)], dtype=np.float64)
    return np.asarray(ndtri((draws + 0.5) * 2.0**-52))  # of 53 bits the last would round to 1, and be infinite
