"""The seats of a computation in shares: the work of a data party, and the work of the dealer meanwhile.

Both go through the same program (program.py), so the dealer deals the items that the data parties need, in the same
order. The dealer has no share, no opened value, and nothing else of the data.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.falcon.check import exchange_with_all, run_check
from blindfit.algorithms.protocols.falcon.encrypted_descent import EncryptedState
from blindfit.algorithms.protocols.falcon.messages import ChosenPoint, Correction, GoesOn, MaskedInput, OpenedShares
from blindfit.algorithms.protocols.falcon.parameters import WEIGHT_BITS
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.sharing import descent, products, scoring
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.computing import Party
from blindfit.algorithms.sharing.dealing import Arrays, Dealer, Expander, Item, Shape
from blindfit.algorithms.sharing.descent import Items, Labels, State, Step
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.mac_check import Opened
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.products import DealerMatrix, MaskedMatrix, SecretMatrix
from blindfit.algorithms.sharing.shares import Holder, Share, join

PIECE = 2**20  # elements of one message: 8 MiB
LEAST_PIECE = 2**16  # corrections wait until there are at least so many, or until a step is done
ROUNDS_OF_A_CHECK = 4  # commitments, seeds, commitments, residues
MOST_UNCHECKED = 2**23  # opened elements that are kept for the next check, with their MACs


class Seat(Party, Protocol):
    """One seat: a `Party` whose items have unique names, and operations on data without masks.

    Attributes:
        coefficients: coefficients of the last check, which nobody chose.
    """

    coefficients: Seed

    async def put_in_matrix(self, widths: Sequence[int], rows: int, mine: Elements | None, /) -> SecretMatrix:
        """Return the parties' blocks of columns, side by side; `mine` is this party's, (rows, its width)."""
        ...

    async def put_in(self, name: str, owner: int, shape: Shape, mine: Elements | None, /) -> Share:
        """Return a share of an array that only one party knows."""
        ...

    async def move(
        self, step: Step, batch: SecretMatrix, labels: Labels, state: ModelState, noise: Share | None = None, /
    ) -> tuple[ModelState, Share]:
        """Take one step of descent, as `descent.move`."""
        ...

    async def weights(self, name: str, state: ModelState, /) -> Share:
        """Return the weights of all columns, at WEIGHT_BITS."""
        ...

    def beginning(self, columns: int, /) -> ModelState:
        """Return weights of zero."""
        ...

    async def with_weights(self, name: str, weights: Share, bits: int, /) -> ModelState:
        """Return a model with these weights, for scores.

        Args:
            bits: bits after the point of the weights.
        """
        ...

    async def scores(self, name: str, rows: SecretMatrix, state: ModelState, /) -> Share:
        """Return X w."""
        ...

    async def check(self) -> None:
        """Check all openings since the last check.

        Raises:
            MacCheckFailed, MalformedMessage: an opening is wrong.
        """
        ...

    async def reveal(self, share: Share) -> Elements:
        """Open a share to all data parties, after a check of all before it. The dealer gets zeros."""
        ...

    async def reveal_to_owners(self, name: str, owned: Sequence[tuple[int, Share]]) -> dict[int, Elements]:
        """Open each array only to its owner's place, with a check of all. Return the arrays of this seat."""
        ...

    async def agree(self, go_on: bool, /) -> bool:
        """Return whether to go on. The data parties know it, and the first of them informs the dealer."""
        ...

    async def share_choice(self, point: int | None, /) -> int:
        """Return the grid point that the first data party sends to all seats.

        Args:
            point: the point that the first data party chose; None at the others.
        """
        ...


def coefficients_of(run: str) -> Seed:
    """Return coefficients for use before a check, and without MACs: no party knows the others' inputs."""
    return Seed(hashlib.sha256(b"blindfit coefficients v1/" + run.encode()).digest())


ModelState = State | EncryptedState


def in_shares(state: ModelState) -> State:
    if not isinstance(state, State):
        raise LocalProtocolError("this model is encrypted")
    return state


def zeros(shape: Shape) -> Share:
    return Share(np.zeros(shape, dtype=np.uint64), None)


