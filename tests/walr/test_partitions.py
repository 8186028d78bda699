"""A party whose own Dask cluster of two worker processes reads, scales, rounds and sums: the results are those of one
process.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from distributed import LocalCluster

from blindfit.algorithms.columns.recipes import Bins, Spline
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.workers import THIS_PROCESS
from blindfit.coordinator.job.job import load_job
from blindfit.parties.data.source import Source
from blindfit.parties.files.vault import PLAIN as UNLOCKED
from blindfit.parties.measurement.servers import Servers
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.systems import load_party, snapshot_writer
from blindfit.parties.walr import partitions
from blindfit.parties.walr.partitions import IntegerParts, PartitionedRows
from blindfit.parties.walr.reading import prepare_rows
from tests.published import published
from tests.walr_split.released import without_noise
from tests.work.clusters import cluster, process_ids, wait_for_both, wait_until
from tests.world.split_labels import Split

ROWS, BATCH_ROWS = 400, 100


@pytest.fixture(scope="module")
def running() -> Iterator[LocalCluster]:
    with cluster() as two:
        yield two


class LargerHouse(Split):
    """A world with rows in a dozen batches, a constant column, and a column with missing values."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rng = np.random.default_rng(5)
        columns: dict[str, Any] = {name: rng.normal(size=ROWS) for name in "xzw"}
        columns["w"][::17] = np.nan
        ids = pa.array([f"row {i}" for i in range(ROWS)])
        table = pa.table({"id": ids, **columns, "same": np.ones(ROWS)})
        pyarrow.csv.write_csv(table.replace_schema_metadata(), self.root / "features.csv")
        self.write_labels([int(i * 7 % 10 < 4) for i in range(ROWS)])

    def write_labels(self, labels: list[int]) -> None:
        self.labels = {f"row {i}": label for i, label in enumerate(labels)}
        pyarrow.csv.write_csv(pa.table({"id": list(self.labels), "label": labels}), self.root / "labels.csv")

    def on(self, running: LocalCluster | None) -> None:
        """Make the shop read by this cluster, or by itself."""
        self.write_party("shop")
        path = self.root / "shop.toml"
        text = path.read_text() + 'missing = "mean"\n'
        if running is not None:
            text += f'[compute]\nbackend = "dask"\naddress = "{running.scheduler_address}"\ntask_timeout_s = 60\n'
        path.write_text(text)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LargerHouse:
    """Every reader reads its snapshots in batches of 32 rows."""
    read = Snapshot.source

    def in_small_batches(self: Snapshot) -> Source:
        source = read(self)
        return replace(source, settings=source.settings.model_copy(update={"batch_rows": BATCH_ROWS}))

    monkeypatch.setattr(Snapshot, "source", in_small_batches)
    return LargerHouse(tmp_path)


