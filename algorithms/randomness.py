"""Where random numbers come from: the operating system for secrets and noise, a seed for what is public.

Every function that draws takes its source as an argument, so a test can pass a seeded one and repeat a run.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

UniformInt = Callable[[int], int]
"""Takes m >= 1 and returns an integer uniform on [0, m)."""


def system_uniform(m: int) -> int:
    """An integer uniform on [0, m), from the operating system's generator."""
    return secrets.randbelow(m)


def public_generator(seed: int, purpose: str) -> np.random.Generator:
    """A reproducible generator, for public choices only (splits, batch plans): who knows the seed knows all.

    Two purposes under one seed give unrelated streams, so that a split tells nothing about a batch plan.
    """
    digest = hashlib.sha256(f"blindfit public randomness v1/{seed}/{purpose}".encode()).digest()
    # PCG64 by name: numpy may change what default_rng means, and parties must draw the same plan.
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


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
    uniform = keyed_uniform(key, purpose)
    draws = np.array([uniform(1 << 52) for _ in range(count)], dtype=np.float64)
    return np.asarray(ndtri((draws + 0.5) * 2.0**-52))  # of 53 bits the last would round to 1, and be infinite
