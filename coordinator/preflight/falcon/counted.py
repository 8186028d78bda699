"""A seat that goes through the program of a training in shares with zeros, and counts what the others would do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blindfit.algorithms.protocols.falcon.seats import MOST_UNCHECKED, coefficients_of, zeros
from blindfit.algorithms.sharing import descent, products
from blindfit.algorithms.sharing.dealing import Item, Shape
from blindfit.algorithms.sharing.descent import State, Step
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.products import DealerMatrix, MaskedMatrix, SecretMatrix
from blindfit.algorithms.sharing.shares import Holder, Share

ROUNDS_OF_A_CHECK = 4  # algorithms/protocols/falcon/check.py: commitments, seeds, commitments, residues


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


class CountingSeat:
    """As a data party's, without shares: its holder has no MACs, whether or not they are counted.

    Attributes:
        counted: so far.
    """

    def __init__(self, *, macs: bool) -> None:
        self._macs, self._unchecked = macs, 0
        self._openings: list[int] = []
        self._of_a_step: dict[tuple[int, float, float], tuple[int, list[int]]] = {}  # dealt, and what is opened
        self.coefficients = coefficients_of("counted")
        self.holder = Holder(first=False, mac_key_share=None)
        self.counted = Counted()

    async def dealt(self, item: Item) -> dict[str, Share]:
        self.counted += Counted(dealt=item.correction_length(macs=self._macs))
        return {name: zeros(shape) for name, shape in item.shapes.items()}

    async def opened(self, *shares: Share) -> list[Elements]:
        await self._open(sum(share.value.size for share in shares))
        return [np.zeros(share.shape, dtype=np.uint64) for share in shares]

    async def _open(self, elements: int) -> None:
        self._openings.append(elements)
        self.counted += Counted(rounds=1, opened=elements)
        self._unchecked += elements
        if self._unchecked > MOST_UNCHECKED:
            await self.checked()

    async def put_in_matrix(self, widths: Sequence[int], rows: int, mine: Elements | None) -> SecretMatrix:  # noqa: ARG002
        for place, width in enumerate(widths):
            await self._put_in("features", place, (rows, width))
        return _matrix_of_zeros(rows, sum(widths))

    async def put_in(self, name: str, owner: int, shape: Shape, mine: Elements | None) -> Share:  # noqa: ARG002
        await self._put_in(name, owner, shape)
        return zeros(shape)

    async def _put_in(self, name: str, owner: int, shape: Shape) -> None:
        """Without the arrays: all rows of all parties at once are large."""
        length = products.mask_item(name, owner, shape).correction_length(macs=self._macs)
        self.counted += Counted(dealt=length, put_in=math.prod(shape))

    async def moved(self, step: Step, batch: SecretMatrix, labels: Share, state: State) -> tuple[State, Share]:  # noqa: ARG002
        """Steps of equal sizes are gone through once."""
        alike = (step.rows, step.l2, step.momentum)
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

    async def revealed(self, share: Share) -> Elements:
        await self.checked()
        (value,) = await self.opened(share)
        await self.checked()
        return value

    async def revealed_to_owners(self, name: str, owned: Sequence[tuple[int, Share]]) -> dict[int, Elements]:
        await self.checked()
        for owner, share in owned:
            item = products.mask_item(f"reveal/{name}", owner, share.shape)
            self.counted += Counted(dealt=item.correction_length(macs=self._macs))
        await self._open(sum(share.value.size for _, share in owned))
        await self.checked()
        return {}

    async def agreed(self, go_on: bool) -> bool:
        return go_on


def _matrix_of_zeros(rows: int, columns: int) -> SecretMatrix:
    """Which takes no memory."""
    return DealerMatrix(np.broadcast_to(np.uint64(0), (rows, columns)))
