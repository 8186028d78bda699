"""A data party that runs the program of a training on secret shares with zeros, and counts all operations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from blindfit.algorithms.protocols.falcon import EncryptedScales, FalconParameters
from blindfit.algorithms.protocols.falcon.seats import (
    MOST_UNCHECKED,
    ROUNDS_OF_A_CHECK,
    BlindSeat,
    ModelState,
    in_shares,
    zeros,
)
from blindfit.algorithms.protocols.falcon.threshold_seats import BlindWeights, residuals
from blindfit.algorithms.sharing import descent, products
from blindfit.algorithms.sharing.dealing import Item, Shape
from blindfit.algorithms.sharing.descent import Labels, Step
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.products import DealerMatrix, MaskedMatrix, SecretMatrix
from blindfit.algorithms.sharing.shares import Share


@dataclass(frozen=True, slots=True)
class Counted:
    """Counted operations.

    Attributes:
        rounds: number of rounds; in each, every data party sends a message to every other, and waits for the others.
        dealt: elements that the dealer sends to the first data party.
        opened: elements of which each data party sends its share to every other.
        put_in: elements that their owner sends to every other data party.
        ciphertexts: ciphertexts that each data party sends to every other.
    """

    rounds: int = 0
    dealt: int = 0
    opened: int = 0
    put_in: int = 0
    ciphertexts: int = 0

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            self.rounds + other.rounds,
            self.dealt + other.dealt,
            self.opened + other.opened,
            self.put_in + other.put_in,
            self.ciphertexts + other.ciphertexts,
        )

    def __sub__(self, other: Counted) -> Counted:
        return self + other.times(-1)

    def times(self, number: int) -> Counted:
        return Counted(*(number * counted for counted in astuple(self)))


class CountingSeat(BlindSeat):
    """A data party without shares. It has no MACs, also if MACs are counted.

    Attributes:
        counted: operations up to now.
    """

    def __init__(self, *, macs: bool) -> None:
        super().__init__("counted")
        self._macs, self._unchecked = macs, 0
        self._openings: list[int] = []
        self._of_a_step: dict[
            tuple[int, float, float, float], tuple[int, list[int]]
        ] = {}  # elements dealt, and openings
        self.counted = Counted()

    async def deal(self, item: Item) -> None:
        self.counted += Counted(dealt=item.correction_length(macs=self._macs))

    async def open_(self, *shares: Share) -> list[Elements]:
        await self._open(sum(share.value.size for share in shares))
        return await super().open_(*shares)

    async def _open(self, elements: int) -> None:
        self._openings.append(elements)
        self.counted += Counted(rounds=1, opened=elements)
        self._unchecked += elements
        if self._unchecked > MOST_UNCHECKED:
            await self.check()

    async def put_in_matrix(self, widths: Sequence[int], rows: int, _mine: Elements | None, /) -> SecretMatrix:
        """Count a matrix without making its arrays: all rows of all parties at once are large."""
        for place, width in enumerate(widths):
            await self.deal(products.mask_item("features", place, (rows, width)))
            self.counted += Counted(put_in=rows * width)
        return DealerMatrix(np.broadcast_to(np.uint64(0), (rows, sum(widths))))

    async def put_in(self, name: str, owner: int, shape: Shape, mine: Elements | None, /) -> Share:
        self.counted += Counted(put_in=math.prod(shape))
        return await super().put_in(name, owner, shape, mine)

    async def move(
        self, step: Step, _batch: SecretMatrix, labels: Labels, state: ModelState, _noise: Share | None = None, /
    ) -> tuple[ModelState, Share]:
        """Count a step. Steps of equal sizes are run once."""
        alike = (step.rows, step.l2, step.l1, step.momentum)
        if alike in self._of_a_step:
            dealt, openings = self._of_a_step[alike]
            self.counted += Counted(dealt=dealt)
            for elements in openings:  # one by one, because a check may come between them
                await self._open(elements)
            return state, zeros((step.rows,))
        before, self._openings = self.counted.dealt, []
        nothing = np.zeros((step.rows, step.columns), dtype=np.uint64)
        await descent.move(self, step, MaskedMatrix(nothing, Share(nothing, None)), labels, in_shares(state))
        self._of_a_step[alike] = self.counted.dealt - before, list(self._openings)
        return state, zeros((step.rows,))

    async def check(self) -> None:
        if self._macs:
            self.counted += Counted(rounds=ROUNDS_OF_A_CHECK)
        self._unchecked = 0

    async def agree(self, go_on: bool, /) -> bool:
        return go_on


class CountingThresholdSeat(BlindWeights, CountingSeat):
    """A counting data party with encrypted weights."""

    def __init__(self, p: FalconParameters, key_bits: int) -> None:
        super().__init__(macs=False)
        self._scales, self._key_bits = EncryptedScales(p), key_bits

    async def move(
        self, step: Step, batch: SecretMatrix, labels: Labels, state: ModelState, _noise: Share | None = None, /
    ) -> tuple[ModelState, Share]:
        await self.scores(step.name, batch, state)
        self.counted += Counted(ciphertexts=step.rows)  # of masks, in addition to the masked scores
        _, coarse = await residuals(self, self._scales, step, zeros((step.rows,)), labels)
        await self._open(step.rows)
        return state, coarse

    async def scores(self, name: str, rows: SecretMatrix, state: ModelState, /) -> Share:
        self._count_conversion(len(rows), self._scales.largest_score)
        return await super().scores(name, rows, state)

    async def weights(self, name: str, state: ModelState, /) -> Share:
        found = await super().weights(name, state)
        self._count_conversion(len(found), self._scales.largest_weight)
        return found

    async def with_weights(self, name: str, weights: Share, bits: int, /) -> ModelState:
        self.counted += Counted(rounds=1, ciphertexts=len(weights))
        await self._open(len(weights))
        return await super().with_weights(name, weights, bits)

    def _count_conversion(self, numbers: int, largest: float) -> None:
        """Count the packed and masked ciphertexts, and the partial decryptions."""
        slot_bits = self._scales.masking(largest, self._scales.weight_bits + self._scales.max_feature_bits).slot_bits
        slots = (self._key_bits - 2) // slot_bits
        self.counted += Counted(rounds=2, ciphertexts=2 * -(-numbers // slots))


def counting_seat(p: FalconParameters) -> CountingSeat:
    return CountingSeat(macs=p.macs) if p.key_bits is None else CountingThresholdSeat(p, p.key_bits)
