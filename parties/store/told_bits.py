"""How many bits others were told that hang on the rows of a snapshot, over all jobs: up to a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blindfit.algorithms.errors import BlindfitError
from blindfit.parties.store.store import Store


def count_told_bits(
    store: Store,
    requester: str,
    request_id: str,
    bits: Mapping[str, int],
    most: int,
    refuse: Callable[[int], BlindfitError],
) -> None:
    """Before they are told. The same request counts once; one that is refused does not count.

    Args:
        bits: by snapshot.
        refuse: what is raised of so many bits of one snapshot.
    """
    with store.transaction() as transaction:
        for snapshot, more in bits.items():
            transaction.add_told_bits(snapshot, requester, request_id, more)
            if (all_bits := transaction.told_bits(snapshot)) > most:
                raise refuse(all_bits)
