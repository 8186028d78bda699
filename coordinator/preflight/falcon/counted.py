"""A seat that goes through the program of a training in shares with zeros, and counts what the others would do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blindfit.algorithms.protocols.falcon.seats import MOST_UNCHECKED, ROUNDS_OF_A_CHECK, BlindSeat, zeros
from blindfit.algorithms.sharing import descent, products
from blindfit.algorithms.sharing.dealing import Item, Shape
from blindfit.algorithms.sharing.descent import Labels, State, Step
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.products import DealerMatrix, MaskedMatrix, SecretMatrix
from blindfit.algorithms.sharing.shares import Share


@dataclass(frozen=True, slots=True)
class Counted:
    """
    Attributes:
        rounds: in each, every data party sends a message to every other, and waits for theirs.
        dealt: elements that the dealer sends to the first data party.
        opened: elements of which each data party sends its share to every other.
        put_in: elements that their owner sends to every other data party.
    """

    rounds: int = 0
    dealt: int = 0
    opened: int = 0
    put_in: int = 0

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            self.rounds + other.rounds,
            self.dealt + other.dealt,
            self.opened + other.opened,
            self.put_in + other.put_in,
        )

    def __sub__(self, other: Counted) -> Counted:
        return self + other.times(-1)

    def times(self, number: int) -> Counted:
        return Counted(number * self.rounds, number * self.dealt, number * self.opened, number * self.put_in)


class CountingSeat(BlindSeat):
    """As a data party's, without shares: its holder has no MACs, whether or not they are counted.

    Attributes:
        counted: so far.
    """

    def __init__(self, *, macs: bool) -> None:
        super().__init__("counted")
        self._macs, self._unchecked = macs, 0
        self._openings: list[int] = []
        self._of_a_step: dict[tuple[int, float, float, float], tuple[int, list[int]]] = {}  # dealt, and what is opened
        self.counted = Counted()

    async def deal(self, item: Item) -> None:
        self.counted += Counted(dealt=item.correction_length(macs=self._macs))

    async def opened(self, *shares: Share) -> list[Elements]:
        await self._open(sum(share.value.size for share in shares))
        return await super().opened(*shares)

    async def _open(self, elements: int) -> None:
        self._openings.append(elements)
        self.counted += Counted(rounds=1, opened=elements)
        self._unchecked += elements
        if self._unchecked > MOST_UNCHECKED:
            await self.checked()

    async def put_in_matrix(self, widths: Sequence[int], rows: int, _mine: Elements | None, /) -> SecretMatrix:
        """Without the arrays: all rows of all parties at once are large."""
        for place, width in enumerate(widths):
            await self.deal(products.mask_item("features", place, (rows, width)))
            self.counted += Counted(put_in=rows * width)
        return DealerMatrix(np.broadcast_to(np.uint64(0), (rows, sum(widths))))

    async def put_in(self, name: str, owner: int, shape: Shape, mine: Elements | None, /) -> Share:
        self.counted += Counted(put_in=math.prod(shape))
        return await super().put_in(name, owner, shape, mine)

    async def moved(
        self, step: Step, _batch: SecretMatrix, labels: Labels, state: State, _noise: Share | None = None, /
    ) -> tuple[State, Share]:
        """Steps of equal sizes are gone through once."""
        alike = (step.rows, step.l2, step.l1, step.momentum)
        if alike in self._of_a_step:
            dealt, openings = self._of_a_step[alike]
            self.counted += Counted(dealt=dealt)
            for elements in openings:  # one by one, as a check may fall between them
                await self._open(elements)
            return state, zeros((step.rows,))
        before, self._openings = self.counted.dealt, []
        nothing = np.zeros((step.rows, step.columns), dtype=np.uint64)
        await descent.move(self, step, MaskedMatrix(nothing, Share(nothing, None)), labels, state)
        self._of_a_step[alike] = self.counted.dealt - before, list(self._openings)
        return state, zeros((step.rows,))

    async def checked(self) -> None:
        if self._macs:
            self.counted += Counted(rounds=ROUNDS_OF_A_CHECK)
        self._unchecked = 0

    async def agreed(self, go_on: bool, /) -> bool:
        return go_on
