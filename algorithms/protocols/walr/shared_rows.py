"""WALR with labels and features in shares between two measurement servers: the differences from `two_servers`.

Source: ours, on the shares of Damgard et al. 2013 (SPDZ) and the dealing of algorithms/sharing; the norm check is that
    of algorithms/sharing/short_rows.py.
Model: the active party may deviate, together with one of the servers. The servers do not collude with each other, nor
    with the dealer (the key node), which follows the protocol. The dealer may pool its knowledge with that of an active
    party that follows the protocol.

    step  who      does                                                                     sends
    0     active   its number of rows and columns, and their norm bound                     Dimensions.
    0     dealer   repeats them to the servers, which compare                               Dimensions.
                   Masks that the active party knows, in shares with MACs; the labels'      DealtSeed, Correction.
                   masks, and their products with the rows', only in shares.
    2     server   admits the request and agrees with the other as in `two_servers` 2       nothing.
    3     active   rows, and six numbers each that fill their squares up, less masks        MaskedRows.
    4     server   the rows are the same at both; draws the signs with the other            CheckCommitment, CheckSeed,
                   (no MAC is checked yet, so the residues are empty)                       ResidueCommitment, Residue.
                   sends them                                                               Challenge.
    5     active   the bits of its rows' sums with these signs, less masks                  MaskedInput.
    6     server   draws coefficients as in 4; opens one number, 0 if no row is too long,   OpenedShares.
                   and checks its MAC; both refuse if it is not 0.
    6     server   opens labels less masks, for rows that count                             OpenedShares.
                   Its share of X^T y comes from public and dealt numbers.
    6     server   half of a secret that serves only this sum                               ZeroSharePart.
                   Server 1 adds u, server 2 subtracts it: u = PRF(both halves, session,
                   request).
    7     server   adds a whole noise of its own and answers, as in `two_servers` 4 and 5   nothing.
    8     active   adds both answers and goes on, as in `two_servers` 6                     MasksUsed.

    Why u: without it the second server's answer is R_2^T (y - s) + D^T s_2 + (R^T s)_2 + noise, and the dealer knows
    all of these masks. So the dealer and the active party would have R_2^T y + noise modulo p: uniform multiples of the
    labels, which short vectors of a lattice reveal. With u each answer is uniform to both of them, and only the sum has
    a meaning.

Departures: none from `two_servers` except that rows are hidden. A row that is too long ends the job; a server that
    reads the row would shorten it.
Learns: each server learns ids, the number of columns and the norm bound, and nothing about rows and labels. The dealer
    learns the same without the ids. With one server it would know every row and label; with the active party, only the
    noisy sum. The active party learns one noisy sum.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.messages import Channel, parameters_digest
from blindfit.algorithms.protocols.falcon.check import exchange_with_all, run_check
from blindfit.algorithms.protocols.falcon.messages import (
    CheckCommitment,
    CheckSeed,
    Correction,
    DealtSeed,
    MaskedInput,
    OpenedShares,
    Residue,
    ResidueCommitment,
)
from blindfit.algorithms.protocols.table import ACTIVE, CHUNKS, KEY, MEASUREMENT, ONCE, ROUNDS, Arrow, Table
from blindfit.algorithms.protocols.walr.dealt_masks import Dealt, plan_of, receive_pieces, send_pieces
from blindfit.algorithms.protocols.walr.messages import (
    AggregateOpen,
    Challenge,
    Dimensions,
    MaskedRows,
    MasksUsed,
    ZeroSharePart,
)
from blindfit.algorithms.protocols.walr.request import ConsumerRows
from blindfit.algorithms.protocols.walr.tally import Join, Tally, step_4_check_ids
from blindfit.algorithms.protocols.walr.two_servers import ShareTally, step_2_agreement
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import short_rows
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.mac_check import Opened
from blindfit.algorithms.sharing.prg import SEED_BYTES, Seed
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.sharing.short_rows import Plan

# --- messages ------------------------------------------------------------------------------------


_BOTH = (MEASUREMENT, MEASUREMENT)
TABLE = Table(
    "walr-shares",
    Arrow("0", ACTIVE, KEY + MEASUREMENT, Dimensions, ONCE, "the numbers of rows and columns, and the norm bound"),
    Arrow("0", KEY, MEASUREMENT, Dimensions, ONCE, "the numbers of rows and columns, and the norm bound"),
    Arrow("0", KEY, ACTIVE + MEASUREMENT, DealtSeed, ONCE, "masks, or shares of masks"),
    Arrow("0", KEY, MEASUREMENT, Correction, CHUNKS, "nothing: shares of masks, only at the first server"),
    Arrow("3", ACTIVE, MEASUREMENT, MaskedRows, CHUNKS, "ids, and uniform numbers"),
    Arrow("4", *_BOTH, CheckCommitment, ROUNDS, "whether both were sent the same"),
    Arrow("4", *_BOTH, CheckSeed, ROUNDS, "a part of a public draw"),
    Arrow("4", *_BOTH, ResidueCommitment, ROUNDS, "nothing: a commitment"),
    Arrow("4", *_BOTH, Residue, ROUNDS, "whether the opened number fits its MAC"),
    Arrow("4", MEASUREMENT, ACTIVE, Challenge, ONCE, "public signs"),
    Arrow("5", ACTIVE, MEASUREMENT, MaskedInput, CHUNKS, "uniform numbers"),
    Arrow("6", *_BOTH, OpenedShares, CHUNKS, "whether a row is too long; otherwise uniform numbers"),
    Arrow("6", *_BOTH, ZeroSharePart, ONCE, "nothing: random bits"),
    Arrow("8", ACTIVE, KEY, MasksUsed, ONCE, "the fact that both servers have answered"),
)


# --- the request -----------------------------------------------------------------------------------


def step_1_open(request: AggregateOpen) -> AggregateOpen:
    """Return the request for rows in shares: it has another name, and the salt of the rows' hash stays here."""
    return replace(request, in_shares=1, content_salt=b"", request_id=step_1_name(request.request_id))