class _EverySeat:
    """The steps that all seats have in common. A model is in shares, unless a seat overrides it."""

    holder: Holder

    def beginning(self, columns: int, /) -> ModelState:
        nothing = self.holder.public(np.zeros(columns, dtype=np.uint64))
        return State(nothing, nothing)

    async def weights(self, _name: str, state: ModelState, /) -> Share:
        return in_shares(state).weights

    async def with_weights(self, _name: str, weights: Share, bits: int, /) -> ModelState:
        return State(weights.times_power_of_two(WEIGHT_BITS - bits), zeros(weights.shape))

    async def scores(self: Party, name: str, rows: SecretMatrix, state: ModelState, /) -> Share:
        return await scoring.scores(self, name, rows, in_shares(state).weights)

    async def reveal(self: Seat, share: Share) -> Elements:
        await self.check()
        (value,) = await self.open_(share)
        await self.check()
        return value


class _Names:
    """Unique names of items: the name of the run, which is unique, and the item's number in it (MATH 4.5)."""

    def __init__(self, run: str) -> None:
        self._run, self._dealt = run, 0

    def name_item(self, item: Item) -> Item:
        self._dealt += 1
        return replace(item, name=f"{self._run}/{self._dealt}/{item.name}")


# --- a data party ---------------------------------------------------------------------------------------------------


