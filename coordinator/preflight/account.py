"""What a job would add to the disclosure account of the active party's people, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.coordinator.preflight.findings import Finding
from blindfit.coordinator.preflight.parties import PartyHere


def label_account(
    active: PartyHere,
    bits: float,
    rows: int,
    helps: str,
    holds_against: str = "",
    adds: float | None = None,
) -> Iterator[Finding]:
    """Say how much a training reveals of labels, what was revealed before, and what that means for a person.

    Args:
        bits: upper bound of what this training reveals.
        rows: people of a dataset that has not been published.
        helps: what the job can do where this does not fit.
        holds_against: against whom the bits hold, in sentences; empty: against any party.
        adds: bits that it adds to the account; None where the active party refuses it.
    """
    if active.dataset.public:
        yield Finding("note", "account", f"the labels of {active.dataset_name} are declared public, and do not count")
        return
    before, limit = active.label_bits(rows)
    told = (
        f"at most {bits:,.0f} bits about the labels of {active.dataset_name} are revealed: at a base rate of one half "
        f"up to {bits:,.0f} labels that a party which chooses its columns for that reads in full, more where labels "
        "are rare. No single person is promised anything; privacy.epsilon would bound it for each person"
    )
    told += f". {holds_against.removesuffix('.')}" if holds_against else ""
    yield Finding("note", "account", told)
    adds_all = adds is None or adds >= bits
    if not adds_all:
        rest = f"adds only where it ends, {adds:,.1f} bits" if adds else "adds nothing"
        yield Finding("note", "account", f"this training was finished before with the same draws, and {rest}")
    left = limit - before - (bits if adds is None else adds)
    if left >= 0:
        more = f"{int(left / bits):,} more such trainings" if left >= bits > 0 else "no such training more"
        yield Finding(
            "ok",
            "account",
            f"with {before:,.0f} bits revealed before, that stays within {limit:,.0f} bits for these people; there is "
            f"room for {more}",
        )
        return
    yield Finding(
        "note",
        "account",
        f"{before:,.0f} of at most {limit:,.0f} bits about these people's labels were revealed before: {helps}, "
        f"or let the operator of {active.name} start the account again "
        "(`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)",
    )