def step_1_name(in_the_clear: str) -> str:
    """Return the name of a request in shares, from its name for servers that read its rows."""
    return parameters_digest({"in shares": in_the_clear}).hex()


# --- the active party --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class SharedRows:
    """Rows as they are sent: less the masks of a seed, which serve one session."""

    rows: ConsumerRows
    plan: Plan
    seed: Seed

    def batches(self) -> Iterator[MaskedRows]:
        step = self.rows.rows_that_fit(8 * self.plan.width)
        for block, whole in enumerate(self.plan.blocks):
            ids = tuple(self.rows.ids[whole])
            masked = f.subtract(f.elements(self.fill(whole)), short_rows.row_masks(self.plan, block, self.seed))
            for start in range(0, len(ids), step):
                yield MaskedRows(ids[start : start + step], masked[start : start + step].reshape(-1))

    def fill(self, rows: slice) -> npt.NDArray[np.int64]:
        weights: IntegerRows = self.rows.weights[rows]
        return short_rows.fill_rows(weights, self.plan)


async def run_active(rows: SharedRows, servers: Sequence[str], channel: Channel) -> None:
    """Do step 5; raise MalformedMessage if the servers do not draw the same."""
    seeds = [(await channel.receive(server, Challenge)).seed for server in servers]
    for server, seed in zip(servers, seeds, strict=True):
        if len(seed) != SEED_BYTES or seed != seeds[0]:
            raise MalformedMessage(culprit=server, field="seed", reason="is not what both drew", step="Challenge")
    for block, whole in enumerate(rows.plan.blocks):
        signs = short_rows.signs_of(Seed(seeds[0]), rows.plan, block)
        bits = short_rows.bits_of(short_rows.project(signs, rows.fill(whole), rows.plan), rows.plan)
        masked = f.subtract(f.elements(bits), short_rows.bit_masks(rows.plan, block, rows.seed))
        for server in servers:
            await channel.send(server, MaskedInput(masked.reshape(-1)))


# --- a server ----------------------------------------------------------------------------------------


