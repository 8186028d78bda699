"""Gradient descent on encrypted weights: each party has its own block of them, and nobody has the key.

    step  what                                                     where
    1     [[z_P]] = X_P [[w_P]]                                    each party by itself.
    2     <z> of all z_P, at score bits                            conversion.py, two rounds.
    3     <v> = sigmoid(z) - y, at residual bits                   in shares, two rounds (sharing/descent.py).
    4     [[v]]                                                    conversion.py, one round.
    5     [[w_P]] += X_P^T (-rate / rows) [[v]]                    each party by itself.

The scale of [[w]] never grows. Features and rate are rounded together to update bits. The penalty l2 is a public factor
s of all weights except the intercept: w = s u, the party keeps [[u]], and a step divides its rate by s.

Source: MATH 4.3; Wu, Cai, Xiao, Chen, Ooi 2020 (Falcon).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import LocalProtocolError, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Ciphertext
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.sums import columns_dot, rows_dot
from blindfit.algorithms.paillier.vectors import EncryptedVector, concatenate
from blindfit.algorithms.protocols.falcon.conversion import VALUE_BITS, Masking, field_mask_bits
from blindfit.algorithms.protocols.falcon.parameters import FEATURE_BOUND, WEIGHT_BITS, WEIGHT_BOUND, FalconParameters
from blindfit.algorithms.sharing.descent import Step
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.residual_bound import residual_bound
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.sharing.waves import WaveScales
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS

UPDATE_BITS = 16  # of rate / rows times a feature, in addition to those of rate / rows
FACTOR_BITS = 20  # of s, where weights go to shares
MOST_SHRINKING = 2.0**-20  # of s: beyond, u would need too many bits
ROUNDED_UNITS = 4  # at least as many as rounding adds to |v|
MOST_VALUES = 2**22  # most numbers that become ciphertexts: their masks then still hide at least 17 bits all together
RESIDUAL_WAVES = WaveScales(FEATURE_BITS + WEIGHT_BITS, 17, 20)

Floats = npt.NDArray[np.float64]
Features = npt.NDArray[np.int64]


# --- what is public ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EncryptedScales:
    """Scales and bounds of a whole training."""

    p: FalconParameters

    @cached_property
    def residual_bits(self) -> int:
        """The finest scale at which any |v| stays below 2^VALUE_BITS, also for a score out of range."""
        largest = residual_bound(self.p.waves, RESIDUAL_WAVES, 1.0) * 2.0**-RESIDUAL_WAVES.result
        return math.floor(math.log2(((1 << VALUE_BITS) - ROUNDED_UNITS) / largest))

    @cached_property
    def update_bits(self) -> int:
        rate = self.p.optimiser.learning_rate
        return UPDATE_BITS + max(0, math.floor(math.log2(max(self.p.batch_rows) / rate)))

    @property
    def weight_bits(self) -> int:
        return self.residual_bits + self.update_bits

    @cached_property
    def largest_weight(self) -> float:
        """Bound of every weight w, for all rows and labels."""
        rates = len(self.p.batch_rows) * sum(map(self.p.optimiser.rate, range(self.p.epochs)))
        most = 2.0 ** (VALUE_BITS - self.residual_bits) * FEATURE_BOUND
        return max(WEIGHT_BOUND, rates * most)

    @cached_property
    def last_factor(self) -> float:
        """s in the end."""
        rates = map(self.p.optimiser.rate, range(self.p.epochs))
        return math.prod((1 - rate * self.p.optimiser.l2) ** len(self.p.batch_rows) for rate in rates)

    @cached_property
    def opened(self) -> int:
        """Numbers that are opened under masks over the integers, at most."""
        of_an_epoch = self.p.train_rows + self.p.validation_rows + sum(self.p.columns)
        return self.p.epochs * of_an_epoch + self.p.test_rows + 2 * sum(self.p.columns)

    @property
    def encrypted_values(self) -> int:
        """Numbers that go from shares to ciphertexts."""
        return self.p.epochs * self.p.train_rows + sum(self.p.columns)

    @property
    def hidden_bits(self) -> float:
        """Bits that masks still hide of all of these numbers together."""
        each = field_mask_bits(len(self.p.columns)) - VALUE_BITS - 1
        return each - math.log2(max(self.encrypted_values, 1))

    def masking(self, largest: float, bits: int) -> Masking:
        """Return the masking of numbers up to `largest`, with `bits` bits after the point."""
        return Masking(bits + math.ceil(math.log2(largest)) + 1, self.opened, len(self.p.columns))

    @property
    def largest_score(self) -> float:
        return sum(self.p.columns) * FEATURE_BOUND * self.largest_weight

    def residual_step(self, step: Step) -> Step:
        """Return the step with a rate for which its residuals are sigmoid(z) - y."""
        return replace(step, rate=float(step.rows), scales=replace(step.scales, waves=RESIDUAL_WAVES))

    @property
    def residual_shift(self) -> int:
        return RESIDUAL_WAVES.result - self.residual_bits

    def check(self, key_bits: int) -> None:
        """Raise RangeError if encrypted weights do not support the training, or a key of this size is too small."""
        optimiser = self.p.optimiser
        refused = {
            "momentum": optimiser.momentum_of != 0,
            "l1": optimiser.l1 != 0,
            "linear models": self.p.is_linear,
            "class weights": self.p.weighted,
            "MACs": self.p.macs,
            "noise": self.p.noise is not None,
        }
        if any(refused.values()):
            named = ", ".join(name for name, is_so in refused.items() if is_so)
            raise RangeError(f"encrypted weights do not support {named}", hint='set falcon.backend = "shares"')
        if self.last_factor < MOST_SHRINKING:
            raise RangeError("l2 shrinks weights too far", hint="lower falcon.l2 or falcon.epochs")
        if self.encrypted_values > MOST_VALUES:
            raise RangeError(
                f"{self.encrypted_values:,} residuals would become ciphertexts; masks hide only {MOST_VALUES:,} well",
                hint='lower falcon.epochs, or set falcon.backend = "shares"',
            )
        if not self.slots(key_bits):
            raise RangeError(f"a score does not fit under a {key_bits}-bit key", hint="set falcon.key_bits = 3072")

    def slots(self, key_bits: int) -> int:
        """Scores in one ciphertext, at least."""
        masking = self.masking(self.largest_score, self.weight_bits + self.max_feature_bits)
        return (key_bits - 2) // masking.slot_bits

    @property
    def max_feature_bits(self) -> int:
        return FEATURE_BITS + extra_bits(self.last_factor)


def extra_bits(factor: float) -> int:
    """Return the bits that keep s x as fine as x."""
    return math.ceil(-math.log2(factor))


# --- at one party -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class OwnRows:
    """A party's own columns of some rows; no other party has any of them.

    Attributes:
        features: (rows, own columns), at FEATURE_BITS.
    """

    features: Features

    def __len__(self) -> int:
        return len(self.features)

    def columns(self, which: slice) -> OwnRows:
        return OwnRows(self.features[:, which])

    def rows(self, which: slice | npt.NDArray[np.int64]) -> OwnRows:
        return OwnRows(self.features[which])

    def dealer_mask(self) -> Elements:
        raise LocalProtocolError("rows that stay where they are have no mask")

    def times(self, _w: Share, _dealt: dict[str, Share], _masked: Elements, /) -> Share:
        raise LocalProtocolError("rows that stay where they are are not multiplied in shares")


@dataclass(frozen=True, repr=False)
class EncryptedState:
    """One party's block of a model.

    Attributes:
        own: [[u]], (own columns,).
        factor: s.
    """

    own: EncryptedVector[Ciphertext]
    factor: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON, for this party only: the ciphertexts are not fresh."""
        integers = self.own.public_key.kernel.integers(self.own.residues)
        whole = {"own": [format(integer, "x") for integer in integers], "factor": self.factor}
        return whole | {"frac_bits": self.own.frac_bits, "bound": str(self.own.bound)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], public_key: PublicKey) -> EncryptedState:
        """Restore a state; raise KeyError, TypeError or ValueError for JSON that `to_json` did not write."""
        residues = public_key.kernel.residues(int(number, 16) for number in content["own"])
        bits, bound = int(content["frac_bits"]), int(content["bound"])
        return cls(EncryptedVector(Ciphertext(public_key, residues), bits, bound), float(content["factor"]))


