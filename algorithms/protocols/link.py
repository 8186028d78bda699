"""Record linkage: it finds by likeness which rows of two data parties are one person; neither party learns which.

Source: Schnell, Bachteler, Reiher 2011 (keyed Bloom filters, compared by a third party); the encrypted mask: Hardy et
    al. 2017, section 3, there with n = min.
Model: semi-honest; two data parties, and a key node that colludes with neither.

    step  who        does                                                       sends
    0     each data  X25519 key pair                                            KeyShare to the other.
    1     each data  secret = HKDF(shared key); a filter of each of its rows,   Filters to the key node.
                     shuffled
    2     key node   compares all filters; one-to-one matches                   Outcome to each.
    3     key node   n = max(n_A, n_B) slots in random order, matches with      Slots to each, in chunks.
                     mask 1; encrypts the mask separately for each party
    4     each data  checks; undoes its shuffle                                 nothing.

    A match has its own slot, with its row of either party and mask 1. The other slots, with mask 0, hold rows without a
    match. If the smaller party has no rows left for a slot, the slot has position -1, and zeros take the row's place.

The key shares go from one data party to the other over their own authenticated link, past the key node.

Departures: max in place of min. With min, nearly all rows that the larger party keeps would be matches, and it would
    know that.
Learns: a data party learns both sizes, and whether at least `min_matches` rows match. It does not learn how many or
    which: its own rows stand in uniformly random slots that do not depend on the matches. (The smaller party knows that
    its empty slots match nothing.) The key node learns all filters, and which shuffled positions match. It has no
    secret to make filters of guessed people, but likeness itself reveals something: see
    docs/guides/link_without_ids.md. With one data party's help it would have the secret, and could guess the other's
    records.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from blindfit.algorithms.alignment import clk, matching
from blindfit.algorithms.alignment.psi import permutation
from blindfit.algorithms.alignment.sensitivity import expected_errors
from blindfit.algorithms.errors import ConfigError, DataError, MalformedMessage
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.messages import (
    Channel,
    CiphertextVector,
    Integer,
    IntegerTensor,
    Octets,
    OctetVector,
    canonical_bytes,
)
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, Randomisers
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.vectors import EncryptedVector, concatenate, encrypt
from blindfit.algorithms.protocols.align import InThread, Report, directly, silent
from blindfit.algorithms.protocols.linkage import (
    MAX_RECORDS,
    LinkageSettings,
    LinkageSummary,
    LinkedRows,
    Matched,
    Positions,
)
from blindfit.algorithms.protocols.table import CHUNKS, DATA, KEY, ONCE, Arrow, Table
from blindfit.algorithms.randomness import UniformInt, system_uniform

KEY_SHARE_BYTES = 32
CHUNK_SLOTS = 2**14  # 8 MiB under a key of 2048 bits
SEATS = (0, 1)  # the data parties: the first, the second

R = TypeVar("R")


class WhileWanted(Protocol):
    """A way to run work that takes minutes; it passes a function that raises once nobody waits for the result."""

    def __call__(self, work: Callable[[Callable[[], None]], R], /) -> Awaitable[R]: ...


# --- messages ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class KeyShare:
    public_value: Octets  # of X25519, made for this session


@dataclass(frozen=True, slots=True, repr=False)
class Filters:
    filters: OctetVector  # (n, filter_bits / 8), in the shuffled order


@dataclass(frozen=True, slots=True)
class Outcome:
    sizes: IntegerTensor  # of the first party and of the second
    enough: Integer  # 1; or 0 if fewer than `min_matches` rows match, or any two would, and the session ends


@dataclass(frozen=True, slots=True, repr=False)
class Slots:
    positions: IntegerTensor  # (chunk,) in the receiver's shuffled order, or -1
    mask: CiphertextVector  # (chunk,) 1 where the slot's two rows are one person


TABLE = Table(
    "link",
    Arrow("0", DATA, DATA, KeyShare, ONCE, "half of the filters' secret"),
    Arrow("1", DATA, KEY, Filters, ONCE, "the likeness of keyed filters"),
    Arrow("2", KEY, DATA, Outcome, ONCE, "whether enough rows match"),
    Arrow("3", KEY, DATA, Slots, CHUNKS, "own rows' slots; nothing about the mask", "enough matches"),
)


# --- public facts, and the result of each role -------------------------------------------------


# --- steps of a data party -----------------------------------------------------------------------------


def step_0_private_key(uniform: UniformInt) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(uniform(1 << 8 * KEY_SHARE_BYTES).to_bytes(KEY_SHARE_BYTES, "little"))


def step_0_key_share(private_key: X25519PrivateKey) -> KeyShare:
    return KeyShare(private_key.public_key().public_bytes_raw())


def step_1_secret(private_key: X25519PrivateKey, theirs: KeyShare, *, me: str, other: str, first: bool) -> bytes:
    """Return the secret of the filters: for this session, these parties in this order, and these key shares.

    Raises:
        MalformedMessage: the other's value is not a value of X25519, or is of small order.
    """
    shares = [step_0_key_share(private_key).public_value, theirs.public_value]
    try:
        shared = private_key.exchange(X25519PublicKey.from_public_bytes(theirs.public_value))
    except ValueError:
        raise MalformedMessage(
            culprit=other, field="public_value", reason="is not a public value of X25519", step="KeyShare"
        ) from None
    in_order = slice(None, None, 1 if first else -1)
    values = tuple(share.hex() for share in shares[in_order])
    info = canonical_bytes({"purpose": "linkage v1", "parties": (me, other)[in_order], "public values": values})
    return HKDF(SHA256(), clk.SECRET_BYTES, salt=None, info=info).derive(shared)


def step_1_filters(
    records: Mapping[str, Sequence[str]], order: Positions, settings: LinkageSettings, secret: bytes
) -> Filters:
    """Return the filters in the shuffled order."""
    return Filters(clk.encode(records, settings.encoding, secret)[order])


def step_1_count(records: Mapping[str, Sequence[str]], settings: LinkageSettings, *, me: str) -> int:
    """Count the records; raise DataError for no records, too many, or columns that do not fit."""
    n_records = clk.count_records(records, settings.encoding)
    if n_records > MAX_RECORDS:
        raise DataError(f"{me} has {n_records:,} rows: linkage takes {MAX_RECORDS:,} at most")
    return n_records


def step_4_check_outcome(
    outcome: Outcome, n_records: int, settings: LinkageSettings, *, first: bool, key_node: str
) -> int:
    """Return the number of slots.

    Raises:
        DataError: too few rows match.
    """
    sizes = outcome.sizes
    in_range = sizes.shape == (2,) and sizes.min() >= 1 and sizes.max() <= MAX_RECORDS
    if not in_range or sizes[0 if first else 1] != n_records:
        raise MalformedMessage(culprit=key_node, field="sizes", reason="are not the parties' sizes", step="Outcome")
    if outcome.enough not in (0, 1):
        raise MalformedMessage(culprit=key_node, field="enough", reason="is neither 0 nor 1", step="Outcome")
    if not outcome.enough:
        raise too_few(settings)
    return int(sizes.max())


def step_4_open(slots: Slots, size: int, public_key: PublicKey, *, key_node: str) -> EncryptedVector[Ciphertext]:
    """Return the mask of one chunk of `size` slots, each ciphertext checked."""
    if slots.positions.shape != (size,):
        raise MalformedMessage(culprit=key_node, field="positions", reason="have a wrong length", step="Slots")
    return EncryptedVector.receive(slots.mask, public_key, length=size, frac_bits=0, bound=1, culprit=key_node)


def step_4_unshuffle(positions: Positions, order: Positions, *, key_node: str) -> Positions:
    """Replace positions in the shuffled list by own rows.

    Raises:
        MalformedMessage: a position is out of range, missing or repeated.
    """
    held = positions[positions >= 0]
    if positions.min() < -1 or not np.array_equal(np.sort(held), np.arange(len(order))):
        raise MalformedMessage(culprit=key_node, field="positions", reason="do not hold each row once", step="Slots")
    return np.where(positions >= 0, order[positions], -1)


def too_few(settings: LinkageSettings) -> DataError:
    """Return the error that every party raises; it does not reveal how many rows match."""
    return DataError(
        f"fewer than {settings.min_matches:,} rows of the two parties match, which is the least that the job accepts",
        hint="check that both parties' columns hold the same things, with dates and postcodes written alike. A "
        "lower threshold finds more matches, and more wrong ones; the key node's log reports one that is too low",
    )


# --- steps of the key node -----------------------------------------------------------------------------


def step_2_check_parties(data_parties: Sequence[str], key_node: str) -> tuple[str, str]:
    """Return the two data parties; raise ConfigError if these parties cannot be linked."""
    if len(data_parties) != 2:
        raise ConfigError(
            f"{len(data_parties)} data parties: linkage is for exactly two", hint='align more parties by "psi"'
        )
    if len({key_node, *data_parties}) != 3:
        raise ConfigError("linkage needs two data parties and a key node with different names")
    return data_parties[0], data_parties[1]


def step_2_check_filters(received: Filters, settings: LinkageSettings, *, party: str) -> clk.Filters:
    n_records, width_bytes = received.filters.shape
    if width_bytes != settings.encoding.width_bytes:
        raise MalformedMessage(culprit=party, field="filters", reason="have a wrong width", step="Filters")
    if not 1 <= n_records <= MAX_RECORDS:
        raise MalformedMessage(culprit=party, field="filters", reason="are missing or too many", step="Filters")
    return received.filters


def step_2_match(
    first: clk.Filters, second: clk.Filters, settings: LinkageSettings, *, report: Report = silent
) -> Matched:
    """Compare every filter with every other."""
    threshold, sizes, anybody = settings.threshold, (len(first), len(second)), None
    try:
        pairs, floor = matching.alike_pairs(first, second, threshold, partial(report, "match"))
    except DataError as too_many:
        pairs, floor, anybody = matching.no_pairs(), threshold, too_many
    matches = matching.assign(pairs, threshold)
    summary = LinkageSummary(
        sizes,
        len(matches),
        threshold,
        matching.histogram(pairs, matches, sizes[0], threshold, floor),
        expected_errors(pairs, matches, sizes, threshold),
    )
    return Matched(matches, summary, anybody)


def step_2_watched(
    first: clk.Filters,
    second: clk.Filters,
    settings: LinkageSettings,
    report: Report,
    still_wanted: Callable[[], None],
) -> Matched:
    """Do step 2; before each tile's report, the comparison asks whether it is still wanted."""

    def report_step(step: str, done: int, total: int) -> None:
        still_wanted()
        report(step, done, total)

    return step_2_match(first, second, settings, report=report_step)


