"""Private set intersection: it finds the rows that all data parties have, and draws one random order of them.

Source: Huberman, Franklin, Hogg 1999 (commuting blinding); ed25519 in algorithms/alignment/psi.py.
Model: semi-honest; two data parties or more, in one order, the ring; a key node that colludes with none of them.

    step  who        does                                                    sends
    1     each data  shuffles its ids; draws its secret x                    SetSize to the key node.
    2     key node   checks the sizes                                        SetSizes to each.
    3     each data  x H(id), in the shuffled order                          PassedPoints to the next in the ring.
    4     each data  x P for each P that comes, order kept                   PassedPoints to the next; of the next
                                                                             one's set, BlindedPoints to the key node.
    5     key node   compares the sets; draws one order of the common rows   Outcome and CommonRows to each.
    6     each data  undoes its shuffle                                      nothing.

    Sets go in chunks, on a timetable that follows from the sizes. In turn t a party handles chunk t of its own set,
    chunk t - 1 of the set that comes from its neighbour, chunk t - 2 of the set before, and so on. All parties compute
    at once, on chunks that were sent in the turn before. About as many chunks are on a link as there are parties, so
    no link fills up while its receiver waits for space on its own link.

Departures: the sets are shuffled, because rows in their order (sorted by id, by date) would reveal which ids match. The
    key node compares, so a data party learns which rows all parties have, but not which rows any two have. No party
    multiplies a point twice. With two parties one of them could compare; the key node does so there too.
Learns: a data party learns the sizes of all sets, and its own rows that all parties have. If these are fewer than the
    largest `min_common` of any party, it learns only that (not how few: with a set of one person's id and inventions, a
    party could ask whether that person is a customer). The key node learns the sizes and which shuffled positions of
    which sets match, also for rows that only some sets have; it learns no id. With one data party's help it would learn
    which of that party's ids are behind positions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.alignment import psi
from blindfit.algorithms.alignment.psi import ArrivingSet, BlindingKey, Origin, Points, Rows
from blindfit.algorithms.errors import ConfigError, DataError, MalformedMessage
from blindfit.algorithms.messages import Channel, Int32Tensor, Integer, IntegerTensor, OctetVector
from blindfit.algorithms.protocols.align_ring import Ring
from blindfit.algorithms.protocols.table import CHUNKS, DATA, KEY, ONCE, Arrow, Table
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.workers import THIS_PROCESS, Workers

CHUNK_ROWS = 2**18  # a MiB
MAX_IDS = 2**24
MAX_DATA_PARTIES = 17  # their chunks fit in the window of a link several times

R = TypeVar("R")
Report = Callable[[str, int, int], None]  # step, points done, all points


class InThread(Protocol):
    """A way to run heavy work off the event loop, such as asyncio.to_thread."""

    def __call__(self, work: Callable[[], R], /) -> Awaitable[R]: ...


# --- messages ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetSize:
    count: Integer
    min_common: Integer  # this party goes on only with at least so many common rows


@dataclass(frozen=True, slots=True)
class SetSizes:
    """Both in the ring's order. The key node sends them, so no data party can announce two sizes."""

    counts: IntegerTensor
    min_common: IntegerTensor


@dataclass(frozen=True, slots=True, repr=False)
class PassedPoints:
    points: OctetVector  # (chunk, 32), blinded by every party from the owner of the set to the sender


@dataclass(frozen=True, slots=True, repr=False)
class BlindedPoints:
    points: OctetVector  # (chunk, 32), blinded by all


@dataclass(frozen=True, slots=True)
class Outcome:
    common: Integer  # number of rows; 0: fewer than the largest min_common of a party


@dataclass(frozen=True, slots=True, repr=False)
class CommonRows:
    rows: Int32Tensor  # positions in the receiver's shuffled set, in the common order


TABLE = Table(
    "align",
    Arrow("1", DATA, KEY, SetSize, ONCE, "the size of a set"),
    Arrow("2", KEY, DATA, SetSizes, ONCE, "the sizes of the sets"),
    Arrow("3", DATA, DATA, PassedPoints, CHUNKS, "nothing: blinded points"),
    Arrow("4", DATA, DATA, PassedPoints, CHUNKS, "nothing: blinded points", "three data parties or more"),
    Arrow("4", DATA, KEY, BlindedPoints, CHUNKS, "the shuffled positions that match"),
    Arrow("5", KEY, DATA, Outcome, ONCE, "whether enough rows match"),
    Arrow("5", KEY, DATA, CommonRows, CHUNKS, "own common rows", "enough common rows"),
)


