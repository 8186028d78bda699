"""A data party's rows in parts. A worker reads, standardises, rounds and adds up the part of its task.

The workers belong to the party's own cluster ([compute] backend = "dask"). They read the party's snapshot from the
party's folder, on a disk that all of them share. Rows are in this process only while they are sent; each pass of the
fit returns sums to it. If a worker is lost, another one reads the part again.

The parts are whole batches of the source, and their results are put together in order. So everything up to the integers
that are sent is the same as without a cluster, bit for bit.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms import fixed_point
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.protocols.walr import ConsumerRows
from blindfit.algorithms.protocols.walr.grid import Grid
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows, RowsElsewhere, Sums
from blindfit.algorithms.statistics.linear.scaling import Moments, Standardiser, merge_moments
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.algorithms.workers import Workers
from blindfit.parties.data.row_batch import RowBatch
from blindfit.parties.data.source import Source
from blindfit.parties.training.rows import Report
from blindfit.parties.training.split import hold_out, refuse_no_row
from blindfit.parties.walr.rows import PreparedRows, SentColumns, norm_bound_of
from blindfit.parties.walr.settings import WalrJob, WalrSettings

Floats = NDArray[np.float64]
PARTS_OF_A_WORKER = 4
MOST_HELD_BYTES = 1 << 30  # size of rounded rows that one worker keeps between the passes of a fit


@dataclass(frozen=True, repr=False)
class Part:
    """Some batches of a snapshot, and their split.

    Args:
        name: name of this part, unique to this job.
    """

    source: Source
    name: str
    job: WalrJob
    randomness: PublicRandomness

    def batches(self) -> Iterator[tuple[RowBatch, NDArray[np.bool_]]]:
        """Yield each batch, with a mark for each row that is held out."""
        for batch in self.source.batches(persons=False, labels=False):
            yield batch, hold_out(batch.ids, self.job, self.randomness)


@dataclass(frozen=True, repr=False)
class PartFacts:
    """Facts of the rows to train on, and of the held-out rows."""

    ids: list[str]
    test_ids: list[str]
    moments: list[Moments | None]


# --- what a worker does --------------------------------------------------------------------------------


def facts_of(part: Part) -> PartFacts:
    facts = PartFacts([], [], [])
    for batch, tested in part.batches():
        facts.ids.extend(batch.ids.filter(pa.array(~tested)).to_pylist())
        facts.test_ids.extend(batch.ids.filter(pa.array(tested)).to_pylist())
        if not tested.all():
            features = batch.features[~tested]
            facts.moments.append(Moments.of(features, first_row=batch.first_row - 1))
    return facts


def norms_of(part: Part, columns: SentColumns) -> Floats:
    norms = [columns.norms(batch.features[~tested]) for batch, tested in part.batches() if not tested.all()]
    return np.concatenate(norms) if norms else np.zeros(0)


def integers_of(part: Part, columns: SentColumns, grid: Grid) -> IntegerRows:
    """Return rows in the form that is sent. They stay in memory for the next pass, if there is space."""
    key = part.name, columns, grid
    if key in _HELD:
        _HELD.move_to_end(key)
        return _HELD[key]
    kind = fixed_point.integer_type(grid.norm_bound)
    made = [np.empty((0, columns.width), kind)]
    for batch, tested in part.batches():
        rows = fixed_point.quantise_rows(columns.of(batch.features[~tested]), grid.norm_bound, grid.frac_bits)
        made.append(rows.astype(kind))
    _HELD[key] = np.concatenate(made)
    while len(_HELD) > 1 and sum(rows.nbytes for rows in _HELD.values()) > MOST_HELD_BYTES:
        _HELD.popitem(last=False)
    return _HELD[key]


_HELD: OrderedDict[tuple[Any, ...], IntegerRows] = OrderedDict()


def probabilities_of(part: Part, model: WALRModel) -> Floats:
    """Return the probabilities of the held-out rows."""
    found = [model.probabilities(batch.features[tested]) for batch, tested in part.batches() if tested.any()]
    return np.concatenate(found) if found else np.zeros(0)


def sum_over(
    part: Part,
    columns: SentColumns,
    grid: Grid,
    chosen: Chosen,
    function: Callable[..., Sums],
    arguments: tuple[Any, ...],
) -> Sums | None:
    """Return the sums over the chosen rows; None if no row of the part is chosen."""
    rows = chosen.of(integers_of(part, columns, grid))
    return function(QuantisedRows(rows, grid.frac_bits), *arguments) if len(rows) else None


@dataclass(frozen=True, repr=False)
class Chosen:
    """The chosen rows and columns of a part.

    Attributes:
        kept: packed bits of a part's rows that counted, uint8; None if all did.
        columns: columns for which the model has weights; None for all.
    """

    kept: NDArray[np.uint8] | None
    columns: tuple[int, ...] | None

    def of(self, rows: IntegerRows) -> IntegerRows:
        if self.kept is not None:
            rows = rows[np.unpackbits(self.kept, count=len(rows)).astype(np.bool_)]
        return rows if self.columns is None else rows[:, list(self.columns)]


# --- this process --------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ReadParts:
    """Rows like those of ReadColumns, which are on workers."""

    parts: Sequence[Part]
    facts: Sequence[PartFacts]
    columns: SentColumns
    norms: Floats
    workers: Workers

    def norm_bound(self, settings: WalrSettings) -> float:
        return norm_bound_of(settings, self.norms)

    def round(self, grid: Grid) -> PreparedRows:
        sizes = [len(facts.ids) for facts in self.facts]
        weights: Any = IntegerParts(self.parts, self.workers, self.columns, grid, sizes)
        ids = tuple(i for facts in self.facts for i in facts.ids)
        return PreparedRows(
            train=ConsumerRows(ids, weights),
            standardiser=self.columns.standardiser,
            grid=grid,
            rows_clipped=int((self.norms > grid.real_bound).sum()),
            test_ids=pa.array([i for facts in self.facts for i in facts.test_ids], pa.string()),
            test_features=HeldOutParts(self.parts, self.workers),
        )


def read_parts(
    source: Source, job: WalrJob, randomness: PublicRandomness, report: Report, workers: Workers, *, intercept: bool
) -> ReadParts:
    """Read rows in two passes: their moments, and the norms of standardised rows.

    Recipes that take numbers from training rows need one more pass, in this process.

    Raises:
        DataError: no row is left to train on.
        ComputeFailed: the workers were lost, or too slow.
    """
    report("read rows", 0, 0, "rows")
    source = source.with_recipes(lambda ids: ~hold_out(ids, job, randomness))
    parts = parts_of(source, job, randomness, workers.count * PARTS_OF_A_WORKER)
    facts = workers.map(facts_of, [(part,) for part in parts])
    if not any(each.ids for each in facts):
        refuse_no_row(source)
    moments = merge_moments(of_batch for each in facts for of_batch in each.moments)
    standardiser = Standardiser.of(moments, source.feature_names, table=source.record, at_least_one=True)
    columns = SentColumns(standardiser, intercept)
    report("prepare rows", 0, moments.n_rows, "rows")
    norms = np.concatenate(workers.map(norms_of, [(part, columns) for part in parts]))
    return ReadParts(parts, facts, columns, norms, workers)


def parts_of(source: Source, job: WalrJob, randomness: PublicRandomness, at_most: int) -> list[Part]:
    """Return whole batches of the source in at most `at_most` parts."""
    sizes = [len(batch) for batch in source.batches(persons=False, labels=False, features=False)]
    begins = [0, *np.cumsum(sizes).tolist()]
    bounds = np.linspace(0, len(sizes), min(at_most, len(sizes)) + 1).round().astype(int).tolist()
    ranges = [(begins[low], begins[high]) for low, high in pairwise(bounds)]
    source, name = source.with_means(), secrets.token_hex(16)
    return [Part(source.part(*rows), f"{name}-{rows}", job, randomness) for rows in ranges]


class IntegerParts:
    """The rounded rows, as an array that returns only slices of rows: a few parts at a time are in this process."""

    def __init__(
        self, parts: Sequence[Part], workers: Workers, columns: SentColumns, grid: Grid, sizes: Sequence[int]
    ) -> None:
        self._parts, self._workers, self._columns, self._grid = parts, workers, columns, grid
        self._begins = [0, *np.cumsum(sizes).tolist()]
        self.shape: tuple[int, int] = (self._begins[-1], columns.width)
        self.dtype = np.dtype(fixed_point.integer_type(grid.norm_bound))
        self.itemsize = self.dtype.itemsize
        self._here: dict[int, IntegerRows] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> IntegerRows:
        start, stop, _ = rows.indices(len(self))
        wanted = [i for i, begin in enumerate(self._begins[:-1]) if begin < stop and self._begins[i + 1] > start]
        pieces = [self._part(i)[max(0, start - self._begins[i]) : stop - self._begins[i]] for i in wanted]
        return np.concatenate(pieces) if pieces else np.empty((0, self.shape[1]), self.dtype)

    def _part(self, which: int) -> IntegerRows:
        if which not in self._here:
            window = range(which, min(which + self._workers.count, len(self._parts)))
            tasks = [(self._parts[i], self._columns, self._grid) for i in window]
            self._here = dict(zip(window, self._workers.map(integers_of, tasks), strict=True))
        return self._here[which]

    def choose(self, kept: NDArray[np.bool_], columns: Sequence[int]) -> PartitionedRows:
        self._here = {}
        all_columns = None if list(columns) == list(range(self.shape[1])) else tuple(columns)
        pieces = [kept[low:high] for low, high in pairwise(self._begins)]
        choices = [Chosen(None if k.all() else np.packbits(k), all_columns) for k in pieces]
        tasks = [(part, self._columns, self._grid, choice) for part, choice in zip(self._parts, choices, strict=True)]
        return PartitionedRows(tasks, self._workers, [int(k.sum()) for k in pieces], len(columns), self._grid.frac_bits)


@dataclass(frozen=True, repr=False)
class PartitionedRows(RowsElsewhere):
    tasks: Sequence[tuple[Part, SentColumns, Grid, Chosen]]
    workers: Workers
    sizes: Sequence[int]
    n_features: int
    frac_bits: int
    n_rows: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_rows", sum(self.sizes))

    def sum_rows(self, function: Callable[..., Sums], *arguments: Any) -> Sums:
        found = self.workers.map(sum_over, [(*task, function, arguments) for task in self.tasks])
        totals = [sums for sums in found if sums is not None]
        return tuple(sum(each[1:], start=each[0]) for each in zip(*totals, strict=True))

    def blocks(self) -> Iterator[Floats]:
        """Yield one part after the other. A computation that needs more than sums of all rows is slow here."""
        for task in self.tasks:
            (rows,) = self.workers.map(choose_rows, [task])
            if len(rows):
                yield from QuantisedRows(rows, self.frac_bits).blocks()

    def take(self, which: slice | NDArray[np.intp]) -> Floats:
        places = np.arange(self.n_rows)[which]
        begins = np.cumsum([0, *self.sizes])
        part = np.searchsorted(begins, places, side="right") - 1
        taken = np.empty((len(places), self.n_features))
        asked = [i for i in range(len(self.tasks)) if (part == i).any()]
        found = self.workers.map(take_rows, [(*self.tasks[i], places[part == i] - begins[i]) for i in asked])
        for i, rows in zip(asked, found, strict=True):
            taken[part == i] = rows * 2.0**-self.frac_bits
        return taken


def choose_rows(part: Part, columns: SentColumns, grid: Grid, chosen: Chosen) -> IntegerRows:
    return chosen.of(integers_of(part, columns, grid))


def take_rows(part: Part, columns: SentColumns, grid: Grid, chosen: Chosen, places: NDArray[np.int64]) -> IntegerRows:
    return choose_rows(part, columns, grid, chosen)[places]


@dataclass(frozen=True, repr=False)
class HeldOutParts:
    parts: Sequence[Part]
    workers: Workers

    def probabilities(self, model: WALRModel) -> Floats:
        return np.concatenate(self.workers.map(probabilities_of, [(part, model) for part in self.parts]))
