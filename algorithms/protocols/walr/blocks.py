"""The blocks of a request: the columns of each party in the rows that are summed, as the request names them.

A block is one party's columns. Blocks stand in the order of the passive parties' names; the remaining columns are the
active party's. The protocol is in several_parties.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import canonical_json
from blindfit.algorithms.protocols.walr.messages import (
    AggregateOpen,
)

MOST_BLOCKS = 15


@dataclass(frozen=True, slots=True)
class Block:
    """The columns of one passive party, as the request describes them.

    Attributes:
        norm_bound: norm bound of the block's rows, in grid steps.
        content_sha256: salted hash of ids and rows.
    """

    holder: str
    n_columns: int
    norm_bound: int
    content_sha256: bytes


def encode_blocks(blocks: Sequence[Block]) -> str:
    """Return the text that stands for the blocks in a request."""
    table = [[b.holder, b.n_columns, b.norm_bound, b.content_sha256.hex()] for b in blocks]
    return canonical_json({"blocks": table}).decode()


def blocks_of(request: AggregateOpen, *, culprit: str) -> tuple[Block, ...]:
    """Read the blocks of the passive parties from a request; it has none if one party has all columns.

    Raises:
        MalformedMessage: the text is not an output of `encode_blocks`, or does not fit the other numbers.
    """
    if not request.blocks:
        return ()

    def refuse(reason: str) -> MalformedMessage:
        return MalformedMessage(culprit=culprit, field="blocks", reason=reason, step="AggregateOpen")

    try:
        table = json.loads(request.blocks)["blocks"]
        blocks = tuple(Block(*(str(holder), int(n), int(bound), bytes.fromhex(sha))) for holder, n, bound, sha in table)
        is_canonical = encode_blocks(blocks) == request.blocks
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        is_canonical = False
    if not is_canonical:
        raise refuse("is not a list of blocks")
    names = [block.holder for block in blocks]
    if not 1 <= len(blocks) <= MOST_BLOCKS or names != sorted(set(names)):
        raise refuse("are too many, none, or not in the order of their parties' names")
    if not all(b.n_columns >= 1 and b.norm_bound >= 1 and len(b.content_sha256) == 32 for b in blocks):
        raise refuse("a number is out of range")
    if own_columns(request, blocks) < 1 or own_bound_squared(request, blocks) < 1:
        raise refuse("leave nothing for the active party")
    return blocks


def own_columns(request: AggregateOpen, blocks: Sequence[Block]) -> int:
    """Return the active party's part of the columns."""
    return request.n_columns - sum(block.n_columns for block in blocks)


def columns_of(request: AggregateOpen, blocks: Sequence[Block]) -> list[int]:
    """Return the number of columns of each party, in the order of the blocks, the active party last."""
    return [*(block.n_columns for block in blocks), own_columns(request, blocks)]


def own_bound_squared(request: AggregateOpen, blocks: Sequence[Block]) -> int:
    return request.norm_bound**2 - sum(block.norm_bound**2 for block in blocks)


def own_request(request: AggregateOpen, blocks: Sequence[Block]) -> AggregateOpen:
    """Return the request that the active party's own rows must fit."""
    bound = math.isqrt(own_bound_squared(request, blocks))
    return replace(request, n_columns=own_columns(request, blocks), norm_bound=bound)