class DataSeat(_EverySeat):
    """The seat of a data party.

    Args:
        parties: the data parties; the first gets the corrections.
        run: name of the session, which no session had before under these seeds.
        check_begun: see `run_check`.
    """

    def __init__(
        self,
        me: str,
        parties: Sequence[str],
        key_node: str,
        seed: Seed,
        run: str,
        channel: Channel,
        *,
        macs: bool,
        uniform: UniformInt = system_uniform,
        check_begun: Callable[[bool], None] = lambda _open: None,
    ) -> None:
        self._check_begun = check_begun
        self.me, self.place = me, list(parties).index(me)
        self._others, self._key_node = [name for name in parties if name != me], key_node
        self._parties, self._run, self._channel, self._uniform = list(parties), run, channel, uniform
        self._expander = Expander(seed, self.place, macs)
        self._macs, self._names, self._opened, self._checks = macs, _Names(run), Opened(), 0
        self._dealt: list[Elements] = []
        self.coefficients = coefficients_of(run)
        self.rounds = 0
        self.holder: Holder = self._expander.holder

    async def take_dealt(self, item: Item) -> dict[str, Share]:
        return await self._shares(self._names.name_item(item))

    async def _shares(self, item: Item) -> dict[str, Share]:
        correction = await self._correction(item.correction_length(macs=self._macs)) if self.place == 0 else None
        return self._expander.shares(item, correction)

    async def _correction(self, length: int) -> Elements:
        there = sum(map(len, self._dealt))
        while there < length:
            piece = (await self._channel.receive(self._key_node, Correction)).values
            if not 0 < len(piece) <= 2 * PIECE:
                raise MalformedMessage(
                    culprit=self._key_node, field="values", reason="is empty or too long", step="Correction"
                )
            self._dealt.append(piece)
            there += len(piece)
        whole = (
            np.concatenate([np.zeros(0, dtype=np.uint64), *self._dealt]) if len(self._dealt) != 1 else self._dealt[0]
        )
        self._dealt = [whole[length:]] if len(whole) > length else []
        return whole[:length]

    def require_all_used(self) -> None:
        """Raise MalformedMessage if the dealer sent more than the program takes."""
        if self._dealt:
            raise MalformedMessage(
                culprit=self._key_node, field="values", reason="was not requested", step="Correction"
            )

    async def open_(self, *shares: Share) -> list[Elements]:
        mine = join([share.reshape(math.prod(share.shape)) for share in shares])
        told = await exchange_with_all(OpenedShares(mine.value), self._others, OpenedShares, self._channel)
        for other, message in told.items():
            if message.values.shape != mine.shape:
                raise MalformedMessage(
                    culprit=other, field="values", reason="has the wrong length", step="OpenedShares"
                )
        whole = f.total([mine.value, *(message.values for message in told.values())])
        self.rounds += 1
        if self._macs:
            self._opened.add(whole, mine)
        ends = np.cumsum([share.value.size for share in shares])
        parts = np.split(whole, ends[:-1])
        if len(self._opened) > MOST_UNCHECKED:
            await self.check()
        return [part.reshape(share.shape) for part, share in zip(parts, shares, strict=True)]

    async def put_in_matrix(self, widths: Sequence[int], rows: int, mine: Elements | None) -> SecretMatrix:
        blocks = []
        for place, width in enumerate(widths):
            own = mine if place == self.place else None
            blocks.append(await self._put_in("features", place, (rows, width), own))
        masks = [mask for _, mask in blocks]
        macs = [mask.mac for mask in masks if mask.mac is not None]
        mask = Share(np.hstack([mask.value for mask in masks]), np.hstack(macs) if macs else None)
        return MaskedMatrix(np.hstack([masked for masked, _ in blocks]), mask)

    async def put_in(self, name: str, owner: int, shape: Shape, mine: Elements | None) -> Share:
        masked, mask = await self._put_in(name, owner, shape, mine)
        return self.holder.plus(mask, masked)

    async def _put_in(self, name: str, owner: int, shape: Shape, mine: Elements | None) -> tuple[Elements, Share]:
        """Return the owner's input less the mask, and this party's share of the mask."""
        item = self._names.name_item(products.mask_item(name, owner, shape))
        shares = await self._shares(item)
        if owner == self.place:
            if mine is None or mine.shape != shape:
                raise LocalProtocolError(f"what this party puts in is not of shape {shape}")
            masked = f.subtract(mine, self._expander.derive_known(item, "u"))
            await self._tell(masked.ravel())
        else:
            masked = (await self._hear(self._parties[owner], math.prod(shape))).reshape(shape)
        if self._macs:
            self._opened.hear(masked)
        return masked, shares["u"]

    async def _tell(self, values: Elements) -> None:
        for start in range(0, len(values), PIECE):
            for other in self._others:
                await self._channel.send(other, MaskedInput(values[start : start + PIECE]))

    async def _hear(self, owner: str, length: int) -> Elements:
        pieces: list[Elements] = []
        for start in range(0, length, PIECE):
            piece = (await self._channel.receive(owner, MaskedInput)).values
            if len(piece) != min(PIECE, length - start):
                raise MalformedMessage(culprit=owner, field="values", reason="has the wrong length", step="MaskedInput")
            pieces.append(piece)
        return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.uint64)

    async def move(
        self, step: Step, batch: SecretMatrix, labels: Labels, state: ModelState, noise: Share | None = None
    ) -> tuple[ModelState, Share]:
        if not isinstance(batch, MaskedMatrix):
            raise LocalProtocolError("a data party has its side of the matrix")
        return await descent.move(self, step, batch, labels, in_shares(state), noise)

    async def check(self) -> None:
        if not self._macs:
            return
        self._checks += 1
        context = f"{self._run}/check {self._checks}".encode()
        self.rounds += ROUNDS_OF_A_CHECK
        self.coefficients = await run_check(
            self._opened,
            self.holder,
            self.me,
            self._others,
            context,
            self._channel,
            self._uniform,
            self._check_begun,
        )

    async def reveal_to_owners(self, name: str, owned: Sequence[tuple[int, Share]]) -> dict[int, Elements]:
        await self.check()
        items = [self._names.name_item(_hiding_item(name, owner, share.shape)) for owner, share in owned]
        hidden = [share + (await self._shares(item))["u"] for (_, share), item in zip(owned, items, strict=True)]
        opened = await self.open_(*hidden)
        await self.check()
        return {
            number: f.subtract(value, self._expander.derive_known(item, "u"))
            for number, ((owner, _), item, value) in enumerate(zip(owned, items, opened, strict=True))
            if owner == self.place
        }

    async def agree(self, go_on: bool) -> bool:
        if self.place == 0:
            await self._channel.send(self._key_node, GoesOn(int(go_on)))
        return go_on

    async def share_choice(self, point: int | None) -> int:
        if point is None:
            return (await self._channel.receive(self._parties[0], ChosenPoint)).point
        for other in (*self._others, self._key_node):
            await self._channel.send(other, ChosenPoint(point))
        return point


