"""WALR if several parties hold features of the same people: the differences from `walr`.

Source: ours.
Model: the measurement server is trusted with labels and with the rows of every party, as in `walr`. A party may deviate
    and collude with others: nobody learns more about a label than (epsilon, delta) label DP allows. A block is one
    party's columns of the rows. Blocks stand in the order of the passive parties' names; the active party's comes last,
    with the constant at its end.

    step  who      does                                                                  sends
    1     passive  standardises its columns; a norm bound R_p for them, rounded up       BlockColumns.
    2     active   R^2 = sum R_p^2 and a grid for R                                      BlockGrid.
    3     passive  clips its rows to R_p and rounds them toward zero; their salted hash  BlockContent.
    4     active   asks as in walr 1, for all blocks together                            nothing.
    5     server   admits the request as in walr 2; asks the passive parties             BlockWanted.
    6     passive  its rows, as in walr 3                                                BlockOpen, WeightRows ...,
                                                                                         RowsEnd.
    7     server   joins by id the rows that every party has; no row of a block is       nothing.
                   longer than R_p. Leaves out columns of few rows and shortens rows
                   that stand out (lone_rows.py). Goes on as in walr 4 and 5, but sends
                   the active party only its own block of the noisy sum.
    8     server   fits as in walr 6, once for a release. Rounds each weight to a        BlockFit.
                   quarter of its statistical error at least, and the numbers of how
                   the fit ended. Sends each party its own left-out columns.

    Scores of new rows come from joint prediction (`predict`), from the parts that the parties keep.

Departures: the server fits, as nobody else sees all rows. There is one fit for a release. Another fit of the same sum,
    with other settings, would give every party as many equations about the others' columns as it has weights.
Learns: the server learns every party's rows and ids. Each party learns its own weights, how many rows all parties have
    in common, and which of its own columns have 20 effective rows among these. The active party learns each other
    party's number of columns and norm bound, and the noisy sum of its own columns. A passive party learns the grid, and
    so the norm of whole rows within a factor of two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import DuplicateId, LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.messages import Channel, parameters_digest
from blindfit.algorithms.protocols.table import ACTIVE, CHUNKS, DATA, MEASUREMENT, ONCE, PASSIVE, Arrow, Table
from blindfit.algorithms.protocols.walr import lone_rows
from blindfit.algorithms.protocols.walr.blocks import (
    Block,
    blocks_of,
    columns_of,
    encode_blocks,
    own_columns,
    own_request,
)
from blindfit.algorithms.protocols.walr.messages import (
    BATCH_ROWS,
    MAX_BATCH_ROWS,
    AggregateOpen,
    Bits,
    BlockColumns,
    BlockContent,
    BlockFit,
    BlockGrid,
    BlockOpen,
    BlockWanted,
    NoisySum,
    RowsEnd,
    WeightRows,
)
from blindfit.algorithms.protocols.walr.request import SALT_BYTES, ConsumerRows, ContentDigest
from blindfit.algorithms.protocols.walr.tally import Join, Tally, step_4_check_batch
from blindfit.algorithms.statistics.linear.weight_bits import choose_kept_bits

LARGEST_WEIGHT = 32.0  # of a standardised column, that a party receives
ROWS_FOR_A_BIT = 4  # rows for each bit that depends on one party's rows and that others receive
BOUND_BITS, EXPONENT_BITS = 7, 4  # of a norm bound that depends on the rows: significant ones, and its power of two
SMALLEST_NORM, LARGEST_NORM = 2.0**-64, 2.0**63  # of a gradient as it is sent: a power of two
MOST_ITERATIONS = 2**20  # as they are sent
LEFT_OUT_BITS = 1  # of a column: whether it was left out
ENDING_BITS = 7 + 20 + 2 + 1  # of the end of a fit: gradient_norm, iterations, feasible, converged

Floats = npt.NDArray[np.float64]
T = TypeVar("T", bound=np.generic)


# --- messages ------------------------------------------------------------------------------------


_NEW = "rows that were not fitted before"

TABLE = Table(
    "walr_blocks",
    Arrow("1", PASSIVE, ACTIVE, BlockColumns, ONCE, "the number of columns, and their norm bound"),
    Arrow("2", ACTIVE, PASSIVE, BlockGrid, ONCE, "the grid, and the norm bound on it"),
    Arrow("3", PASSIVE, ACTIVE, BlockContent, ONCE, "nothing: a salted hash"),
    Arrow("5", MEASUREMENT, PASSIVE, BlockWanted, ONCE, "whether rows were fitted before"),
    Arrow("6", PASSIVE, MEASUREMENT, BlockOpen, ONCE, "the number of rows", _NEW),
    Arrow("6", PASSIVE, MEASUREMENT, WeightRows, CHUNKS, "rows and their ids", _NEW),
    Arrow("6", PASSIVE, MEASUREMENT, RowsEnd, ONCE, "the end of the rows", _NEW),
    Arrow("8", MEASUREMENT, DATA, BlockFit, ONCE, "weights of the receiver's own columns, and how the fit ended"),
)


# --- steps of the active party -----------------------------------------------------------------------


def step_2_bounds(
    told: Mapping[str, BlockColumns], own: BlockColumns, norm_bound: float | None
) -> tuple[dict[str, float], float, float]:
    """Return the norm bound of each passive party's block, of the active party's, and of whole rows.

    Args:
        own: columns of the active party, with the constant.
        norm_bound: bound of whole rows; each block gets a part by its number of columns, because columns are
            standardised and the mean of a row's squared norm is their number. None: each party has chosen its own.
    """
    everyone = [*told.values(), own]
    if norm_bound is None:
        bounds = {name: columns.norm_bound for name, columns in told.items()}
        return bounds, own.norm_bound, math.sqrt(sum(columns.norm_bound**2 for columns in everyone))
    total = sum(columns.n_columns for columns in everyone)
    part = {name: norm_bound * math.sqrt(columns.n_columns / total) for name, columns in told.items()}
    return part, norm_bound * math.sqrt(own.n_columns / total), norm_bound


def step_2_check_columns(told: BlockColumns, *, passive: str) -> None:
    """Raise MalformedMessage, which names the field, if a number is out of range."""
    if not 1 <= told.n_columns <= fixed_point.MAX_COLUMNS:
        raise MalformedMessage(culprit=passive, field="n_columns", reason="is out of range", step="BlockColumns")
    if not 0 < told.norm_bound < 2.0**25:
        raise MalformedMessage(culprit=passive, field="norm_bound", reason="is out of range", step="BlockColumns")


def step_4_open(own: AggregateOpen, blocks: Sequence[Block]) -> AggregateOpen:
    """Return the request for all blocks.

    Args:
        own: output of `walr.step_1_open` for the active party's rows and bound.
    """
    squares = own.norm_bound**2 + sum(block.norm_bound**2 for block in blocks)
    text = encode_blocks(blocks)
    return replace(
        own,
        n_columns=own.n_columns + sum(block.n_columns for block in blocks),
        norm_bound=math.isqrt(squares - 1) + 1,
        blocks=text,
        request_id=step_4_name(own.request_id, text),
    )


def step_4_name(own: str, blocks: str) -> str:
    """Return the name of a request for all blocks."""
    return parameters_digest({"own": own, "blocks": blocks}).hex()


def step_4_own(request: AggregateOpen, own_bound: int, *, consumer: str) -> AggregateOpen:
    """Return the active party's own request, from one for all blocks; at an auditor.

    Args:
        own_bound: the active party's own bound, as it declares it; the whole bound, rounded up, leaves two or so.

    Raises:
        MalformedMessage: the blocks are invalid, or do not add up to the whole norm bound.
    """
    blocks = blocks_of(request, culprit=consumer)
    own = replace(request, n_columns=own_columns(request, blocks), norm_bound=own_bound, blocks="")
    if step_4_open(own, blocks).norm_bound != request.norm_bound:
        reason = "is not that of all blocks"
        raise MalformedMessage(culprit=consumer, field="norm_bound", reason=reason, step="AggregateOpen")
    return own


# --- the passive party -------------------------------------------------------------------------------


def step_1_bound(norm_bound: float) -> float:
    """Round up to BOUND_BITS: a quantile of norms is one row's norm, and others must not get all its bits."""
    mantissa, exponent = math.frexp(norm_bound)
    return math.ldexp(math.ceil(math.ldexp(mantissa, BOUND_BITS)), exponent - BOUND_BITS)


