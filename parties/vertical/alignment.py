"""Alignment of a data party's rows: bring them into the common order, by ids (psi) or by likeness (linkage)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import structlog
from numpy.typing import NDArray

from blindfit.algorithms.alignment import clk, psi
from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, ReceivedCiphertext
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.vectors import EncryptedVector
from blindfit.algorithms.protocols import align, link
from blindfit.algorithms.protocols.linkage import LinkageSettings
from blindfit.algorithms.randomness import PublicRandomness, UniformInt, keyed_uniform
from blindfit.algorithms.statistics.vertical.row_plan import count_held_out
from blindfit.parties.data.source import Source
from blindfit.parties.job.parameters import AlignedParameters
from blindfit.parties.job.tables import AlignSettings
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.checkpoints import make_damage_error
from blindfit.parties.vertical.linkages import (
    begin_alignment,
    begin_linkage,
    check_linkage,
    digest_linkage,
    end_alignment,
)
from blindfit.parties.vertical.seats import Seats

log = structlog.get_logger(__name__)


@dataclass(frozen=True, repr=False)
class Alignment:
    """Own rows in the common order (-1: no row). After a linkage it also has the mask, which only the key node can
    decrypt.
    """

    positions: NDArray[np.int64]
    mask_enc: EncryptedVector[Ciphertext] | None = None


async def align_rows(
    session: Session[AlignedParameters],
    seats: Seats,
    source: Source,
    rows: PartyRows,
    public_key: PublicKey,
    party: Party,
) -> Alignment:
    """Align a party's rows by the method of the job.

    Args:
        party: party whose secret draws a linkage's uploads. The draw is the same for the same snapshots, so the same
            rows come to the same slots. The party's store counts linkages.

    Raises:
        DataError: there are too few rows in common.
        PolicyRefused: a linkage could count the matches, or too many were begun.
    """
    if session.job.align.method == "linkage":
        key = party.secret.derive("uploads of a linkage", digest_linkage(session))
        return await _link(session, seats, source, public_key, keyed_uniform(key, "uploads"), party)
    return await align_by_id(session, seats, rows, party)


async def align_by_id(session: Session[AlignedParameters], seats: Seats, rows: PartyRows, party: Party) -> Alignment:
    """Align rows by their ids.

    Raises:
        DataError: there are too few rows in common.
        PolicyRefused: too many alignments have found too few rows.
    """
    await asyncio.to_thread(begin_alignment, session, party.settings, party.store)
    alignment = await align.run_data_party(
        rows.ids.to_pylist(),
        seats.me,
        seats.chain,
        seats.key_node,
        session.channel,
        min_common=session.job.align.min_common,
        workers=psi.Threads(os.cpu_count() or 1),
        report=lambda step, done, total: session.report(step, done, total, "ids"),
        in_thread=asyncio.to_thread,
    )
    await asyncio.to_thread(end_alignment, session, party.settings, party.store)
    return Alignment(alignment.positions)


async def _link(
    session: Session[AlignedParameters],
    seats: Seats,
    source: Source,
    public_key: PublicKey,
    uniform: UniformInt,
    party: Party,
) -> Alignment:
    check_linkage(session, party.settings, party.store)
    settings = linkage_settings(session.job.align)
    records = await asyncio.to_thread(source.records, [field.name for field in settings.encoding.fields])
    tell_of_unreadable(await asyncio.to_thread(clk.count_unreadable, records, settings.encoding))
    (other,) = (name for name in seats.chain if name != seats.me)
    session.report("link")
    linked = await link.run_data_party(
        records,
        settings,
        public_key,
        seats.me,
        other,
        seats.key_node,
        session.channel,
        first=seats.me == seats.chain[0],
        begin=partial(begin_linkage, session, party.settings, party.store),
        uniform=uniform,
        in_thread=asyncio.to_thread,
    )
    return Alignment(linked.positions, linked.mask_enc)


def tell_of_unreadable(dates: Mapping[str, int]) -> None:
    """Warn only the operator: no other party may know the content of rows."""
    for field, rows in dates.items():
        if rows:
            log.warning("dates that are not written YYYY-MM-DD count as missing in a linkage", field=field, rows=rows)


def encode_mask(mask_enc: EncryptedVector[Ciphertext] | None) -> str | None:
    """Return the ciphertexts for a checkpoint, in hexadecimal, one after the other; None after an alignment by ids."""
    if mask_enc is None:
        return None
    key = mask_enc.public_key
    integers = key.kernel.integers(mask_enc.residues)
    return b"".join(int(integer).to_bytes(key.ciphertext_bytes, "big") for integer in integers).hex()


def decode_mask(
    stored: str | None, public_key: PublicKey, slots: int, me: str, resume_option: str
) -> EncryptedVector[Ciphertext] | None:
    """Return the mask of a checkpoint. Raise DataError unless it has a ciphertext of this key for each slot."""
    if stored is None:
        return None
    try:
        received = ReceivedCiphertext(public_key.ciphertext_bytes, bytes.fromhex(stored))
        return EncryptedVector.receive(received, public_key, length=slots, frac_bits=0, bound=1, culprit=me)
    except (ValueError, MalformedMessage):
        raise make_damage_error(resume_option) from None


def linkage_settings(job: AlignSettings) -> LinkageSettings:
    return LinkageSettings(job.encoding(), job.threshold, job.min_common)


async def match_ids(session: Session[AlignedParameters], seats: Seats) -> int:
    """Return the number of rows that all data parties have."""
    return await align.run_key_node(
        seats.chain,
        seats.me,
        session.channel,
        workers=psi.Threads(os.cpu_count() or 1),
        in_thread=asyncio.to_thread,
        report=lambda step, done, total: session.report(step, done, total, "ids"),
    )


def order_of(
    common: PartyRows, aligned: Alignment, randomness: PublicRandomness, fractions: tuple[float, float]
) -> NDArray[np.int64]:
    """Return the order in which the common rows fall into parts and batches.

    It is drawn by the rows' ids, or by the slots of a linkage, whose order only the key node knows. Each pair of
    fractions has its own order, and few fractions are allowed. Suppose that two trainings had the same order, and that
    one of them held out an additional row. Then their figures or hold-out losses would differ by that row's.

    Args:
        fractions: fraction of rows for the test, and fraction for the validation.
    """
    test, validation = count_held_out(len(aligned.positions), *fractions) if randomness.orders_by_count else fractions
    purpose = f"order, {test} for the test and {validation} for the validation"
    names = common.ids.to_pylist() if aligned.mask_enc is None else map(str, range(len(aligned.positions)))
    return np.argsort(randomness.draws(purpose, names), kind="stable")
