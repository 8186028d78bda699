"""Keys that every test of encryption shares; they are the same in every run."""

from __future__ import annotations

import random

import pytest

from blindfit.algorithms.paillier.keys import PrivateKey, generate_private_key, insecure_private_key


@pytest.fixture(scope="session")
def insecure_test_key() -> PrivateKey:
    """512 bits, so that a broad test is quick; refused wherever `least_bits` is not lowered."""
    return insecure_private_key(512, uniform=random.Random(512).randrange)


@pytest.fixture(scope="session")
def real_key() -> PrivateKey:
    """2048 bits."""
    return generate_private_key(uniform=random.Random(2048).randrange)