@dataclass(repr=False)
class SharedRowsTally(ShareTally):
    """Masked rows and shares of labels as they come; their sum is computed at the end."""

    plan: Plan = field(init=False)
    batch_kind = MaskedRows

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plan = plan_of(self.request)
        self._masked: list[Elements] = []
        self._labels: list[Elements] = []

    def add(self, batch: MaskedRows, join: Join, *, consumer: str) -> None:  # type: ignore[override]
        step_4_check_ids(batch.ids, self.rows, self.request, consumer=consumer)
        if batch.values.shape != (len(batch.ids) * self.plan.width,):
            reason = "are not one row of numbers for each id"
            raise MalformedMessage(culprit=consumer, field="values", reason=reason, step="MaskedRows")
        labels, kept = join(batch.ids)
        self._masked.append(batch.values.reshape(-1, self.plan.width))
        self._labels.append(labels.astype(np.uint64) * kept)  # 0 where a row does not count: public to both servers
        self.count(kept)

    def check_content(self, *, consumer: str) -> None:
        """Accept the hash of rows that no server reads: the active party vouches for it."""

    def blocks(self) -> Iterator[tuple[Elements, Elements]]:
        """Yield masked rows, and this server's shares of their labels."""
        masked, labels = np.concatenate(self._masked), np.concatenate(self._labels)
        for rows in self.plan.blocks:
            yield f.contiguous(masked[rows]), labels[rows]

    def take_sums(self, share: Elements) -> None:
        """Take this server's share of X^T y, and keep nothing of the rows."""
        self.sums = f.integers(share)
        self._masked, self._labels = [], []