# --- public facts, and the data of one party -------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Alignment:
    """
    Attributes:
        positions: this party's own rows that all parties have, as places among its ids; the i-th rows of all parties
            have one id. The order is random.
    """

    positions: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, repr=False)
class OwnSet:
    ids: Sequence[str]
    order: Rows  # place in the shuffled set -> own row
    key: BlindingKey


# --- steps of a data party -----------------------------------------------------------------------------


def step_0_ring(data_parties: Sequence[str], key_node: str) -> Ring:
    """Return the ring; raise ConfigError if these parties cannot align."""
    if not 2 <= len(data_parties) <= MAX_DATA_PARTIES:
        raise ConfigError(f"{len(data_parties)} data parties: alignment is for 2 to {MAX_DATA_PARTIES}")
    if len({key_node, *data_parties}) != len(data_parties) + 1:
        raise ConfigError("alignment needs data parties and a key node with different names")
    return Ring(tuple(data_parties))


def step_1_prepare(ids: Sequence[str], uniform: UniformInt, *, owner: str) -> OwnSet:
    """Shuffle the ids and draw a key; raise DataError for no ids, too many, or a repeated one."""
    if len(ids) > MAX_IDS:
        raise DataError(f"{owner} has {len(ids):,} rows: alignment takes {MAX_IDS:,} at most")
    psi.check_ids(ids, owner=owner)
    return OwnSet(ids, psi.permutation(len(ids), uniform), BlindingKey.draw(uniform))


def step_1_size(own: OwnSet, min_common: int) -> SetSize:
    if not 1 <= min_common <= MAX_IDS:
        raise ConfigError(f"min_common is {min_common}: it must be from 1 to {MAX_IDS:,}")
    return SetSize(len(own.ids), min_common)


def step_3_blind(own: OwnSet, places: slice, *, workers: Workers = THIS_PROCESS) -> Points:
    return psi.blind_ids([own.ids[row] for row in own.order[places]], own.key, workers=workers)


def step_4_blind(
    arriving: ArrivingSet, chunk: Points, size: int, key: BlindingKey, *, workers: Workers = THIS_PROCESS
) -> Points:
    """Check and blind a chunk; raise MalformedMessage for a wrong size, a wrong point, or a repeated point."""
    arriving.add(chunk, size=size)
    return psi.blind_points(chunk, key, arriving.origin, workers=workers)


def step_6_check_outcome(outcome: Outcome, ring: Ring, *, key_node: str) -> int:
    """Return the number of common rows.

    Raises:
        DataError: the parties have too few common rows.
    """
    if outcome.common == 0:
        raise too_few(ring)
    if not ring.least <= outcome.common <= min(ring.counts):
        raise MalformedMessage(culprit=key_node, field="common", reason="is out of range", step="Outcome")
    return outcome.common


def step_6_unshuffle(own: OwnSet, chunks: Sequence[Int32Tensor], *, key_node: str) -> Alignment:
    rows = np.concatenate(chunks)
    if rows.min() < 0 or rows.max() >= len(own.ids) or len(np.unique(rows)) != len(rows):
        raise MalformedMessage(culprit=key_node, field="rows", reason="are not places in the set", step="CommonRows")
    return Alignment(own.order[rows])


def too_few(ring: Ring) -> DataError:
    """Return the error that every party raises, the key node too."""
    sizes = ", ".join(f"{party} {count:,}" for party, count in zip(ring.parties, ring.counts, strict=True))
    asking = ring.parties[ring.min_common.index(ring.least)]
    fewer = f"fewer than {ring.least:,} rows in common, and {asking} requires at least so many"
    return DataError(
        f"the parties have {'no row in common' if ring.least == 1 else fewer} (ids: {sizes})", hint=_more_rows(ring)
    )


def _more_rows(ring: Ring) -> str:
    small = [party for party, count in zip(ring.parties, ring.counts, strict=True) if count < ring.least]
    if small:
        return (
            f"{', '.join(small)} must bring more ids; or set a lower align.min_common, which may not be below any "
            "party's policy.min_common"
        )
    return (
        "are the ids of the same kind and written the same way at every party (case, spaces within, leading zeros)? "
        "Only white space around them is left out"
    )


# --- steps of the key node -----------------------------------------------------------------------------


def step_2_sizes(sizes: Sequence[SetSize], ring: Ring) -> SetSizes:
    """Collect the sizes; raise MalformedMessage if one is out of range."""
    for party, size in zip(ring.parties, sizes, strict=True):
        for name, value in (("count", size.count), ("min_common", size.min_common)):
            if not 1 <= value <= MAX_IDS:
                raise MalformedMessage(culprit=party, field=name, reason="is out of range", step="SetSize")
    counts, min_common = zip(*((size.count, size.min_common) for size in sizes), strict=True)
    return SetSizes(np.array(counts, np.int64), np.array(min_common, np.int64))


