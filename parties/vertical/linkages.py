"""How often a data party's people have been linked with another's: each linkage tells whether enough rows match.

The entries belong to a population and another data party, over all snapshots: at which number of matches (the first
job's), and which questions. An entry is written before anything of a linkage leaves, whether or not it succeeds. The
same question has the same answer, and is free.
"""

from __future__ import annotations

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.messages import parameters_digest
from blindfit.parties.account.account import MOST_MEMBERSHIP, Account
from blindfit.parties.job.parameters import AlignedParameters
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.account import Disclosure
from blindfit.parties.store.database import Reads, Store

EVENT = "linkage at min_common = "


def digest_linkage(session: Session[AlignedParameters]) -> bytes:
    """Return a digest of the snapshots and of how they are linked: a change in either draws everything again."""
    how = {name: value for name, value in session.job.digest_fields().items() if name.startswith("align.")}
    return parameters_digest({**session.snapshots, **how})


def check_linkage(session: Session[AlignedParameters], settings: PartySettings, store: Store) -> None:
    """Check before anything is sent, so that the other party begins no linkage that this one refuses.

    Raises:
        PolicyRefused: it could count the matches, or too many were begun.
    """
    with store.view() as reader:
        _check(reader, session, Account.of(settings, session.me.dataset))


def begin_linkage(session: Session[AlignedParameters], settings: PartySettings, store: Store) -> None:
    """Count a linkage, durably.

    Raises:
        PolicyRefused: as above; nothing is written.
        LedgerUnavailable: it could not be written.
    """
    account = Account.of(settings, session.me.dataset)
    with store.transaction() as transaction:
        _check(transaction, session, account)
        other = _other(session)
        event, question = f"{EVENT}{session.job.align.min_common}", digest_linkage(session).hex()
        read = session.published.id, session.id
        transaction.add_disclosure(account.entry("membership", other, [other], event, question, 1, read))


def _other(session: Session[AlignedParameters]) -> str:
    (other,) = (m.name for m in session.members.values() if m.dataset and m.name != session.me.name)
    return other


def _begun(reader: Reads, account: Account, other: str) -> list[Disclosure]:
    """Return the linkages with another party that count; a draw of who is held out has entries beside them."""
    return [entry for entry in account.entries(reader, "membership", other) if entry.event.startswith(EVENT)]


def _check(reader: Reads, session: Session[AlignedParameters], account: Account) -> None:
    other, dataset, asked = _other(session), session.me.dataset, digest_linkage(session).hex()
    before = _begun(reader, account, other)
    first = int(before[0].event.removeprefix(EVENT)) if before else session.job.align.min_common
    if session.job.align.min_common != first:
        _refuse(
            session,
            f"the people of {dataset} were first linked with {other} at min_common = {first}, and other numbers would "
            f"reveal how many rows match: set align.min_common = {first}",
        )
    if len(before) >= MOST_MEMBERSHIP and asked not in [entry.question for entry in before]:
        _refuse(
            session,
            f"{len(before)} linkages of the people of {dataset} with {other} were begun, and each reveals whether "
            "enough rows match: align by ids, or have its operator start the account again "
            "(`blindfit ledger --reset-account`)",
        )


def _refuse(session: Session[AlignedParameters], reason: str) -> None:
    raise PolicyRefused(party=session.me.name, field="align", reason=reason)
