"""A trial of a vertical training on the rows that are here: aligned, split and scaled as the parties would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.statistics.taylor_plan import RowPlan
from blindfit.coordinator.trust import Roles
from blindfit.parties.taylor.parameters import parameters_of, preparation_of
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.prepared import Prepared, prepare
from blindfit.parties.vertical.seats import Seats

Positions = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, repr=False)
class Trial:
    """Every party's rows in an order such as the key node may draw; the real one is another."""

    prepared: Mapping[str, Prepared]
    parameters: TaylorParameters

    @property
    def plan(self) -> RowPlan:
        return next(iter(self.prepared.values())).plan

    @property
    def n_rows(self) -> int:
        """In common, or slots after linkage."""
        return len(next(iter(self.prepared.values())).rows.features)

    @property
    def smallest_batch(self) -> int:
        return min(len(batch) for batch in self.plan.batches)


def trial_of(
    rows: Mapping[str, PartyRows],
    names: Mapping[str, tuple[str, ...]],
    roles: Roles,
    job: TaylorJob,
    *,
    label_range: tuple[float, float] | None = None,
) -> Trial:
    """Args:
    rows: of every data party, as they are read. names: of their columns. label_range: of the active party's labels.

    Raises:
        DataError: too few rows, a constant column, labels of one class.
    """
    positions = _slots(rows, job) if job.align.method == "linkage" else common_positions(rows)
    order = job.trial_randomness.generator("split").permutation(len(positions[roles.active]))
    prepared = {
        name: prepare(
            rows[name].take(positions[name]),
            names[name],
            preparation_of(job),
            order,
            active=name == roles.active,
            label_range=label_range,
        )
        for name in roles.chain
    }
    told = {name: Ready(own.columns.shape[1]) for name, own in prepared.items()}
    return Trial(prepared, parameters_of(job, Seats(roles.active, roles.chain, roles.key_node), told))


def common_positions(rows: Mapping[str, PartyRows]) -> Positions:
    """Of the ids that all have, in one order."""
    places = {name: {i: place for place, i in enumerate(own.ids.to_pylist())} for name, own in rows.items()}
    common = sorted(set.intersection(*(set(own) for own in places.values())))
    return {name: np.array([own[i] for i in common], dtype=np.int64) for name, own in places.items()}


def _slots(rows: Mapping[str, PartyRows], job: TaylorJob) -> Positions:
    """Each party's rows in random slots, -1 where it has none: who matches whom is not known here."""
    generator = job.trial_randomness.generator("trial")
    most = max(len(own.features) for own in rows.values())
    padded = {name: np.full(most, -1, dtype=np.int64) for name in rows}
    for name, own in rows.items():
        padded[name][: len(own.features)] = np.arange(len(own.features))
    return {name: generator.permutation(positions) for name, positions in padded.items()}