def step_2_ring(told: SetSizes, ring: Ring) -> Ring:
    """Add the sizes to the ring; raise DataError if a party asks for more common rows than there can be."""
    sized = Ring(ring.parties, tuple(told.counts.tolist()), tuple(told.min_common.tolist()))
    if min(sized.counts) < sized.least:
        raise too_few(sized)
    return sized


def step_2_check(told: SetSizes, mine: SetSize, ring: Ring, *, me: str, key_node: str) -> None:
    seat = ring.parties.index(me)
    for name, sizes, own in (
        ("counts", told.counts, mine.count),
        ("min_common", told.min_common, mine.min_common),
    ):
        in_range = sizes.shape == (len(ring.parties),) and sizes.min() >= 1 and sizes.max() <= MAX_IDS
        if not in_range or sizes[seat] != own:
            raise MalformedMessage(
                culprit=key_node, field=name, reason="are not the sizes of the sets", step="SetSizes"
            )


def step_5_receive(arriving: ArrivingSet, chunk: Points, size: int, *, workers: Workers = THIS_PROCESS) -> None:
    """Check a chunk; raise MalformedMessage where step 4 would."""
    arriving.add(chunk, size=size)
    psi.check_points(chunk, arriving.origin, workers=workers)


def step_5_compare(sets: Sequence[Points], least: int, uniform: UniformInt) -> list[Int32Tensor]:
    """Return the places of each set in the common order; an empty list if there are fewer than `least`."""
    rows = psi.common_rows(sets)
    common = len(rows[0])
    if common < least:
        return []
    order = psi.permutation(common, uniform)
    return [places[order].astype(np.int32) for places in rows]


def step_5_outcome(rows: Sequence[Int32Tensor]) -> Outcome:
    return Outcome(len(rows[0]) if rows else 0)


# --- roles -----------------------------------------------------------------------------------------------


async def directly(work: Callable[[], R], /) -> R:
    """Do the work at once, for callers without an event loop that would wait: tests."""
    return work()


def silent(_step: str, _done: int, _total: int) -> None:
    """Ignore progress."""


async def run_data_party(
    ids: Sequence[str],
    me: str,
    data_parties: Sequence[str],
    key_node: str,
    channel: Channel,
    *,
    min_common: int = 1,
    uniform: UniformInt = system_uniform,
    workers: Workers = THIS_PROCESS,
    in_thread: InThread = directly,
    report: Report = silent,
) -> Alignment:
    """Align this party's ids with those of the others.

    Args:
        ids: one for each row, each once; text, compared as it is.
        data_parties: all data parties, with this one; the same order at every party.
        min_common: least number of common rows; fewer end the session at every party.
        workers: psi.Threads, or processes; they hold this session's secret.
        report: function that is called after each chunk.

    Raises:
        DataError: these ids cannot be aligned (then nothing was sent), or too few rows are common.
        MalformedMessage: the previous party or the key node sent what it should not.
    """
    ring = step_0_ring(data_parties, key_node)
    own = await in_thread(partial(step_1_prepare, ids, uniform, owner=me))
    size = step_1_size(own, min_common)
    await channel.send(key_node, size)
    told = await channel.receive(key_node, SetSizes)
    step_2_check(told, size, ring, me=me, key_node=key_node)
    ring = step_2_ring(told, ring)
    await _blind_all(own, me, ring, key_node, channel, workers, in_thread, report)
    outcome = await channel.receive(key_node, Outcome)
    common = step_6_check_outcome(outcome, ring, key_node=key_node)
    chunks = [await _receive_rows(rows, key_node, channel) for rows in _row_chunks(common)]
    return await in_thread(partial(step_6_unshuffle, own, chunks, key_node=key_node))


async def _blind_all(
    own: OwnSet,
    me: str,
    ring: Ring,
    key_node: str,
    channel: Channel,
    workers: Workers,
    in_thread: InThread,
    report: Report,
) -> None:
    """Steps 3 and 4 in the order of the timetable."""
    previous, following = ring.before(me), ring.next_after(me)
    origin = Origin(previous, PassedPoints.__name__)
    passing = {
        party: ArrivingSet(count, origin) for party, count in zip(ring.parties, ring.counts, strict=True) if party != me
    }
    done, total = 0, sum(ring.counts)
    for piece in ring.timetable(me):
        if piece.owner == me:
            blinded = await in_thread(partial(step_3_blind, own, piece.places, workers=workers))
        else:
            chunk = (await channel.receive(previous, PassedPoints)).points
            step_4 = partial(step_4_blind, passing[piece.owner], chunk, piece.size, own.key, workers=workers)
            blinded = await in_thread(step_4)
        if piece.owner == following:
            await channel.send(key_node, BlindedPoints(blinded))
        else:
            await channel.send(following, PassedPoints(blinded))
        done += piece.size
        report("align", done, total)