def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return every request for an aggregate, and its answer."""
    found: list[Any] = []
    release = Servers.release

    async def noted(self: Servers, rows: Any, requests: Any) -> Any:
        made = await release(self, rows, requests)
        found.append((requests[0], made.aggregate.answer))
        return made

    monkeypatch.setattr(Servers, "release", noted)
    return found


def written(house: Split, session: str, name: str) -> Any:
    return json.loads((house.root / "state/shop/models" / session / name).read_text())


@pytest.mark.parametrize("fraction", [0.25, 0.0])
def test_the_same_integers_release_and_weights(
    house: LargerHouse, running: LocalCluster, monkeypatch: pytest.MonkeyPatch, fraction: float
) -> None:
    without_noise(monkeypatch)
    found = asked(monkeypatch)
    sessions = []
    for workers in (None, running):
        house.on(workers)
        sessions.append(house.run(f"split.test_fraction={fraction}", job="trusted.toml").id)
    (one, alone), (other, there) = found
    assert one.content_sha256 != b""
    assert one.request_id == other.request_id  # rows, ids and their order: the hash of all that is sent
    assert alone.sums.tolist() == there.sums.tolist()
    models = [written(house, session, "model.json") for session in sessions]
    assert models[0]["standardiser"] == models[1]["standardiser"]
    for name, weight in models[0]["weights"].items():
        assert models[1]["weights"][name] == pytest.approx(weight, rel=1e-9, abs=1e-9)
    reports = [written(house, session, "report.json") for session in sessions]
    assert reports[0]["rows"] == reports[1]["rows"]
    assert reports[0]["fit"]["l2"] == reports[1]["fit"]["l2"]
    if fraction:
        assert reports[1]["fit"]["mean_prediction"] == pytest.approx(reports[0]["fit"]["mean_prediction"], rel=1e-9)


@pytest.mark.parametrize("solver", ["lbfgs", "hybrid-minibatch"])
def test_every_solver_takes_rows_that_are_elsewhere(
    house: LargerHouse, running: LocalCluster, monkeypatch: pytest.MonkeyPatch, solver: str
) -> None:
    without_noise(monkeypatch)
    weights = []
    for workers in (None, running):
        house.on(workers)
        session = house.run(f"walr.solver={solver}", "walr.max_iterations=4", job="trusted.toml").id
        weights.append(list(written(house, session, "model.json")["weights"].values()))
    assert np.abs(np.subtract(*weights)).max() < 1e-6


def test_a_worker_that_is_lost_takes_nothing_with_it(
    house: LargerHouse, running: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is killed between the rows and the fit, with the rows that it held."""
    without_noise(monkeypatch)
    house.on(None)
    alone = written(house, house.run(job="trusted.toml").id, "model.json")["weights"]
    house.on(running)
    chosen = IntegerParts.choose
    killed: list[int] = []

    def after_a_death(self: IntegerParts, *args: Any) -> PartitionedRows:
        victim = next(iter(running.workers.values())).pid
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)
        return chosen(self, *args)

    monkeypatch.setattr(IntegerParts, "choose", after_a_death)
    found = written(house, house.run(job="trusted.toml").id, "model.json")["weights"]
    assert killed
    assert found == pytest.approx(alone, rel=1e-9, abs=1e-9)
    wait_until(lambda: not {*killed} & {*process_ids(running)})
    wait_for_both(running)  # the next test has two workers, as this one had


# --- the parts, in this process -----------------------------------------------------------------------------


