"""Helpers of the tests of encrypted vectors: sources of randomness, stand-ins for workers, spies."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import HealthCheck, settings

from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext, Randomisers
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.randomisers import FullExponent, OwnKey
from blindfit.algorithms.paillier.vectors import EncryptedVector, encrypt
from blindfit.algorithms.randomness import UniformInt

LAW = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def seeded(seed: int = 0) -> UniformInt:
    return random.Random(seed).randrange


@cache
def _source(n: int, key: PrivateKey) -> Randomisers:
    return OwnKey(key, uniform=seeded()) if key.public_key.bits < 2048 else FullExponent(key.public_key)


def source(key: PrivateKey) -> Randomisers:
    """Return a source of encryptions of zero; the table of a small key is made once."""
    return _source(key.public_key.n, key)


def encrypted(
    integers: Sequence[int], key: PrivateKey, *, frac_bits: int = 0, bound: int | None = None
) -> EncryptedVector[FreshCiphertext]:
    return encrypt(Fixed.from_integers(list(integers), frac_bits), source(key), bound=bound)


def integers_of(ciphertext: Ciphertext) -> list[int]:
    """Return the ciphertexts as residues mod n^2."""
    return [int(integer) for integer in ciphertext.public_key.kernel.integers(ciphertext.residues)]


class PicklingWorkers:
    """Workers as a protocol sees them: tasks and results are pickled, as on the way to other processes and back."""

    def __init__(self, count: int) -> None:
        self.count, self.tasks = count, 0

    def map(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        self.tasks += len(tasks)
        arrived = [pickle.loads(pickle.dumps((function, task))) for task in tasks]
        return [pickle.loads(pickle.dumps(run(*arguments))) for run, arguments in arrived]


@contextmanager
def nothing_computed(*keys: PublicKey) -> Iterator[None]:
    """Fail if a kernel of these keys multiplied anything."""
    before = [replace(key.kernel.counts) for key in keys]
    yield
    assert [key.kernel.counts for key in keys] == before