def step_3_content(rows: ConsumerRows, salt: bytes) -> BlockContent:
    content = ContentDigest(salt)
    for batch in rows.batches():
        content.update(batch)
    return BlockContent(content.digest())


async def run_passive(
    rows: ConsumerRows, norm_bound: int, content: BlockContent, salt: bytes, server: str, channel: Channel
) -> None:
    """Do step 6."""
    await channel.send(server, BlockOpen(len(rows.ids), norm_bound, content.content_sha256, salt))
    for batch in rows.batches():
        await channel.send(server, batch)
    await channel.send(server, RowsEnd())


# --- steps of the measurement server -----------------------------------------------------------------


def step_5_too_few_rows(request: AggregateOpen, blocks: Sequence[Block]) -> str:
    """Return why a request has too few rows for its columns; "" if it has enough. Both numbers are public."""
    return too_few_rows(request.n_rows, columns_of(request, blocks))


def too_few_rows(n_rows: int, n_columns: Sequence[int]) -> str:
    """Return why so many rows are too few for the columns of each party; "" if they are enough."""
    needed = lone_rows.rows_needed(n_columns)
    if n_rows >= needed:
        return ""
    return (
        f"{n_rows} rows are too few for the columns of these parties, which need {needed}: "
        "use more rows or fewer columns"
    )