@dataclass(frozen=True, repr=False)
class Server:
    """One server's side of steps 4 to 6.

    Attributes:
        run: a name that no session had before.
    """

    me: str
    other: str
    active: str
    dealt: Dealt
    run: str
    channel: Channel
    uniform: UniformInt = system_uniform
    opened: Opened = field(default_factory=Opened)

    async def sum_of(self, tally: SharedRowsTally) -> Elements:
        """Return this server's share of X^T y, (n_columns,), which is uniform to all but the two servers.

        Raises:
            MalformedMessage: a row is longer than the norm bound, or the other server departs from the protocol.
            MacCheckFailed: an opened number differs from the dealt one.
        """
        if tally.plan != self.dealt.plan:
            raise MalformedMessage(
                culprit=self.active, field="n_rows", reason="masks were dealt for other rows", step="AggregateOpen"
            )
        blocks = list(tally.blocks())
        await self._check_lengths([masked for masked, _ in blocks])
        total = await self._sum(blocks)
        return step_6_reshare(total, await self._zero_share_seed(tally.request), self.dealt.place)

    async def _check_lengths(self, masked: list[Elements]) -> None:
        verifier, plan = self.dealt.verifier, self.dealt.plan
        for rows in masked:
            self.opened.hear(rows)
        signs = await self._draw("signs")
        await self.channel.send(self.active, Challenge(signs.octets))
        bits = [await self._receive_masked_bits() for _ in masked]
        coefficients = await self._draw("coefficients")
        parts = []
        for block, rows in enumerate(masked):
            dealt = self.dealt.rows(block)
            each = coefficients.elements(f"rows/{block}", (len(rows),))
            parts.append(verifier.of_rows(each, rows, dealt["mask"], dealt["square"]))
            sums = verifier.projections(short_rows.signs_of(signs, plan, block), rows, dealt["mask"])
            given = self.dealt.bits(block)
            parts.append(verifier.of_bits(coefficients, f"block {block}", sums, bits[block], given))
        await self._require_zero(parts)

    async def _receive_masked_bits(self) -> Elements:
        shape = (short_rows.PROJECTIONS, self.dealt.plan.bits + 1)
        bits = (await self.channel.receive(self.active, MaskedInput)).values
        if bits.shape != (shape[0] * shape[1],):
            raise MalformedMessage(
                culprit=self.active, field="values", reason="have a wrong length", step="MaskedInput"
            )
        self.opened.hear(bits)
        return bits.reshape(shape)

    async def _draw(self, what: str) -> Seed:
        """Draw a seed that neither server chose, once both have received the same."""
        context, holder = f"{self.run}/{what}".encode(), self.dealt.verifier.holder
        others = [self.other]
        return await run_check(
            self.opened, holder, self.me, others, context, self.channel, self.uniform, lambda _begun: None
        )

    async def _require_zero(self, parts: Sequence[Share]) -> None:
        total, *rest = parts
        for part in rest:
            total = total + part
        told = await exchange_with_all(OpenedShares(total.value), [self.other], OpenedShares, self.channel)
        theirs = told[self.other].values
        if theirs.shape != (1,):
            raise MalformedMessage(culprit=self.other, field="values", reason="is not one element", step="OpenedShares")
        value = f.add(total.value, theirs)
        self.opened.add(value, total)
        await self._draw("zero")
        if value.any():
            raise MalformedMessage(
                culprit=self.active, field="rows", reason="are longer than the norm bound", step="MaskedRows"
            )

    async def _sum(self, blocks: list[tuple[Elements, Elements]]) -> Elements:
        """Compute X^T y = D^T e + R^T e + D^T s + R^T s, with D, e public and R, s, R^T s in shares."""
        dealt = [self.dealt.labels(block) for block in range(len(blocks))]
        mine = [f.subtract(labels, own["mask"].value) for (_, labels), own in zip(blocks, dealt, strict=True)]
        whole = np.concatenate(mine)
        await send_pieces(self.other, OpenedShares, whole, self.channel)
        masked_labels = f.add(whole, await receive_pieces(self.other, OpenedShares, len(whole), self.channel))
        columns, first = slice(0, self.dealt.plan.n_columns), self.dealt.place == 0
        total = f.elements(np.zeros(self.dealt.plan.n_columns, np.int64))
        for block, ((rows, _), rows_of_block) in enumerate(zip(blocks, self.dealt.plan.blocks, strict=True)):
            e, d = masked_labels[rows_of_block], f.contiguous(rows[:, columns])
            masks = self.dealt.rows(block)["mask"].columns(columns).value
            parts = [total, f.transposed_times(masks, e), f.transposed_times(d, dealt[block]["mask"].value)]
            parts += [dealt[block]["product"].value, *([f.transposed_times(d, e)] if first else [])]
            total = f.total(parts)
        return total

    async def _zero_share_seed(self, request: AggregateOpen) -> Seed:
        """Agree on the seed of this sum's shares of zero. Masks serve one sum, so each sum has its own seed."""
        mine = Seed.random().octets
        told = await exchange_with_all(ZeroSharePart(mine), [self.other], ZeroSharePart, self.channel)
        theirs = told[self.other].part
        if len(theirs) != SEED_BYTES:
            raise MalformedMessage(
                culprit=self.other, field="part", reason="has the wrong length", step="ZeroSharePart"
            )
        parts = (mine, theirs) if self.dealt.place == 0 else (theirs, mine)
        return step_6_zero_share_seed(parts, self.run, request)


def step_6_zero_share_seed(parts: tuple[bytes, bytes], run: str, request: AggregateOpen) -> Seed:
    """Return the seed of one sum's shares of zero: neither server chooses it, and only they know it.

    Args:
        parts: the first server's half of the secret, then the second server's.
        run: the session.
        request: either server's own request; the seed follows from the fields that both have in common.
    """
    asked = step_2_agreement(request, "", b"").request_sha256
    context = parameters_digest({"shares of zero": run, "asked": asked.hex()})
    return Seed(hmac.digest(b"".join(parts), context, "sha256"))


def step_6_reshare(share: Elements, seed: Seed, place: int) -> Elements:
    """Return another share of the same sum: the first server adds u and the second server subtracts it."""
    u = seed.elements("shares of zero", share.shape)
    return f.subtract(share, u) if place else f.add(share, u)


def require_tally(tally: Tally) -> SharedRowsTally:
    """Return the tally; raise LocalProtocolError if its rows are not in shares."""
    if not isinstance(tally, SharedRowsTally):
        raise LocalProtocolError("these rows are not in shares")
    return tally
