"""The addition of a job to the disclosure account of the active party's people, in sentences."""

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
    """Yield how much a training reveals about labels, what was revealed before, and what that means for a person.

    Args:
        bits: upper bound of what this training reveals.
        rows: number of people of a dataset that has not been published.
        helps: change of the job that helps if the training does not fit.
        holds_against: parties against whom the bits hold, in sentences; empty means any party.
        adds: bits that it adds to the account; None if the active party refuses the training.
    """
    if active.dataset.public:
        yield Finding("note", "account", f"the labels of {active.dataset_name} are declared public, and do not count")
        return
    before, limit = active.label_bits(rows)
    told = (
        f"at most {bits:,.0f} bits about the labels of {active.dataset_name} are revealed. At a base rate of one half, "
        f"a party that chooses its columns for it reads up to {bits:,.0f} labels in full, and more if labels are rare. "
        "No single person is promised anything; privacy.epsilon would bound it for each person"
    )
    told += f". {holds_against.removesuffix('.')}" if holds_against else ""
    yield Finding("note", "account", told)
    adds_all = adds is None or adds >= bits
    if not adds_all:
        rest = f"adds only its end, {adds:,.1f} bits" if adds else "adds nothing"
        yield Finding("note", "account", f"this training was finished before with the same draws, and {rest}")
    left = limit - before - (bits if adds is None else adds)
    if left >= 0:
        more = f"{int(left / bits):,} more such trainings" if left >= bits > 0 else "no further training like this"
        yield Finding(
            "ok",
            "account",
            f"with {before:,.0f} bits revealed before, this stays within {limit:,.0f} bits for these people, which "
            f"allow {more}",
        )
        return
    yield Finding(
        "note",
        "account",
        f"{before:,.0f} of at most {limit:,.0f} bits about these people's labels were revealed before: {helps}, "
        f"or let the operator of {active.name} start the account again "
        "(`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)",
    )
