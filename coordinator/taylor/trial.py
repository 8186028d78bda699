"""A trial of a vertical training on the rows of this machine, prepared as the parties would prepare them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.coordinator.vertical import preflight as joint
from blindfit.coordinator.vertical.preflight import Positions
from blindfit.coordinator.vertical.roles import Roles
from blindfit.parties.taylor.parameters import parameters_of, preparation_of
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.seats import Seats

Trial = joint.Trial[TaylorParameters]


def trial_of(
    rows: Mapping[str, PartyRows],
    records: Mapping[str, TableRecord],
    roles: Roles,
    job: TaylorJob,
    *,
    label_range: tuple[float, float] | None = None,
    drawn: PublicRandomness | None = None,
) -> Trial:
    """Return the trial.

    Args:
        rows: rows of every data party, as they are read. records: records of their columns.
        label_range: range of the active party's labels.
        drawn: randomness of the held-out rows, as the parties remember it; None draws for a trial.

    Raises:
        DataError: there are too few rows, a column is constant, or all labels have one class.
    """
    is_linked, chosen = job.align.method == "linkage", preparation_of(job)
    positions = _slots(rows, job) if is_linked else joint.positions_to_train_on(rows)
    prepared = joint.prepare_rows(rows, records, positions, roles, job, chosen, label_range, drawn, is_linked=is_linked)
    seats = Seats(roles.active, roles.chain, roles.key_node)
    return Trial(prepared, parameters_of(job, seats, joint.ready(prepared)))


def _slots(rows: Mapping[str, PartyRows], job: TaylorJob) -> Positions:
    """Return each party's rows in random slots, -1 for an empty slot: this machine does not know the matches."""
    generator = job.trial_randomness.generator("trial")
    most = max(len(own.features) for own in rows.values())
    padded = {name: np.full(most, -1, dtype=np.int64) for name in rows}
    for name, own in rows.items():
        padded[name][: len(own.features)] = np.arange(len(own.features))
    return {name: generator.permutation(positions) for name, positions in padded.items()}