@dataclass(frozen=True, repr=False)
class BlockRows:
    """Rows that a passive party has sent: of distinct ids, each within its bound."""

    place: Mapping[str, int]
    rows: IntegerRows


async def receive_block(block: Block, active: str, channel: Channel) -> BlockRows:
    """Do step 6 at the server.

    Raises:
        MalformedMessage: the active party requests another block than the passive party has: the error names both, as
            either may lie. Or the rows do not fit the hash or the bound, or an id comes twice: it names the passive
            party.
    """
    opened = await channel.receive(block.holder, BlockOpen)
    if (opened.norm_bound, opened.content_sha256) != (block.norm_bound, block.content_sha256):
        reason = f"{active} requests another block than {block.holder} has; nobody here knows which of the two lies"
        raise MalformedMessage(
            culprit=f"{active} or {block.holder}", field="blocks", reason=reason, step="AggregateOpen"
        )
    if not 1 <= opened.n_rows <= fixed_point.MAX_ROWS:
        raise _of_block(block, "BlockOpen", "n_rows", "is out of range")
    if len(opened.content_salt) != SALT_BYTES:
        raise _of_block(block, "BlockOpen", "content_salt", f"is not {SALT_BYTES} bytes")
    content, place, parts, n = ContentDigest(opened.content_salt), dict[str, int](), [], 0
    while n < opened.n_rows:
        batch = await channel.receive(block.holder, WeightRows)
        if not 0 < len(batch.ids) <= min(MAX_BATCH_ROWS, opened.n_rows - n):
            raise _of_block(block, "WeightRows", "ids", "are missing, or more than were announced")
        if batch.weights.shape != (len(batch.ids), block.n_columns):
            raise _of_block(block, "WeightRows", "weights", "are not one row of n_columns for each id")
        content.update(batch)
        rows, scaled = fixed_point.enforce_norm_bound(batch.weights, block.norm_bound)
        if scaled:
            raise _of_block(block, "WeightRows", "weights", "a row is longer than the block's norm bound")
        place.update(zip(batch.ids, range(n, n + len(batch.ids)), strict=True))
        parts.append(rows)
        n += len(batch.ids)
    await channel.receive(block.holder, RowsEnd)
    if len(place) < n:
        raise _of_block(block, "WeightRows", "ids", "an id comes twice")
    if content.digest() != block.content_sha256:
        raise _of_block(block, "RowsEnd", "content_sha256", "is not the hash of the rows")
    return BlockRows(place, np.concatenate(parts))


def _of_block(block: Block, step: str, name: str, reason: str) -> MalformedMessage:
    return MalformedMessage(culprit=block.holder, field=name, reason=reason, step=step)


@dataclass(repr=False)
class BlocksTally(Tally):
    """The active party's rows as they come, and the exact sum once every block is here.

    Attributes:
        joined: (rows that counted, all columns), rows of the sum and the fit.
        left_out: (all columns,) True for columns that are 0 because too few rows have them.
    """

    blocks: Sequence[Block] = ()
    joined: IntegerRows = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    left_out: Bits = field(default_factory=lambda: np.zeros(0, np.bool_))
    _labels: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.uint8))
    _own: AggregateOpen = field(init=False)
    _ids: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _parts: list[IntegerRows] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._own = own_request(self.request, self.blocks)

    def add(self, batch: WeightRows, join: Join, *, consumer: str) -> None:  # noqa: ARG002 - others' rows come first
        """Add a batch of the active party's rows.

        Raises:
            DuplicateId: an id is repeated; the error names the row among all rows that the active party sent. A later
                check, among the common rows, would give a position among these.
        """
        step_4_check_batch(batch, self.rows, self._own, consumer=consumer)
        for row, name in enumerate(batch.ids, start=self.rows + 1):
            if name in self._seen:
                raise DuplicateId(row)
            self._seen.add(name)
        self.content.update(batch)
        rows, scaled = fixed_point.enforce_norm_bound(batch.weights, self._own.norm_bound)
        self._ids += batch.ids
        self._parts.append(rows)
        self.rows += len(batch.ids)
        self.rows_scaled += scaled

    def join_blocks(self, others: Sequence[BlockRows], join: Join) -> None:
        """Do step 7: find the rows that count among the rows that all parties have. `others` are in block order."""
        places = [np.array([other.place.get(i, -1) for i in self._ids], np.int64) for other in others]
        common = np.logical_and.reduce([place >= 0 for place in places])
        ids = [i for i, here in zip(self._ids, common.tolist(), strict=True) if here]
        joined = [join(ids[start : start + BATCH_ROWS]) for start in range(0, len(ids), BATCH_ROWS)]
        kept = np.concatenate([np.zeros(0, np.bool_), *(kept for _, kept in joined)])
        self._labels = np.concatenate([np.zeros(0, np.uint8), *(labels for labels, _ in joined)])[kept]
        counts = np.flatnonzero(common)[kept]
        own = np.concatenate(self._parts)
        blocks = [other.rows[place[counts]] for other, place in zip(others, places, strict=True)]
        self.joined = np.concatenate([*blocks, own[counts]], axis=1, dtype=np.int32)
        self.rows_kept = len(self.joined)
        self._ids, self._seen, self._parts = [], set(), []

    def sum_blocks(self) -> None:
        """Do step 7: leave out columns, shorten rows, add up; with the same work for all labels."""
        self.joined, self.left_out = lone_rows.shape_rows(self.joined, self.n_columns)
        for start in range(0, self.rows_kept, BATCH_ROWS):
            rows, labels = (of_all[start : start + BATCH_ROWS] for of_all in (self.joined, self._labels))
            self.add_up(labels, np.ones(len(rows), np.bool_), rows)
        self._labels = self._labels[:0]

    @property
    def n_columns(self) -> list[int]:
        """Number of columns of each party, in the order of the blocks."""
        return columns_of(self.request, self.blocks)


