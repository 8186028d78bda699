"""How often a data party's rows have been linked with another's: each linkage tells whether enough rows match.

For each snapshot and each other data party, for ever: at which number of matches (the first job's), and which
questions. It is written before anything of a linkage leaves, whether or not it succeeds; who asks the same question
again gets the same answer, for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.messages import parameters_digest
from blindfit.parties.job.parameters import AlignedParameters
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.counts import Linkage
from blindfit.parties.store.database import Reads, Store

MOST_LINKAGES = 16  # of a snapshot with another party's rows: so many bits of who matches


def digest_linkage(session: Session[AlignedParameters]) -> bytes:
    """Return a digest of the snapshots and of how they are linked: a change in either draws everything again."""
    how = {name: value for name, value in session.job.digest_fields().items() if name.startswith("align.")}
    return parameters_digest({**session.snapshots, **how})


def check_linkage(session: Session[AlignedParameters], store: Store) -> None:
    """Before anything is sent, so that the other party begins none that this one refuses.

    Raises:
        PolicyRefused: it could count the matches, or too many were begun.
    """
    with store.view() as reader:
        _check(reader, session)


def begin_linkage(session: Session[AlignedParameters], store: Store) -> None:
    """Counts it, durably.

    Raises:
        PolicyRefused: as above; nothing is written.
        LedgerUnavailable: it could not be written.
    """
    with store.transaction() as transaction:
        _check(transaction, session)
        transaction.add_linkage(session.published.id, _make_linkage(session))


def _make_linkage(session: Session[AlignedParameters]) -> Linkage:
    (other,) = (m.name for m in session.members.values() if m.dataset and m.name != session.me.name)
    return Linkage(other, digest_linkage(session).hex(), session.job.align.min_common)


def _check(reader: Reads, session: Session[AlignedParameters]) -> None:
    asked, dataset = _make_linkage(session), session.me.dataset
    before = [linkage for linkage in reader.linkages(session.published.id) if linkage.other == asked.other]
    if before and asked.min_common != before[0].min_common:
        _refuse(session, _at_another_number(dataset, before[0]))
    if len(before) >= MOST_LINKAGES and asked not in before:
        _refuse(session, _too_many(dataset, before))


def _at_another_number(dataset: str, first: Linkage) -> str:
    again = f"have {dataset} published again (`blindfit snapshot`)"
    return (
        f"this snapshot of {dataset} was first linked with {first.other} at min_common = {first.min_common}, and "
        f"other numbers would reveal how many rows match: set align.min_common = {first.min_common}, or {again}"
    )


def _too_many(dataset: str, before: Sequence[Linkage]) -> str:
    return (
        f"{len(before)} linkages of this snapshot of {dataset} with {before[0].other} were begun, and each reveals "
        f"whether enough rows match: have {dataset} published again (`blindfit snapshot`)"
    )


def _refuse(session: Session[AlignedParameters], reason: str) -> None:
    raise PolicyRefused(party=session.me.name, field="align", reason=reason)