@dataclass(frozen=True, repr=False)
class EncryptedBlock:
    """One party's block of columns, and the steps that it does by itself.

    Args:
        penalised: 0 or 1 for each of its columns.
    """

    scales: EncryptedScales
    public_key: PublicKey
    penalised: npt.NDArray[np.int64]

    def beginning(self) -> EncryptedState:
        nothing = self.public_key.kernel.ones_plus([0] * len(self.penalised))
        return EncryptedState(EncryptedVector(Ciphertext(self.public_key, nothing), self.scales.weight_bits, 0))

    def _factors(self, factor: float) -> Floats:
        return np.where(self.penalised == 1, factor, 1.0)

    def scores(self, rows: OwnRows, state: EncryptedState) -> EncryptedVector[Ciphertext]:
        """Return [[z_P]]."""
        extra = extra_bits(state.factor)
        scaled = np.rint(np.ldexp(rows.features * self._factors(state.factor), extra)).astype(np.int64)
        return rows_dot(Fixed.from_integers(scaled, FEATURE_BITS + extra), state.own)

    def move(
        self, step: Step, rows: OwnRows, v_enc: EncryptedVector[Ciphertext], state: EncryptedState
    ) -> EncryptedState:
        factor = state.factor * (1 - step.rate * step.l2)
        each = -step.factor / self._factors(factor) * 2.0 ** (self.scales.update_bits - FEATURE_BITS)
        update = np.rint(rows.features * each).astype(np.int64)
        own = state.own + columns_dot(Fixed.from_integers(update, self.scales.update_bits), v_enc)
        return EncryptedState(own, factor)

    def weights(self, state: EncryptedState, before: int, after: int) -> EncryptedVector[Ciphertext]:
        """Return [[w]] of all columns, with zeros in the others' columns.

        Args:
            before, after: numbers of the others' columns.
        """
        bits = FACTOR_BITS + extra_bits(state.factor)
        factors = np.rint(np.ldexp(self._factors(state.factor), bits)).astype(np.int64)
        own = state.own.scale(Fixed.from_integers(factors, bits))
        return concatenate([self._zeros(before, own.frac_bits), own, self._zeros(after, own.frac_bits)])

    def _zeros(self, count: int, frac_bits: int) -> EncryptedVector[Ciphertext]:
        nothing = self.public_key.kernel.ones_plus([0] * count)
        return EncryptedVector(Ciphertext(self.public_key, nothing), frac_bits, 0)