def step_2_outcome(matched: Matched, settings: LinkageSettings) -> Outcome:
    enough = matched.summary.n_matches >= settings.min_matches
    return Outcome(np.array(matched.summary.sizes, np.int64), int(enough))


def step_3_slots(matched: Matched, uniform: UniformInt) -> tuple[tuple[Positions, Positions], Positions]:
    """Return each party's position in every slot, or -1, and the mask; slots are in uniformly random order."""
    n_slots, n_matches = max(matched.summary.sizes), len(matched.matches)
    order = permutation(n_slots, uniform)
    mask = np.zeros(n_slots, np.int64)
    mask[:n_matches] = 1
    ours = [matched.matches.first, matched.matches.second]
    columns = [
        np.concatenate([positions, _pad_unmatched(positions, size, n_slots - n_matches)])[order]
        for positions, size in zip(ours, matched.summary.sizes, strict=True)
    ]
    return (columns[0], columns[1]), mask[order]


def _pad_unmatched(matched: Positions, size: int, length: int) -> Positions:
    """Return all unmatched positions, padded with -1 to a length; the parties' shuffles are their order."""
    rest = np.full(length, -1, np.int64)
    rest[: size - len(matched)] = np.setdiff1d(np.arange(size), matched)
    return rest


def step_3_encrypt(positions: Positions, mask: Positions, randomisers: Randomisers) -> Slots:
    """Return one chunk for one party."""
    return Slots(positions, encrypt(Fixed.from_integers(mask), randomisers, bound=1).ciphertext)


