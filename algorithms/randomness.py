"""Where random numbers come from: the operating system for secrets and noise, a seed for what is public.

Every function that draws takes its source as an argument, so a test can pass a seeded one and repeat a run.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

import numpy as np

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
