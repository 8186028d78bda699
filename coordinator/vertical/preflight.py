"""Parts that the pre-flights of vertical trainings share: rows, their alignment by ids and their split, on trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.held_out import smallest_fraction
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding, catch_error
from blindfit.coordinator.preflight.parties import PartyHere, list_derived
from blindfit.coordinator.terminal.wording import join_names
from blindfit.coordinator.vertical.common_ids import none_in_common
from blindfit.coordinator.vertical.roles import Learnt, Roles
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.training.rows import PartyRows, read_rows
from blindfit.parties.vertical.alignment import Alignment, order_of
from blindfit.parties.vertical.prepared import Preparation, Prepared, prepare

ROWS_PER_COLUMN = 10  # with fewer training rows for each column, the model overfits
FEW_TEST_ROWS = 100

J = TypeVar("J", bound=Job[Any])
P = TypeVar("P")
Rows = dict[str, PartyRows]
Positions = Mapping[str, NDArray[np.int64]]


def roles_of(job: Job[Any]) -> Roles:
    return Roles.of({name: party.role for name, party in job.parties.items()})


def who(learnt: Iterable[Learnt], colluding: Iterable[str], out_of_model: Iterable[str]) -> Iterator[Finding]:
    for one in learnt:
        yield Finding("note", "who learns what", f"{one.who}: {' '.join(one.sentences)}")
    for sentence in colluding:
        yield Finding("note", "who colludes", sentence)
    for sentence in out_of_model:
        yield Finding("note", "out of the model", sentence)


def unsafe(option: str, flags: Iterable[str]) -> Iterator[Finding]:
    for flag in flags:
        yield Finding("warning", option, f"{flag} is allowed; the report will state this")


# --- the parties' rows -------------------------------------------------------------------------------------


def check_all(
    job: J,
    here: Sequence[PartyHere],
    check_party: Callable[[J, Roles, PartyHere, Rows], Iterable[Finding]],
    try_all: Callable[[J, Roles, Rows, Mapping[str, PartyHere]], Iterable[Finding]],
) -> Iterator[Finding]:
    """Yield the findings of all data parties.

    Args:
        check_party: function that checks one data party and adds its rows.
        try_all: function that tries the training if the rows of all parties are here.
    """
    roles = roles_of(job)
    data = {party.name: party for party in here if party.name in roles.chain}
    rows: Rows = {}
    for party in data.values():
        yield from catch_error(party.name, partial(check_party, job, roles, party, rows))
    missing = [name for name in roles.chain if name not in data]
    if missing:
        yield Finding(
            "note", "rows", f"rows of {join_names(missing)} cannot be read here, so the training was not tried"
        )
    elif len(rows) == len(roles.chain):
        yield from catch_error("trial", partial(try_all, job, roles, rows, data))


def read_own(party: PartyHere, rows: Rows, *, active: bool) -> Iterator[Finding]:
    """Read the party's rows and add them to `rows`."""
    source = party.source()
    found = read_rows(source.with_gaps(), labels=active, report=lambda *_: None)
    yield Finding("ok", party.name, f"{len(found.features):,} rows, {len(source.model_columns)} features")
    yield from list_derived(party, source)
    rows[party.name] = found


def rows_here(job: Job[Any], here: Sequence[PartyHere]) -> tuple[Rows, dict[str, TableRecord]]:
    """Return the rows of data parties that are all here, and the records of their columns."""
    roles = roles_of(job)
    sources = {party.name: party.source().with_gaps() for party in here if party.name in roles.chain}
    rows = {
        name: read_rows(source, labels=name == roles.active, report=lambda *_: None) for name, source in sources.items()
    }
    return rows, {name: source.record for name, source in sources.items()}


def repeat_rows(rows: Rows, times: int) -> Rows:
    """Return tables with so many copies of each row, under other ids, to forecast a larger job."""
    found: Rows = {}
    for name, own in rows.items():
        ids = [f"{name_} {copy}" for copy in range(times) for name_ in own.ids.to_pylist()]
        labels = None if own.labels is None else np.tile(own.labels, times)
        found[name] = PartyRows(pa.array(ids), np.tile(own.features, (times, 1)), labels, np.tile(own.there, times))
    return found