def chunks(n_slots: int) -> Iterator[slice]:
    """Yield the slots of each message."""
    for start in range(0, n_slots, CHUNK_SLOTS):
        yield slice(start, min(start + CHUNK_SLOTS, n_slots))


def step_2_digest(filters: Sequence[npt.NDArray[np.uint8]]) -> bytes:
    """Return the digest of both uploads, as they came."""
    return sha256(b"".join(sha256(upload.tobytes()).digest() for upload in filters)).digest()


async def to_the_end(work: Callable[[Callable[[], None]], R], /) -> R:
    """Do the work to its end, even if nobody waits."""
    return work(lambda: None)


# --- roles -----------------------------------------------------------------------------------------------


async def run_data_party(
    records: Mapping[str, Sequence[str]],
    settings: LinkageSettings,
    public_key: PublicKey,
    me: str,
    other: str,
    key_node: str,
    channel: Channel,
    *,
    first: bool,
    begin: Callable[[], None],
    uniform: UniformInt = system_uniform,
    in_thread: InThread = directly,
) -> LinkedRows:
    """Link this party's records with those of the other.

    Args:
        records: a column of texts for each field of the encoding.
        public_key: the key node's key, which the caller has checked.
        first: True if this party comes before the other one in the key node's order.
        begin: function that is called once the other party takes part, before anything leaves that an outcome depends
            on; it may raise.
        uniform: randomness; the same for the same records gives the same upload.

    Raises:
        DataError: the records cannot be linked, or too few of them match.
        MalformedMessage: the other party or the key node sent what it should not.
    """
    n_records = step_1_count(records, settings, me=me)
    private_key = step_0_private_key(uniform)
    await channel.send(other, step_0_key_share(private_key))
    theirs = await channel.receive(other, KeyShare)
    begin()
    secret = step_1_secret(private_key, theirs, me=me, other=other, first=first)
    order = await in_thread(partial(permutation, n_records, uniform))
    await channel.send(key_node, await in_thread(partial(step_1_filters, records, order, settings, secret)))
    outcome = await channel.receive(key_node, Outcome)
    n_slots = step_4_check_outcome(outcome, n_records, settings, first=first, key_node=key_node)
    positions, masks = [], []
    for chunk in chunks(n_slots):
        slots = await channel.receive(key_node, Slots)
        size = chunk.stop - chunk.start
        masks.append(await in_thread(partial(step_4_open, slots, size, public_key, key_node=key_node)))
        positions.append(slots.positions)
    return LinkedRows(step_4_unshuffle(np.concatenate(positions), order, key_node=key_node), concatenate(masks))


