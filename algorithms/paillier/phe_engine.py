"""Paillier by python-paillier (`phe`): the slow reference that Blindfit's own arithmetic is checked against.

Every encryption, sum, power and decryption is a call of phe's. A sum of products takes a power for each element, and a
randomiser is r^n, without tables, buckets or fixed bases. Encoding, bounds, packing and messages stay Blindfit's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from blindfit.algorithms.errors import LocalProtocolError, RangeError
from blindfit.algorithms.paillier.interop import load_phe, private_key_to_phe
from blindfit.algorithms.paillier.kernel import Kernel, Residues, power_products
from blindfit.algorithms.paillier.keys import PrivateKey


class PheKernel(Kernel):
    """A kernel that makes each element a phe.EncryptedNumber of exponent 0 for every operation.

    Raises:
        ConfigError: python-paillier is not installed.
    """

    one_by_one = True

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self._phe = load_phe()
        self._key = self._phe.PaillierPublicKey(int(n))

    # --- in and out ---------------------------------------------------------------------------------

    def residues(self, integers: Iterable[int]) -> Residues:
        values = [int(integer) for integer in integers]  # phe takes only Python's integers
        return Residues(values, [0] * len(values))

    def integers(self, residues: Residues) -> list[int]:
        return list(residues.values)

    def ones_plus(self, plaintexts: Iterable[int]) -> Residues:
        """Return encryptions whose randomiser is 1, as phe itself makes them before it obfuscates."""
        n = self._key.n
        return self.residues(self._key.raw_encrypt(int(plaintext) % n, r_value=1) for plaintext in plaintexts)

    def nth_powers(self, units: Iterable[int]) -> Residues:
        """Return encryptions of 0; power_products(n) each."""
        made = self.residues(self._key.raw_encrypt(0, r_value=int(unit)) for unit in units)
        self.counts.products += len(made) * power_products(self._key.n)
        return made

    # --- arithmetic ---------------------------------------------------------------------------------

    def products(self, a: Residues, b: Residues) -> Residues:
        self.counts.products += len(a)
        return self._of(x + y for x, y in zip(self._numbers(a), self._numbers(b), strict=True))

    def plus(self, a: Residues, plaintexts: Iterable[int]) -> Residues:
        return self.products(a, self.ones_plus(plaintexts))

    def inverses(self, a: Residues) -> Residues:
        return self.powers_each(a, [-1] * len(a))

    def powers(self, bases: Residues, exponent: int) -> Residues:
        return self.powers_each(bases, [exponent] * len(bases))

    def powers_each(self, bases: Residues, exponents: Sequence[int]) -> Residues:
        """Return the powers; raise RangeError if an exponent is not a plaintext, or an element is not prime to n."""
        encoded = [self._encode(int(exponent)) for exponent in exponents]
        self.counts.products += sum(power_products(abs(int(exponent))) for exponent in exponents)
        self.counts.inversions += sum(exponent < 0 for exponent in exponents)
        try:
            return self._of(x * k for x, k in zip(self._numbers(bases), encoded, strict=True))
        except ZeroDivisionError:
            raise RangeError("a ciphertext is not prime to its modulus") from None

    def _split(self, a: Residues) -> NoReturn:
        """Raise LocalProtocolError: a reference has no tables and buckets, which are made from a split."""
        raise LocalProtocolError(f"the reference engine has no tables, for {len(a)} ciphertexts or any")

    # --- phe's objects ------------------------------------------------------------------------------

    def _numbers(self, residues: Residues) -> list[Any]:
        return [self._phe.EncryptedNumber(self._key, value) for value in residues.values]

    def _encode(self, integer: int) -> Any:
        """Encode an integer of either sign: phe takes n - k for -k, and inverts."""
        if not 2 * abs(integer) < self._key.n:
            raise RangeError(f"a factor of {integer.bit_length()} bits does not fit under the key")
        return self._phe.EncodedNumber(self._key, integer % self._key.n, 0)

    def _of(self, numbers: Iterable[Any]) -> Residues:
        """Return ciphertexts before obfuscation; `randomize` obfuscates, and messages accept only its results."""
        return self.residues(number.ciphertext(be_secure=False) for number in numbers)


@dataclass(frozen=True, repr=False)
class PhePrivateKey(PrivateKey):
    """A private key with which phe decrypts; its public key's kernel is phe's too.

    phe keeps Python's lock, so threads do not make a decryption faster.
    """

    @cached_property
    def _phe_key(self) -> Any:
        return private_key_to_phe(self)

    def _plaintexts(self, integers: list[int], threads: int) -> list[int]:  # noqa: ARG002
        return [self._nearest_to_0(self._phe_key.raw_decrypt(int(integer))) for integer in integers]

    def _nth_power(self, unit: int) -> int:
        kernel = self.public_key.kernel
        return kernel.integers(kernel.nth_powers([unit]))[0]