def test_parts_are_whole_batches_and_all_of_them(house: LargerHouse) -> None:
    house.on(None)
    house.run(job="trusted.toml")
    job = load_job(house.root / "trusted.toml").parameters
    source = snapshot(house)
    for at_most in (1, 3, 50):
        parts = partitions.parts_of(source, job, job.trial_randomness, at_most)
        assert len(parts) == min(at_most, -(-ROWS // BATCH_ROWS))
        ids = [i for part in parts for batch, _ in part.batches() for i in batch.ids.to_pylist()]
        assert ids == [f"row {i}" for i in range(ROWS)]


def test_rows_are_cut_and_taken_where_they_are(house: LargerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds if a worker has room for only one part."""
    monkeypatch.setattr(partitions, "MOST_HELD_BYTES", 1)
    house.on(None)
    house.run(job="trusted.toml")
    job = load_job(house.root / "trusted.toml").parameters
    source, nothing = snapshot(house), lambda *_: None
    alone = prepare_rows(source, job, job.trial_randomness, nothing)
    there = prepare_rows(source, job, job.trial_randomness, nothing, THIS_PROCESS)
    parts, values = there.train.weights, alone.train.weights
    assert isinstance(parts, IntegerParts)
    assert tuple(there.train.ids) == tuple(alone.train.ids)
    assert (parts.shape, parts.dtype, there.rows_clipped) == (values.shape, values.dtype, alone.rows_clipped)
    for cut in (slice(0, 7), slice(30, 99), slice(0, None), slice(len(values), None)):
        assert parts[cut].tolist() == values[cut].tolist()
    kept = np.arange(len(values)) % 3 > 0
    rows, columns = parts.choose(kept, [0, 2]), values[kept][:, [0, 2]] * 2.0**-alone.grid.frac_bits
    assert np.array_equal(np.concatenate(list(rows.blocks())), columns)
    places = np.random.default_rng(0).permutation(len(columns))[:40]
    assert np.array_equal(rows.take(places), columns[places])
    assert np.array_equal(rows.take(slice(None, None, 5)), columns[::5])
    assert len(partitions._HELD) == 1


def test_recipes_are_fitted_to_the_same_rows_wherever_these_are(house: LargerHouse) -> None:
    house.on(None)
    house.run(job="trusted.toml")
    job = load_job(house.root / "trusted.toml").parameters
    source, nothing = snapshot(house), lambda *_: None
    column = source.feature_names[0]
    recipes = (Bins("bin", (column,), 3), Spline("curve", (column,), 4))
    source = replace(source, record=replace(source.record, recipes=recipes))
    alone = prepare_rows(source, job, job.trial_randomness, nothing)
    there = prepare_rows(source, job, job.trial_randomness, nothing, THIS_PROCESS)
    assert {"bin=2", "bin=3", "curve=3"} < set(alone.standardiser.columns)
    assert there.standardiser.table == alone.standardiser.table
    assert there.train.weights[:].tolist() == alone.train.weights.tolist()


class HeldOutBatches:
    """A draw that holds out whole batches, so that parts have only such rows, or none."""

    def __init__(self, batches: frozenset[int]) -> None:
        self._batches = batches

    def choose(self, _purpose: str, ids: list[str], _fraction: float) -> Any:
        return np.array([int(i.removeprefix("row ")) // BATCH_ROWS in self._batches for i in ids])


@pytest.mark.parametrize("batches", [{0}, {1, 2}, {3}, {0, 1, 3}], ids=str)
@pytest.mark.parametrize("which", ["held out", "that do not count"])
def test_parts_without_a_row_to_train_on_change_nothing(house: LargerHouse, batches: set[int], which: str) -> None:
    """All of a part's rows are held out, or the server counts none of them."""
    house.on(None)
    house.run(job="trusted.toml")
    job = load_job(house.root / "trusted.toml").parameters
    source, nothing = snapshot(house), lambda *_: None
    draw: Any = HeldOutBatches(frozenset(batches) if which == "held out" else frozenset())
    alone = prepare_rows(source, job, draw, nothing)
    there = prepare_rows(source, job, draw, nothing, THIS_PROCESS)
    parts, values = there.train.weights, alone.train.weights
    assert isinstance(parts, IntegerParts)
    assert len(parts._parts) == ROWS // BATCH_ROWS
    assert tuple(there.train.ids) == tuple(alone.train.ids)
    assert there.test_ids.to_pylist() == alone.test_ids.to_pylist()
    assert (there.standardiser, there.rows_clipped) == (alone.standardiser, alone.rows_clipped)
    assert parts[:].tolist() == values.tolist()

    in_batch = np.array([int(i.removeprefix("row ")) // BATCH_ROWS in batches for i in alone.train.ids])
    kept = ~in_batch if which != "held out" else np.arange(len(values)) % 5 > 0
    rows, columns = parts.choose(kept, [0, 1, 2]), values[kept][:, [0, 1, 2]] * 2.0**-alone.grid.frac_bits
    assert rows.n_rows == kept.sum()
    assert np.array_equal(np.concatenate(list(rows.blocks())), columns)
    (total,) = rows.sum_rows(column_sums)
    assert np.array_equal(total, columns.sum(axis=0))
    places = np.random.default_rng(0).permutation(len(columns))[:40]
    assert np.array_equal(rows.take(places), columns[places])
    first: Any = FirstColumn()
    assert np.array_equal(there.probabilities_held_out(first), alone.probabilities_held_out(first), equal_nan=True)


class FirstColumn:
    """A model that predicts a row's first column."""

    def probabilities(self, features: Any) -> Any:
        return features[:, 0]


def test_no_row_to_train_on_in_any_part_is_one_error(house: LargerHouse) -> None:
    house.on(None)
    house.run(job="trusted.toml")
    job = load_job(house.root / "trusted.toml").parameters
    draw: Any = HeldOutBatches(frozenset(range(ROWS // BATCH_ROWS)))
    for workers in ((), (THIS_PROCESS,)):
        with pytest.raises(DataError, match="no row is left to train on"):
            prepare_rows(snapshot(house), job, draw, lambda *_: None, *workers)


def column_sums(rows: Any) -> Any:
    return (np.concatenate(list(rows.blocks())).sum(axis=0),)


def snapshot(house: Split) -> Any:
    with house.store("shop") as store:
        writer = snapshot_writer("active", UNLOCKED)
        return published(Snapshots(load_party(house.root / "shop.toml"), house.root, store, writer), "rows").source()