def require_tally(tally: Tally) -> BlocksTally:
    """Return the tally; raise LocalProtocolError if it has one party's columns."""
    if not isinstance(tally, BlocksTally):
        raise LocalProtocolError("a tally of one party's columns has no blocks to join")
    return tally


def redact(answer: NoisySum, request: AggregateOpen) -> NoisySum:
    """Cut an answer to the active party's part: its own block's sums. The ledger's entry has their hash."""
    blocks = blocks_of(request, culprit="")
    return replace(answer, sums=answer.sums[-own_columns(request, blocks) :]) if blocks else answer


def bits_told_of(n_columns: Sequence[int], rows_kept: int) -> list[int]:
    """Return, for each party, the bits that others receive and that depend on its columns.

    They are the others' weights, the others' left-out columns, and the end of the fit.
    """
    bits = bits_of_a_weight(rows_kept) + LEFT_OUT_BITS
    return [(sum(n_columns) - columns) * bits + ENDING_BITS for columns in n_columns]


def score_bits_of_a_fit(rows: int) -> float:
    """Return the bits about each row's score that count as opened by one fit: those of a weight, times the leverage.

    Args:
        rows: an upper bound of the number of rows that count, such as the rows that the active party sends.
    """
    return bits_of_a_weight(rows) * lone_rows.MOST_LEVERAGE


TOO_MANY_BITS = (  # without numbers: each of them would reveal how many rows are common
    "the weights of this fit and of earlier ones reveal more bits about the columns of one party than a quarter of the "
    "common rows: use more rows or fewer columns"
)


def fits_rows(n_columns: Sequence[int], rows_kept: int) -> bool:
    """Return whether so many common rows allow one fit to reveal its weights."""
    return max(bits_told_of(n_columns, rows_kept)) <= max_bits(rows_kept)


def max_bits(rows_kept: int) -> int:
    """Return the most bits about one party's rows that others may receive: a quarter of one bit for each row."""
    return rows_kept // ROWS_FOR_A_BIT


def bits_of_a_weight(rows: int) -> int:
    """Return the most bits of one weight as it is sent."""
    return math.ceil(math.log2(2 * LARGEST_WEIGHT)) + choose_kept_bits(rows)


def step_8_rounded(weights: Floats, rows: int) -> Floats:
    """Round weights for sending: a quarter of their statistical error, or more, is rounded away.

    Raises:
        RangeError: a weight is larger than may be sent.
    """
    if not (np.abs(weights) <= LARGEST_WEIGHT).all():  # also NaN
        raise RangeError(
            f"a weight passes {LARGEST_WEIGHT:g}: the fit has no good end",
            hint="raise walr.l2 or privacy.epsilon; this release is charged, and another fit needs a new release",
        )
    bits = choose_kept_bits(rows)
    return np.ldexp(np.rint(np.ldexp(weights, bits)), -bits) + 0.0  # no zero has a sign


def step_8_rounded_norm(gradient_norm: float) -> float:
    """Round up to a power of two: all bits of the norm would be as many bits about all parties' rows."""
    return min(max(2.0 ** math.ceil(math.log2(max(gradient_norm, SMALLEST_NORM))), SMALLEST_NORM), LARGEST_NORM)


def step_8_blocks(values: npt.NDArray[T], n_columns: Sequence[int]) -> list[npt.NDArray[T]]:
    """Split values by block, in the order of the blocks."""
    return np.split(values, np.cumsum(n_columns)[:-1])