# --- all parties together -- ------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Trial(Generic[P]):
    """Every party's rows in an order as the key node may draw it; the real order is another.

    Attributes:
        parameters: parameters as all parties compute them.
    """

    prepared: Mapping[str, Prepared]
    parameters: P

    @property
    def plan(self) -> RowPlan:
        return next(iter(self.prepared.values())).plan

    @property
    def n_rows(self) -> int:
        """Number of common rows, or of slots after linkage."""
        return len(next(iter(self.prepared.values())).rows.features)


def common_positions(rows: Mapping[str, PartyRows]) -> Positions:
    """Return the positions of the common ids, in one order."""
    places = {name: {i: place for place, i in enumerate(own.ids.to_pylist())} for name, own in rows.items()}
    common = sorted(set.intersection(*(set(own) for own in places.values())))
    return {name: np.array([own[i] for i in common], dtype=np.int64) for name, own in places.items()}


def positions_to_train_on(rows: Mapping[str, PartyRows]) -> Positions:
    """Raise DataError: no id is in all tables; names the difference."""
    found = common_positions(rows)
    if not all(map(len, found.values())):
        raise none_in_common({name: own.ids for name, own in rows.items()})
    return found


def prepare_rows(
    rows: Mapping[str, PartyRows],
    records: Mapping[str, TableRecord],
    positions: Positions,
    roles: Roles,
    job: TrainingParameters,
    chosen: Preparation,
    label_range: tuple[float, float] | None = None,
    drawn: PublicRandomness | None = None,
    *,
    is_linked: bool = False,
) -> dict[str, Prepared]:
    """Split and scale rows as the parties would.

    Args:
        drawn: randomness of the held-out rows, as the parties remember it; None draws for a trial.
        is_linked: True if the positions are slots of a linkage, whose order is drawn.

    Raises:
        DataError: there are too few rows.
    """
    randomness, common = drawn or job.trial_randomness, rows[roles.active].take(positions[roles.active])
    if is_linked:
        order = randomness.generator("split").permutation(len(positions[roles.active]))
    else:
        fractions = chosen.test_fraction, chosen.validation_fraction
        order = order_of(common, Alignment(positions[roles.active]), randomness, fractions)
    return {
        name: prepare(
            rows[name].take(positions[name]),
            records[name].encoded,
            chosen,
            order,
            active=name == roles.active,
            label_range=label_range,
            table=records[name],
        )
        for name in roles.chain
    }


def ready(prepared: Mapping[str, Prepared]) -> dict[str, Ready]:
    """Return what every party would report of itself."""
    return {name: Ready(own.columns.shape[1]) for name, own in prepared.items()}


def common_rows(n_rows: int, least: int) -> Finding:
    if n_rows < least:
        text = f"{n_rows:,} rows in common are fewer than the job needs: set align.min_common = {n_rows}, or less"
        return Finding("refuses", "psi", text)
    return Finding("ok", "psi", f"{n_rows:,} rows in common")


def split(plan: RowPlan, columns: int, held_out: str, l2: str) -> Iterator[Finding]:
    """Yield the sizes of the split, with warnings.

    Args:
        columns: number of columns of all parties. held_out: purpose of the validation rows. l2: name of the option.
    """
    smallest = min(len(batch) for batch in plan.batches)
    yield Finding(
        "ok",
        "split",
        f"{len(plan.train):,} rows to train on, batches of {smallest:,} or more; {len(plan.validation):,} "
        f"for {held_out}, {len(plan.test):,} to test on",
    )
    if len(plan.train) < ROWS_PER_COLUMN * columns:
        text = (
            f"{len(plan.train):,} rows for {columns} weights are few: use at most {len(plan.train) // ROWS_PER_COLUMN} "
            f"columns; a larger {l2} lets you use more of them"
        )
        yield Finding("warning", "rows", text)
    if 0 < len(plan.test) < FEW_TEST_ROWS:
        enough = smallest_fraction(FEW_TEST_ROWS, len(plan.train) + len(plan.validation) + len(plan.test))
        more = "use more rows" if enough is None else f"set split.test_fraction = {enough:g}, or more"
        yield Finding("warning", "rows", f"{len(plan.test)} test rows give rough figures: {more}")


def constant_columns(own: Prepared, name: str) -> Iterator[Finding]:
    for column in own.standardiser.dropped:
        yield Finding("note", name, f"{column} has the same value in every training row, so its weight will be 0")
