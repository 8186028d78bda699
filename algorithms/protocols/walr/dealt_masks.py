"""Masks of rows, of their bits and of labels, which the key node deals in step 0 of WALR on shared rows.

The active party sends the key node and both servers its number of rows and columns, and their norm bound. The servers
compare them, so nobody deals for other rows than requested. The table, and what each party learns, is in
shared_rows.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blindfit.algorithms.errors import MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import MAX_COLUMNS, MAX_NORM_BOUND, MAX_ROWS
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols.falcon.messages import (
    Correction,
    DealtSeed,
    MaskedInput,
    OpenedShares,
)
from blindfit.algorithms.protocols.walr.messages import (
    AggregateOpen,
    Dimensions,
)
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import short_rows
from blindfit.algorithms.sharing.dealing import Arrays, Dealer, Expander, Item
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.prg import SEED_BYTES, Seed
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.sharing.short_rows import Plan, Verifier

PIECE = 2**18  # elements of one message: 2 MiB


def plan_of(said: Dimensions | AggregateOpen, *, culprit: str = "") -> Plan:
    """Return the plan for these dimensions.

    Raises:
        MalformedMessage: a number that `culprit` sent is out of range.
        RangeError: our own numbers are out of range.
    """
    step = type(said).__name__
    for name, most in (("n_rows", MAX_ROWS), ("n_columns", MAX_COLUMNS), ("norm_bound", MAX_NORM_BOUND)):
        if not 1 <= getattr(said, name) <= most:
            raise MalformedMessage(culprit=culprit, field=name, reason="is out of range", step=step)
    try:
        return Plan(said.n_rows, said.n_columns, said.norm_bound)
    except RangeError as error:
        if not culprit:
            raise
        raise MalformedMessage(culprit=culprit, field="norm_bound", reason=error.message, step=step) from None


def labels_item(plan: Plan, block: int, prover: Seed | None) -> Item:
    """Deal the mask of a block's labels, and its product with the masks of the block's rows."""
    rows = plan.blocks[block]

    def derive(drawn: Arrays) -> Arrays:
        masks = f.contiguous(short_rows.row_masks(plan, block, prover)[:, : plan.n_columns])
        return {"product": f.transposed_times(masks, drawn["mask"])}

    random, derived = {"mask": (rows.stop - rows.start,)}, {"product": (plan.n_columns,)}
    return Item(f"labels/{block}", random=random, derived=derived, derive=derive)


async def ask_for_masks(plan: Plan, others: Sequence[str], channel: Channel) -> None:
    """Do step 0 at the active party, for the dealer and the servers."""
    await _tell_dimensions(plan, others, channel)


async def _tell_dimensions(plan: Plan, others: Sequence[str], channel: Channel) -> None:
    for other in others:
        await channel.send(other, Dimensions(plan.n_rows, plan.n_columns, plan.norm_bound))


async def receive_plan(active: str, channel: Channel) -> Plan:
    """Do step 0 at all other parties."""
    return plan_of(await channel.receive(active, Dimensions), culprit=active)


async def run_key_node(plan: Plan, active: str, servers: Sequence[str], channel: Channel) -> None:
    """Do step 0 at the dealer, which forgets the seeds when it returns."""
    await _tell_dimensions(plan, servers, channel)
    prover, seeds = Seed.random(), [Seed.random() for _ in servers]
    for party, seed in ((active, prover), *zip(servers, seeds, strict=True)):
        await channel.send(party, DealtSeed(seed.octets))
    checked, plain = Dealer(seeds), Dealer(seeds, macs=False)
    for block in range(len(plan.blocks)):
        for dealer, item_of in ((checked, short_rows.rows_item), (checked, short_rows.bits_item), (plain, labels_item)):
            await send_pieces(servers[0], Correction, dealer.deal(item_of(plan, block, prover))[1], channel)


async def send_pieces(
    to: str, kind: type[Correction | MaskedInput | OpenedShares], values: Elements, channel: Channel
) -> None:
    for start in range(0, len(values), PIECE):
        await channel.send(to, kind(values[start : start + PIECE]))


async def receive_pieces(sender: str, kind: type[Correction | OpenedShares], length: int, channel: Channel) -> Elements:
    pieces: list[Elements] = []
    for start in range(0, length, PIECE):
        piece = (await channel.receive(sender, kind)).values
        if piece.shape != (min(PIECE, length - start),):
            raise MalformedMessage(culprit=sender, field="values", reason="have a wrong length", step=kind.__name__)
        pieces.append(piece)
    return np.concatenate(pieces)


async def receive_seed(key_node: str, channel: Channel) -> Seed:
    octets = (await channel.receive(key_node, DealtSeed)).seed
    if len(octets) != SEED_BYTES:
        raise MalformedMessage(culprit=key_node, field="seed", reason="has the wrong length", step="DealtSeed")
    return Seed(octets)


@dataclass(frozen=True, repr=False)
class Dealt:
    """The share of the dealt masks that one server has.

    Attributes:
        place: 0 is the server that gets corrections.
        corrections: corrections of each block's items, in their order; None at the other server.
    """

    plan: Plan
    seed: Seed
    place: int
    corrections: Sequence[tuple[Elements, Elements, Elements]] | None

    @property
    def verifier(self) -> Verifier:
        return Verifier(self.plan, Expander(self.seed, self.place).holder)

    def rows(self, block: int) -> dict[str, Share]:
        return self._shares(short_rows.rows_item(self.plan, block, None), block, 0)

    def bits(self, block: int) -> dict[str, Share]:
        return self._shares(short_rows.bits_item(self.plan, block, None), block, 1)

    def labels(self, block: int) -> dict[str, Share]:
        return self._shares(labels_item(self.plan, block, None), block, 2, macs=False)

    def _shares(self, item: Item, block: int, which: int, *, macs: bool = True) -> dict[str, Share]:
        correction = None if self.corrections is None else self.corrections[block][which]
        return Expander(self.seed, self.place, macs).shares(item, correction)


async def receive_dealt(plan: Plan, place: int, active: str, key_node: str, channel: Channel) -> Dealt:
    """Do step 0 at a server.

    Args:
        plan: plan from the dimensions that the active party sent.

    Raises:
        MalformedMessage: the key node deals for other rows, and either of the two lies: the error names both. Or a
            dealt array is wrong.
    """
    if plan_of(await channel.receive(key_node, Dimensions), culprit=key_node) != plan:
        reason = f"{active} sent other numbers here than {key_node} deals for; nobody here knows which of the two lies"
        raise MalformedMessage(culprit=f"{active} or {key_node}", field="dimensions", reason=reason, step="Dimensions")
    seed = await receive_seed(key_node, channel)
    if place:
        return Dealt(plan, seed, place, None)
    corrections = []
    for block in range(len(plan.blocks)):
        items = [item_of(plan, block, None) for item_of in (short_rows.rows_item, short_rows.bits_item)]
        lengths = [item.correction_length(macs=True) for item in items] + [plan.n_columns]
        rows, bits, labels = [await receive_pieces(key_node, Correction, length, channel) for length in lengths]
        corrections.append((rows, bits, labels))
    return Dealt(plan, seed, place, corrections)
