"""A trial of a training on secret shares on the rows of this machine, prepared as the parties would prepare them."""

from __future__ import annotations

from collections.abc import Mapping

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.protocols.falcon import FalconParameters
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.coordinator.vertical import preflight as joint
from blindfit.coordinator.vertical.roles import Roles
from blindfit.parties.falcon.parameters import parameters_of, preparation_of
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.seats import Seats

Trial = joint.Trial[FalconParameters]


def trial_of(
    rows: Mapping[str, PartyRows],
    records: Mapping[str, TableRecord],
    roles: Roles,
    job: FalconJob,
    label_range: tuple[float, float] | None = None,
    drawn: PublicRandomness | None = None,
) -> Trial:
    """Return the trial.

    Args:
        rows: rows of every data party, as they are read. records: records of their columns.
        drawn: randomness of the held-out rows, as the parties remember it; None draws for a trial.

    Raises:
        DataError: there are too few rows.
    """
    positions = joint.positions_to_train_on(rows)
    prepared = joint.prepare_rows(rows, records, positions, roles, job, preparation_of(job), label_range, drawn)
    plan, seats = prepared[roles.active].plan, Seats(roles.active, roles.chain, roles.key_node)
    return Trial(prepared, parameters_of(job, seats, joint.ready(prepared), plan))
