"""Carry the disclosure account of a dataset's people over when the dataset gets another population.

The account belongs to the people. A population that is named later, or is taken away again, does not begin it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from blindfit.parties.snapshots.people import Digests, join, pack, unpack
from blindfit.parties.store.account import Disclosure
from blindfit.parties.store.database import Writes
from blindfit.parties.store.snapshots import SnapshotRow


def carry_account(transaction: Writes, row: SnapshotRow, known: Sequence[SnapshotRow]) -> int:
    """Copy what was revealed about the people of a dataset into the account of its new population.

    Whether it does so follows from the party's file, never from rows. It copies the whole account, which the people of
    other datasets without a population share. Nothing is copied if the operator declares that these are other people.

    Args:
        row: the new snapshot; its people are in the database.
        known: the party's earlier snapshots.

    Returns:
        The number of entries.
    """
    before = [one.population for one in known if one.dataset == row.dataset]
    if not before or before[-1] == row.population or row.other_people:
        return 0
    theirs, here = join(transaction.people(before[-1])), join(transaction.people(row.population))
    every = {_key(entry): entry for entry in transaction.disclosures(row.population)}
    own = {_key(entry): entry for entry in transaction.disclosures_since_reset(row.population)}
    carried = 0
    for entry in transaction.disclosures_since_reset(before[-1]):
        if (ended := every.get(_key(entry))) and _key(entry) not in own and entry.made <= ended.made:
            continue  # the operator has started this account again since
        new = replace(entry, population=row.population, people=_among(entry, theirs, here))
        if (old := own.get(_key(entry))) is not None:
            new = _join(old, new, len(here))
        if new != old:
            transaction.add_disclosure(new)
            carried += 1
    return carried


def _key(entry: Disclosure) -> tuple[str, ...]:
    return entry.subject, entry.about, entry.learner, entry.question


def _join(old: Disclosure, new: Disclosure, n_people: int) -> Disclosure:
    """Return one entry of the same question about the people of both, with the larger bits and the later date."""
    both = pack(unpack(old.people, n_people) | unpack(new.people, n_people)) if old.people and new.people else b""
    return replace(old, people=both, bits=max(old.bits, new.bits), made=max(old.made, new.made))


def _among(entry: Disclosure, theirs: Digests, here: Digests) -> bytes:
    """Return the people of an entry by their places in the other population; empty: everybody."""
    if not entry.people:
        return b""
    return pack(np.isin(here, theirs[unpack(entry.people, len(theirs))]))
