"""The limits of what alignments reveal about who is among a data party's people, over all snapshots.

| alignment       | it reveals                          | limit
| linkage         | whether enough rows match           | 16 with each other party, all at the first job's min_common
| by ids          | whether enough ids are common       | 16 with each other party that may have found too few
| of WALR rows    | how many ids all parties have       | 16 with each other party

An alignment by ids that finds enough common rows reveals to each party which of its own ids these are. That is the
purpose of the job, and has no limit. An entry is written before anything leaves, and stays if the alignment fails. A
linkage of the same snapshots is free. An alignment by ids is computed again in each session, and a party may use other
ids each time, so each session counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.messages import parameters_digest
from blindfit.parties.account.account import MOST_MEMBERSHIP, Account
from blindfit.parties.job.parameters import AlignedParameters, TrainingParameters
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.account import Disclosure
from blindfit.parties.store.database import Reads, Store

EVENT = "linkage at min_common = "
BY_IDS, FOUND = "alignment that may have found too few rows", "alignment that found enough rows"
COMMON_ROWS = "number of rows in common"


def digest_linkage(session: Session[AlignedParameters]) -> bytes:
    """Return a digest of the snapshots and of the linkage's settings: a change in either draws everything again."""
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
        PolicyRefused: as in `check_linkage`; nothing is written.
        LedgerUnavailable: it could not be written.
    """
    account = Account.of(settings, session.me.dataset)
    with store.transaction() as transaction:
        _check(transaction, session, account)
        other = _other(session)
        event, question = f"{EVENT}{session.job.align.min_common}", digest_linkage(session).hex()
        read = session.published.id, session.id
        transaction.add_disclosure(account.entry("membership", other, [other], event, question, 1, read))


def begin_alignment(session: Session[AlignedParameters], settings: PartySettings, store: Store) -> None:
    """Count an alignment by ids, durably, before this party sends anything for it.

    Raises:
        PolicyRefused: too many have found too few rows, or were not finished; nothing is written.
        LedgerUnavailable: it could not be written.
    """
    reveals = (
        "may have found too few rows, which reveals who is not among them: compare with the other operators how ids "
        "are written"
    )
    _count(session, settings, store, BY_IDS, reveals, _name_alignment(session))


def end_alignment(session: Session[AlignedParameters], settings: PartySettings, store: Store) -> None:
    """Note that an alignment by ids found enough common rows."""
    account, others = Account.of(settings, session.me.dataset), _others(session)
    about, read = ",".join(others), (session.published.id, session.id)
    with store.transaction() as transaction:
        entry = account.entry("membership", about, others, FOUND, _name_alignment(session), 1, read)
        transaction.add_disclosure(entry)  # replaces the entry of its beginning


def _name_alignment(session: Session[AlignedParameters]) -> str:
    return f"{digest_linkage(session).hex()} {session.id}"


def count_common_rows(
    session: Session[TrainingParameters], settings: PartySettings, store: Store, sent: Sequence[str]
) -> None:
    """Count durably that all parties with columns in a WALR job will learn how many rows they have in common.

    Args:
        sent: names of the rows that other parties send; the number of the same rows is free.

    Raises:
        PolicyRefused: as in `begin_alignment`.
        LedgerUnavailable: it could not be written.
    """
    fields = session.job.digest_fields()
    split = {name: value for name, value in fields.items() if name.startswith("split.") or name == "seed"}
    question = parameters_digest({**session.snapshots, **split, "sent": tuple(sent)}).hex()
    reveals = "revealed how many rows are in common: run a job again that was run before, which is free"
    _count(session, settings, store, COMMON_ROWS, reveals, question)


def _count(
    session: Session[Any], settings: PartySettings, store: Store, event: str, reveals: str, question: str
) -> None:
    account, others, dataset = Account.of(settings, session.me.dataset), _others(session), session.me.dataset
    about, read = ",".join(others), (session.published.id, session.id)
    with store.transaction() as transaction:
        before = account.entries(transaction, "membership")
        if any((entry.about, entry.question, entry.event) == (about, question, event) for entry in before):
            return
        for other in others:
            count = sum(entry.event == event and other in entry.learner.split(",") for entry in before)
            if count >= MOST_MEMBERSHIP:
                _refuse(
                    transaction,
                    session,
                    f"{count} alignments of the people of {dataset} with {other} {reveals}, or have its operator start "
                    "the account again (`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)",
                )
        transaction.add_disclosure(account.entry("membership", about, others, event, question, 1, read))


def _others(session: Session[Any]) -> list[str]:
    """Return the other parties that hold columns of the same people, by name."""
    roles = "active", "passive"
    return sorted(m.name for m in session.members.values() if m.role in roles and m.name != session.me.name)


def _other(session: Session[AlignedParameters]) -> str:
    (other,) = (m.name for m in session.members.values() if m.dataset and m.name != session.me.name)
    return other


def _linkages_begun(reader: Reads, account: Account, other: str) -> list[Disclosure]:
    """Return the linkages with another party that count; draws of held-out rows have entries of their own."""
    return [entry for entry in account.entries(reader, "membership", other) if entry.event.startswith(EVENT)]


def _check(reader: Reads, session: Session[AlignedParameters], account: Account) -> None:
    other, dataset, asked = _other(session), session.me.dataset, digest_linkage(session).hex()
    before = _linkages_begun(reader, account, other)
    first = int(before[0].event.removeprefix(EVENT)) if before else session.job.align.min_common
    if session.job.align.min_common != first:
        _refuse(
            reader,
            session,
            f"the people of {dataset} were first linked with {other} at min_common = {first}, and other numbers would "
            f"reveal how many rows match: set align.min_common = {first}",
        )
    if len(before) >= MOST_MEMBERSHIP and asked not in [entry.question for entry in before]:
        _refuse(
            reader,
            session,
            f"{len(before)} linkages of the people of {dataset} with {other} were begun, and each reveals whether "
            "enough rows match: align by ids, or have its operator start the account again "
            "(`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)",
        )


def _refuse(reader: Reads, session: Session[AlignedParameters], reason: str) -> None:
    reader.excess.stop(PolicyRefused(party=session.me.name, field="align", reason=reason))
