"""Where random numbers come from: the operating system for secrets and noise, a seed for what is public.

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
    """Return a reproducible generator, for public choices only (splits, batch plans): who knows the seed knows all.

    Two purposes under one seed give unrelated streams, so that a split tells nothing about a batch plan.
    """
    digest = hashlib.sha256(f"blindfit public randomness v1/{seed}/{purpose}".encode()).digest()
    # PCG64 by name: numpy may change what default_rng means, and parties must draw the same plan.
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def generator_of(seed: bytes) -> np.random.Generator:
    """Of `PublicRandomness.seed_of`."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(seed, "big")))


@dataclass(frozen=True, repr=False)
class PublicRandomness:
    """What public choices are drawn from, once for what they are about: nobody chose the key, and no secret rests on
    it; but a split that its key's owners alone can repeat is not told to anybody else.

    Attributes:
        orders_by_count: an order depends on how many rows are held out, not on which fraction of them: for a seed,
            whose owner chooses who is held out anyway, and for what an older version drew.
    """

    key: bytes
    orders_by_count: bool = False

    @classmethod
    def from_seed(cls, seed: int) -> PublicRandomness:
        """For jobs on one machine: who knows the seed knows all."""
        return cls(hashlib.sha256(f"blindfit public randomness v2/{seed}".encode()).digest(), orders_by_count=True)

    def generator(self, purpose: str) -> np.random.Generator:
        """Return two purposes under one key give unrelated streams."""
        return generator_of(self.seed_of(purpose))

    def seed_of(self, purpose: str) -> bytes:
        """Return all of one purpose's stream, and nothing of the key or of another purpose: it may be told."""
        return hashlib.sha256(self.key + b"/" + purpose.encode()).digest()

    def draws(self, purpose: str, texts: Iterable[str]) -> npt.NDArray[np.uint64]:
        """A number of 64 bits for each text, which depends on the key and that text alone: not on its place, nor on
        what other texts there are.

        Source: BLAKE2b with a key, as a pseudo-random function.
        """
        key = hashlib.sha256(self.key + b"/texts/" + purpose.encode()).digest()
        octets = b"".join([hashlib.blake2b(text.encode(), key=key, digest_size=8).digest() for text in texts])
        return np.frombuffer(octets, ">u8").astype(np.uint64)

    def choose(self, purpose: str, texts: Iterable[str], share: float) -> npt.NDArray[np.bool_]:
        """Choose about this share of the texts, each by itself."""
        return self.draws(purpose, texts) < np.uint64(min(round(share * 2**64), 2**64 - 1))


def keyed_uniform(key: bytes, purpose: str) -> UniformInt:
    """Uniform integers that only the key's owner can repeat: secret noise that a resumed step must draw again.

    SHAKE-256 of key and purpose, read on and on; values past the last multiple of m are thrown away.
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
    """Standard normal numbers that only the key's owner can repeat: for jitter, which claims no DP."""
    from scipy.special import ndtri  # here: whoever only reads a job draws nothing

    uniform = keyed_uniform(key, purpose)
    draws = np.array([uniform(1 << 52) for _ in range(count)], dtype=np.float64)
    return np.asarray(ndtri((draws + 0.5) * 2.0**-52))  # of 53 bits the last would round to 1, and be infinite