async def run_key_node(
    data_parties: Sequence[str],
    settings: LinkageSettings,
    randomisers: Randomisers,
    me: str,
    channel: Channel,
    *,
    draw: Callable[[bytes], UniformInt] = lambda _: system_uniform,
    in_thread: InThread = directly,
    while_wanted: WhileWanted = to_the_end,
    report: Report = silent,
) -> LinkageSummary:
    """Match the records of two data parties.

    Args:
        data_parties: the two parties, the first one first.
        draw: digest of both uploads -> randomness of the slots: the same for the same uploads, unrelated for any other.
            Otherwise a row that kept its slot while others moved would be distinguishable.
        randomisers: randomisers under the key node's own key; nothing is decrypted here.
        while_wanted: runner of the comparison, which takes minutes.
        report: function that is called as rows are matched and slots are encrypted; also from the working thread.

    Raises:
        ConfigError: there are not two data parties; nothing was received.
        DataError: too few rows match, or too many pairs are alike; both data parties only learn that too few match.
        MalformedMessage: a data party sent what it should not.
    """
    parties = step_2_check_parties(data_parties, me)
    filters = [step_2_check_filters(await channel.receive(party, Filters), settings, party=party) for party in parties]
    matched = await while_wanted(partial(step_2_watched, filters[0], filters[1], settings, report))
    outcome = step_2_outcome(matched, settings)
    for party in parties:
        await channel.send(party, outcome)
    if not outcome.enough:
        raise matched.anybody or too_few(settings)
    columns, mask = await in_thread(partial(step_3_slots, matched, draw(step_2_digest(filters))))
    for chunk in chunks(len(mask)):
        for party, positions in zip(parties, columns, strict=True):
            step_3 = partial(step_3_encrypt, positions[chunk], mask[chunk], randomisers)
            await channel.send(party, await in_thread(step_3))
        report("encrypt", chunk.stop, len(mask))
    return matched.summary


# --- the specification: all seats in one process, no channel -----------------------------------------------


def run_locally(
    records: tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]],
    settings: LinkageSettings,
    randomisers: Randomisers,
    names: tuple[str, str],
    uniforms: tuple[UniformInt, UniformInt, UniformInt],
) -> tuple[LinkedRows, LinkedRows, LinkageSummary]:
    """Run all roles in one process, without a channel: the specification.

    Args:
        uniforms: randomness of the first party, of the second and of the key node.

    Raises:
        DataError: too few rows match, or too many pairs are alike.
    """
    sizes = [step_1_count(records[i], settings, me=names[i]) for i in SEATS]
    keys = [step_0_private_key(uniforms[i]) for i in SEATS]
    shares = [step_0_key_share(key) for key in keys]
    secrets = [step_1_secret(keys[i], shares[1 - i], me=names[i], other=names[1 - i], first=i == 0) for i in SEATS]
    orders = [permutation(sizes[i], uniforms[i]) for i in SEATS]
    filters = [step_1_filters(records[i], orders[i], settings, secrets[i]).filters for i in SEATS]
    matched = step_2_match(filters[0], filters[1], settings)
    if not step_2_outcome(matched, settings).enough:
        raise matched.anybody or too_few(settings)
    columns, mask = step_3_slots(matched, uniforms[2])
    masks: tuple[list[EncryptedVector[Ciphertext]], ...] = ([], [])
    for chunk in chunks(len(mask)):
        for i in SEATS:
            slots = step_3_encrypt(columns[i][chunk], mask[chunk], randomisers)
            size = chunk.stop - chunk.start
            masks[i].append(step_4_open(slots, size, randomisers.public_key, key_node="key node"))
    first, second = (
        LinkedRows(step_4_unshuffle(columns[i], orders[i], key_node="key node"), concatenate(masks[i])) for i in SEATS
    )
    return first, second, matched.summary