async def _receive_rows(size: int, key_node: str, channel: Channel) -> Int32Tensor:
    rows = (await channel.receive(key_node, CommonRows)).rows
    if rows.shape != (size,):
        raise MalformedMessage(culprit=key_node, field="rows", reason="has a wrong length", step="CommonRows")
    return rows


def _row_chunks(common: int) -> list[int]:
    """Return the sizes of the messages that bring a party its rows."""
    return [min(CHUNK_ROWS, common - start) for start in range(0, common, CHUNK_ROWS)]


async def run_key_node(
    data_parties: Sequence[str],
    me: str,
    channel: Channel,
    *,
    uniform: UniformInt = system_uniform,
    workers: Workers = THIS_PROCESS,
    in_thread: InThread = directly,
    report: Report = silent,
) -> int:
    """Return the number of common rows.

    Raises:
        DataError: there are too few; every data party has been informed.
        MalformedMessage: a data party sent what it should not.
    """
    ring = step_0_ring(data_parties, me)
    told = step_2_sizes([await channel.receive(party, SetSize) for party in ring.parties], ring)
    for party in ring.parties:
        await channel.send(party, told)
    ring = step_2_ring(told, ring)
    sets = await _receive_all(ring, channel, workers, in_thread, report)
    rows = await in_thread(partial(step_5_compare, sets, ring.least, uniform))
    outcome = step_5_outcome(rows)
    for seat, party in enumerate(ring.parties):
        await channel.send(party, outcome)
        for start in range(0, outcome.common, CHUNK_ROWS):
            await channel.send(party, CommonRows(rows[seat][start : start + CHUNK_ROWS]))
    return step_6_check_outcome(outcome, ring, key_node=me)


async def _receive_all(
    ring: Ring, channel: Channel, workers: Workers, in_thread: InThread, report: Report
) -> list[Points]:
    """Return the sets, each from the party that blinded it last."""
    sets = {
        owner: ArrivingSet(count, Origin(ring.before(owner), BlindedPoints.__name__))
        for owner, count in zip(ring.parties, ring.counts, strict=True)
    }
    done, total = 0, sum(ring.counts)
    for piece in ring.arrivals():
        arriving = sets[piece.owner]
        chunk = (await channel.receive(arriving.origin.sender, BlindedPoints)).points
        await in_thread(partial(step_5_receive, arriving, chunk, piece.size, workers=workers))
        done += piece.size
        report("align", done, total)
    return [arriving.points for arriving in sets.values()]


# --- the specification: all seats in one process, no channel -----------------------------------------------


def run_locally(
    id_sets: Sequence[Sequence[str]], uniforms: Sequence[UniformInt], *, min_common: int = 1
) -> tuple[Alignment, ...]:
    """Run all roles in one process, without a channel: the specification.

    Args:
        id_sets: ids of each data party, in the ring's order.
        uniforms: sources of randomness of the data parties, and last the key node's.
    """
    *own_uniforms, key_uniform = uniforms
    ring = step_0_ring([f"data party {seat}" for seat in range(len(id_sets))], "key node")
    owns = [
        step_1_prepare(ids, uniform, owner=owner)
        for ids, uniform, owner in zip(id_sets, own_uniforms, ring.parties, strict=True)
    ]
    ring = step_2_ring(step_2_sizes([step_1_size(own, min_common) for own in owns], ring), ring)
    sets = [_blind_by_all(owns, seat, ring) for seat in range(len(owns))]
    rows = step_5_compare(sets, ring.least, key_uniform)
    step_6_check_outcome(step_5_outcome(rows), ring, key_node="key node")
    return tuple(step_6_unshuffle(own, [places], key_node="key node") for own, places in zip(owns, rows, strict=True))


def _blind_by_all(owns: Sequence[OwnSet], owner: int, ring: Ring) -> Points:
    points = step_3_blind(owns[owner], slice(None))
    for hop in range(1, len(owns)):
        seat = (owner + hop) % len(owns)
        arriving = ArrivingSet(len(points), Origin(ring.before(ring.parties[seat]), PassedPoints.__name__))
        points = step_4_blind(arriving, points, len(points), owns[seat].key)
    return points
