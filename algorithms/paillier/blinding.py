"""Factors for ciphertexts, multiplied on before p or q touches them: no time taken reveals a base that a peer chose.

Source: Kocher 1996, "Timing attacks on implementations of Diffie-Hellman, RSA, DSS and other systems", section 10:
rho, rho^2, rho^4, ..: a square for each next ciphertext; a fresh factor would cost as much as its decryption.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from blindfit.algorithms.paillier.kernel import Kernel, Residues

MOST_SQUARES = 32  # of one draw; then a fresh draw, as in OpenSSL


class Blinding:
    """Encryptions of 0, one for each ciphertext; no two are the same."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._lock = threading.Lock()
        self._rho: Residues | None = None
        self._squares = 0

    def take(self, count: int, fresh: Callable[[], int]) -> Residues:
        """Return `count` encryptions of 0; `fresh` draws an r^n."""
        with self._lock:
            return Residues.concatenate([self._next(fresh) for _ in range(count)])

    def _next(self, fresh: Callable[[], int]) -> Residues:
        if self._rho is None or self._squares >= MOST_SQUARES:
            self._rho, self._squares = self._kernel.residues([fresh()]), 0
        else:
            self._rho, self._squares = self._kernel.products(self._rho, self._rho), self._squares + 1
        return self._rho
