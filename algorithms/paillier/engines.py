"""Two engines for the arithmetic of a job's ciphertexts: Blindfit's kernel, and python-paillier as a slow reference.

An engine makes keys, binds keys from elsewhere to its kernel, and chooses the source of randomisers. Everything else
(vectors, packing, protocols, messages) computes through the key, and does not know the engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Protocol

from blindfit.algorithms.paillier.ciphertexts import Randomisers
from blindfit.algorithms.paillier.interop import load_phe, private_key_from_phe
from blindfit.algorithms.paillier.kernel import Kernel
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey, check_key_bits, generate_private_key
from blindfit.algorithms.paillier.phe_engine import PheKernel, PhePrivateKey
from blindfit.algorithms.paillier.randomisers import FullExponent, OwnKey, ShortExponent
from blindfit.algorithms.workers import THIS_PROCESS, Workers

EngineName = Literal["blindfit", "phe"]


class Engine(Protocol):
    """
    Attributes:
        maker_trusted: True if encryption uses the hs of a key, which takes trust in the key's maker.
        worker_randomisers: number of randomisers; below it they are made here, without other processes.
    """

    name: EngineName
    maker_trusted: bool
    worker_randomisers: int

    def kernel(self, n: int) -> Kernel: ...

    def generate_private_key(self, bits: int) -> PrivateKey:
        """Generate a key pair; raise RangeError if Blindfit does not offer keys of this size."""
        ...

    def adopt_public(self, key: PublicKey) -> PublicKey:
        """Return the key as this engine computes under it."""
        ...

    def adopt_private(self, key: PrivateKey) -> PrivateKey: ...

    def randomisers(self, public_key: PublicKey, *, workers: Workers = THIS_PROCESS) -> Randomisers: ...

    def own_randomisers(self, private_key: PrivateKey) -> Randomisers:
        """Return randomisers for the owner of the private key."""
        ...


class BlindfitEngine:
    name: EngineName = "blindfit"
    maker_trusted = True
    worker_randomisers = 2048

    def kernel(self, n: int) -> Kernel:
        return Kernel(n)

    def generate_private_key(self, bits: int) -> PrivateKey:
        return generate_private_key(bits)

    def adopt_public(self, key: PublicKey) -> PublicKey:
        return key

    def adopt_private(self, key: PrivateKey) -> PrivateKey:
        return key

    def randomisers(self, public_key: PublicKey, *, workers: Workers = THIS_PROCESS) -> Randomisers:
        return ShortExponent(public_key, workers=workers)

    def own_randomisers(self, private_key: PrivateKey) -> Randomisers:
        return OwnKey(private_key)


class PheEngine:
    """python-paillier; its keys have no hs, so every randomiser is an r^n.

    Raises:
        ConfigError: python-paillier is not installed.
    """

    name: EngineName = "phe"
    maker_trusted = False
    worker_randomisers = 64

    def __init__(self) -> None:
        self._phe = load_phe()

    def kernel(self, n: int) -> Kernel:
        return PheKernel(n)

    def generate_private_key(self, bits: int) -> PrivateKey:
        """Generate phe's own key pair, from the system's generator; Blindfit adds the proof that r^n hides under it."""
        check_key_bits(bits)
        _, key = self._phe.generate_paillier_keypair(n_length=bits)
        return self.adopt_private(private_key_from_phe(key))

    def adopt_public(self, key: PublicKey) -> PublicKey:
        return replace(key, hs=None, kernel_type=PheKernel)

    def adopt_private(self, key: PrivateKey) -> PrivateKey:
        return PhePrivateKey(key.p, key.q, self.adopt_public(key.public_key))

    def randomisers(self, public_key: PublicKey, *, workers: Workers = THIS_PROCESS) -> Randomisers:
        return FullExponent(public_key, workers=workers)

    def own_randomisers(self, private_key: PrivateKey) -> Randomisers:
        return FullExponent(private_key.public_key)


def engine_of(name: EngineName) -> Engine:
    """Return the engine of a name; raise ConfigError if it needs python-paillier, which is not installed here."""
    return PheEngine() if name == "phe" else BlindfitEngine()
