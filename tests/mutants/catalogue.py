"""All mutants, room by room. A new one: add it to its room's tuple, and `make mutants` tries it."""

from __future__ import annotations

from tests.mutants import (
    account,
    approval,
    auditing,
    encoding,
    hidden_rows,
    holders,
    init_files,
    interference,
    keeping,
    ledger,
    model_export,
    network,
    paillier,
    privacy,
    recipes,
    rehearsal,
    repeats,
    selection,
    sharing,
    sharing_privacy,
    simulate,
    simulated_runs,
    snapshots,
    store,
    vertical,
    wire,
)

MUTANTS = (
    *account.MUTANTS,
    *privacy.MUTANTS,
    *ledger.MUTANTS,
    *model_export.MUTANTS,
    *network.MUTANTS,
    *wire.MUTANTS,
    *paillier.MUTANTS,
    *vertical.MUTANTS,
    *approval.MUTANTS,
    *auditing.MUTANTS,
    *interference.MUTANTS,
    *init_files.MUTANTS,
    *keeping.MUTANTS,
    *snapshots.MUTANTS,
    *store.MUTANTS,
    *repeats.MUTANTS,
    *hidden_rows.MUTANTS,
    *encoding.MUTANTS,
    *recipes.MUTANTS,
    *rehearsal.MUTANTS,
    *holders.MUTANTS,
    *sharing.MUTANTS,
    *selection.MUTANTS,
    *sharing_privacy.MUTANTS,
    *simulate.MUTANTS,
    *simulated_runs.MUTANTS,
)

WITHOUT_A_MUTANT: dict[int, str] = {}
"""Promises that no mutant here breaks, and why."""