def _hiding_item(name: str, owner: int, shape: Shape) -> Item:
    return products.mask_item(f"reveal/{name}", owner, shape)


# --- the dealer -------------------------------------------------------------------------------------------------------


class BlindSeat(_EverySeat, ABC):
    """A seat without data: all its shares and opened values are zeros."""

    def __init__(self, run: str) -> None:
        self.coefficients, self.holder = coefficients_of(run), Holder(first=False, mac_key_share=None)

    @abstractmethod
    async def deal(self, item: Item) -> None:
        """Handle an item that the program asks for."""

    async def take_dealt(self, item: Item) -> dict[str, Share]:
        await self.deal(item)
        return {name: zeros(shape) for name, shape in item.shapes.items()}

    async def open_(self, *shares: Share) -> list[Elements]:
        return [np.zeros(share.shape, dtype=np.uint64) for share in shares]

    async def put_in(self, name: str, owner: int, shape: Shape, _mine: Elements | None, /) -> Share:
        await self.deal(products.mask_item(name, owner, shape))
        return zeros(shape)

    async def check(self) -> None:
        """Do nothing: a seat without data opens nothing."""

    async def reveal_to_owners(self, name: str, owned: Sequence[tuple[int, Share]]) -> dict[int, Elements]:
        await self.check()
        for owner, share in owned:
            await self.deal(_hiding_item(name, owner, share.shape))
        await self.open_(*(share for _, share in owned))
        await self.check()
        return {}

    async def share_choice(self, _point: int | None, /) -> int:
        return 0


class DealerSeat(BlindSeat):
    """The key node's seat: it deals the program's items ahead of need, and learns only whether to go on."""

    def __init__(self, seeds: Sequence[Seed], first: str, run: str, channel: Channel, *, macs: bool) -> None:
        super().__init__(run)
        self._dealer, self._first, self._channel, self._names = Dealer(seeds, macs), first, channel, _Names(run)
        self._waiting: list[Elements] = []

    async def deal(self, item: Item) -> None:
        await self._deal(self._names.name_item(item))

    async def _deal(self, item: Item) -> Arrays:
        arrays, correction = self._dealer.deal(item)
        self._waiting.append(correction)
        if sum(map(len, self._waiting)) >= LEAST_PIECE:
            await self.flush()
        return arrays

    async def flush(self) -> None:
        whole = np.concatenate(self._waiting) if self._waiting else np.zeros(0, dtype=np.uint64)
        self._waiting = []
        for start in range(0, len(whole), PIECE):
            await self._channel.send(self._first, Correction(whole[start : start + PIECE]))

    async def put_in_matrix(self, widths: Sequence[int], rows: int, _mine: Elements | None, /) -> SecretMatrix:
        items = [products.mask_item("features", place, (rows, width)) for place, width in enumerate(widths)]
        return DealerMatrix(np.hstack([(await self._deal(self._names.name_item(item)))["u"] for item in items]))

    async def move(
        self, step: Step, batch: SecretMatrix, _labels: Labels, state: ModelState, _noise: Share | None = None, /
    ) -> tuple[ModelState, Share]:
        for item in Items.of(step, batch.dealer_mask).all:
            await self.deal(item)
        if step.l1:
            await descent.draw_to_zero(self, step, in_shares(state).weights)
        await self.flush()
        return state, zeros((step.rows,))

    async def agree(self, _go_on: bool, /) -> bool:
        await self.flush()
        said = (await self._channel.receive(self._first, GoesOn)).go_on
        if said not in (0, 1):
            raise MalformedMessage(culprit=self._first, field="go_on", reason="is not 0 or 1", step="GoesOn")
        return bool(said)

    async def share_choice(self, _point: int | None, /) -> int:
        await self.flush()
        return (await self._channel.receive(self._first, ChosenPoint)).point
