"""A label index that is built by a Dask cluster of two worker processes: every byte is that of one process."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import LocalCluster
from rich.console import Console

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.workers import THIS_PROCESS, OpenWorkers, Workers, in_this_process
from blindfit.coordinator.operator import snapshots as command
from blindfit.coordinator.running import snapshots as changed
from blindfit.parties.data.id_hash import HashKeys
from blindfit.parties.data.source import Source
from blindfit.parties.measurement import label_index_build
from blindfit.parties.measurement.label_index import READ_ALONE, open_index, write_index
from blindfit.parties.measurement.label_index_build import IndexKeys, IndexTask, read_part, sort_range
from blindfit.parties.snapshots.rows_file import Written
from blindfit.parties.systems import load_party
from blindfit.parties.work.compute import JoblibWorkers, cluster_of, open_workers
from tests.data.tables import source_of, write
from tests.hints.following import refused
from tests.measurement.mortal import MortalWorkers, mortal
from tests.walr_split.released import released, without_noise
from tests.work.clusters import cluster, dask, wait_for_both
from tests.world import World
from tests.world.split_labels import Split

ROWS, BATCH_ROWS, HELD = 240, 16, 30
KEYS = HashKeys.from_bytes(hashlib.shake_256(b"of these tests").digest(8 * 4 * 66))
NOWHERE = "tcp://127.0.0.1:1"


@pytest.fixture(scope="module")
def running() -> Iterator[LocalCluster]:
    with cluster() as two:
        yield two


@pytest.fixture
def theirs(running: LocalCluster) -> OpenWorkers:
    return lambda: open_workers(dask(running.scheduler_address))


@pytest.fixture(autouse=True)
def _small_tasks_and_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_index_build, "HELD_RECORDS", HELD)
    monkeypatch.setattr(label_index_build, "TASKS_OF_A_WORKER", 2)
    monkeypatch.setattr(HashKeys, "random", lambda: KEYS)


def table(**changes: Any) -> dict[str, list[Any]]:
    columns = {
        "id": [f"row {i}" for i in range(ROWS)],
        "y": [i * 7 % 10 // 6 for i in range(ROWS)],
        "who": [f"person {i * i % 211}" for i in range(ROWS)],
        "share": [(i * 2**55 + 1) % (2**61 - 1) for i in range(ROWS)],
        "of": ["the split"] * ROWS,
    }
    for name, rows in changes.items():
        for row, value in rows.items():
            columns[name][row - 1] = value
    return columns


KINDS: dict[str, dict[str, Any]] = {
    "binary": {"label": "y"},
    "persons": {"label": "y", "person": "who"},
    "shares": {"label": "share", "label_kind": "share", "split": "of", "person": "who"},
}


def read(directory: Path, kind: str, file: str = "parquet", **changes: Any) -> Source:
    return source_of(directory, write(directory, file, table(**changes)), batch_rows=BATCH_ROWS, **KINDS[kind])


def build(source: Source, directory: Path, workers: OpenWorkers) -> tuple[Written, dict[str, bytes]]:
    """Build the index, and return its description and all its files."""
    index = directory / secrets.token_hex(4)
    index.mkdir(mode=0o700)
    written = write_index(source, index, open_workers=workers)
    open_index(index).close()
    assert {path.stat().st_mode & 0o777 for path in index.iterdir()} == {0o600}
    return written, {path.name: path.read_bytes() for path in index.iterdir()}


def alone(source: Source, directory: Path) -> tuple[Written, dict[str, bytes]]:
    """Build the index in one process, which holds all records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_index_build, "HELD_RECORDS", ROWS + 1)
        return build(source, directory, in_this_process)


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_is_that_of_one_process(tmp_path: Path, theirs: OpenWorkers, kind: str) -> None:
    source = read(tmp_path, kind)
    assert build(source, tmp_path, theirs) == alone(source, tmp_path)


def test_what_cannot_be_read_in_parts_is_read_here_and_sorted_there(tmp_path: Path, theirs: OpenWorkers) -> None:
    source = read(tmp_path, "persons", "csv")
    (made, files), (one, same) = build(source, tmp_path, theirs), alone(source, tmp_path)
    assert files == same
    assert (made.remarks, one.remarks) == ((READ_ALONE,), ())
    assert (made.rows, made.content_sha256) == (one.rows, one.content_sha256)


def test_many_workers_and_few_ranges_with_rows_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ids share their first 64 bits, so all are in one range, for any order in which their parts were read."""
    ids = KEYS.keys.copy()
    ids[:2] = 0
    monkeypatch.setattr(IndexKeys, "random", lambda: IndexKeys(HashKeys(ids), KEYS))
    source = read(tmp_path, "persons")
    for count in (1, 9):
        assert build(source, tmp_path, lambda count=count: backwards(count)) == alone(source, tmp_path)


@contextmanager
def backwards(count: int) -> Iterator[Workers]:
    """Run tasks in this process, as if in others: the last one first, and the first of each twice."""

    class Backwards:
        def __init__(self) -> None:
            self.count = count

        def map(self, function: Any, tasks: Any) -> list[Any]:
            THIS_PROCESS.map(function, tasks[:1])
            return THIS_PROCESS.map(function, tasks[::-1])[::-1]

    yield Backwards()


AGAIN = "column id: the id is that of row {} again"
WRONG = {
    "twice in a part": ({"id": {12: "row 9"}}, "row 12, " + AGAIN.format(10)),
    "twice in two parts, the first of many": (
        {"id": {240: "row 1", 190: "row 1", 120: "row 5", 239: "row 3", 121: "row 190"}},
        "row 120, " + AGAIN.format(6),
    ),
    "labels and ids": (
        {"y": {133: 2, 239: 3, 140: 4}, "id": {20: "row 1", 238: ""}},
        "row 133, column y: the label is neither 0 nor 1",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_the_same_line(tmp_path: Path, theirs: OpenWorkers, wrong: str) -> None:
    changes, line = WRONG[wrong]
    source = read(tmp_path, "persons", **changes)
    for made in (alone, partial(build, workers=in_this_process), partial(build, workers=theirs)):
        with pytest.raises(DataError) as caught:
            made(source, tmp_path)
        assert caught.value.message == f"visits: {(tmp_path / 'rows.parquet').resolve()}, {line}"


def test_a_row_of_another_split_is_the_same_line(tmp_path: Path, theirs: OpenWorkers) -> None:
    source = read(tmp_path, "shares", of={133: "another", 239: "a third"}, share={2: 2**61 - 1})
    for workers in (in_this_process, theirs):
        with pytest.raises(
            DataError, match=r"row 133, column of: the row is of another split than the first row( \(|$)"
        ):
            build(source, tmp_path, workers)


def test_workers_that_are_lost_change_nothing(tmp_path: Path, running: LocalCluster, theirs: OpenWorkers) -> None:
    """One dies with half a part read, another after it wrote all of a range and before it could report so."""
    source, asked = read(tmp_path, "persons"), dict[str, int]()

    @contextmanager
    def dying() -> Iterator[Workers]:
        with theirs() as workers:
            yield MortalWorkers(workers, sort_range, tmp_path / "died later", asked)

    made = build(mortal(source, tmp_path / "died early"), tmp_path, dying)
    assert (tmp_path / "died early").exists()
    assert (tmp_path / "died later").exists()
    assert asked == {"read_part": 4, "sort_range": 4, "number_range": 4, "place_range": 4}
    assert made == alone(source, tmp_path)
    wait_for_both(running)


def test_a_small_table_needs_no_cluster(tmp_path: Path) -> None:
    def nobody() -> Any:
        return open_workers(dask(NOWHERE))

    small = {name: values[: HELD - 1] for name, values in table().items()}
    for file in ("parquet", "csv"):
        source = source_of(tmp_path, write(tmp_path, file, small), label="y")
        assert build(source, tmp_path, nobody) == build(source, tmp_path, in_this_process)


def test_a_worker_that_does_not_see_the_folder_or_another_table_says_so(tmp_path: Path) -> None:
    source = read(tmp_path, "binary")
    task = IndexTask(3, tmp_path / "gone", "u1", False, HELD, False)
    with refused("put data_dir on a disk that all workers of the cluster share, at the same path") as told:
        read_part(task, source.part(0, 16), IndexKeys.random())
    assert "does not see this folder" in told.text
    task.directory.mkdir()
    read_part(task, source.part(0, 16), IndexKeys.random())
    os.utime(tmp_path / "rows.parquet", ns=(1, 1))
    with pytest.raises(DataError, match=r"rows\.parquet: on .* this is not the file that was opened"):
        list(source.part(0, 16).batches())
    (tmp_path / "rows.parquet").unlink()
    with pytest.raises(DataError, match=r"this is not the file that was opened"):
        list(source.part(0, 16).batches())


def test_a_piece_that_is_not_seen_whole_makes_no_index(tmp_path: Path) -> None:
    for name in ("high-000", "high-001"):
        (tmp_path / name).write_bytes(bytes(8))
    with refused("put data_dir on a disk on which each worker sees the files of all others") as told:
        label_index_build._put_together([tmp_path / "high-000", tmp_path / "high-001"], tmp_path / "high", 24)
    assert "high has 16 bytes, not the 24 that were written" in told.text
    (tmp_path / "high-000").write_bytes(bytes(24))
    label_index_build._put_together([tmp_path / "high-000"], tmp_path / "high", 24)


def test_no_key_is_in_what_tasks_are_called_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    through = THIS_PROCESS.map

    def noted(function: Any, tasks: Any) -> list[Any]:
        results = through(function, tasks)
        seen.append(f"{function} {tasks} {results}")
        return results

    with backwards(3) as workers:
        monkeypatch.setattr(workers, "map", noted)
        build(read(tmp_path, "persons"), tmp_path, lambda: in_this_process_as(workers))
    words = [str(number) for number in KEYS.keys[:, :3].ravel()]
    assert len(seen) == 4
    assert not re.search("|".join([*words, "array", "HashKeys\\(", KEYS.to_bytes()[:8].hex()]), "".join(seen))


@contextmanager
def in_this_process_as(workers: Workers) -> Iterator[Workers]:
    yield workers


# --- a party's file ---------------------------------------------------------------------------------------


def compute(running: LocalCluster) -> str:
    return f'[compute]\nbackend = "dask"\naddress = "{running.scheduler_address}"\ntask_timeout_s = 60\n'


def test_blindfit_publish_has_the_cluster_build_it_and_leaves_nothing_of_what_fails(
    tmp_path: Path, running: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {"url": "rows.parquet", "label": "y", "person": "who"}
    text = World(tmp_path).active("shop").server("whole", about=about).path("whole.toml").read_text()
    (tmp_path / "whole.toml").write_text(text + compute(running))
    asked = maps(monkeypatch)
    settings, said = load_party(tmp_path / "whole.toml"), Console(record=True, width=200)
    snapshots = tmp_path / "state" / "whole" / "snapshots"
    for changes in ({"y": {240: 7}}, {"id": {240: "row 1"}}):
        write(tmp_path, "parquet", table(**changes))
        with pytest.raises(DataError, match="row 240"):
            command.publish(settings, tmp_path, "rows", other_people=False, remove_older=False, console=said).show(said)
        assert list(snapshots.iterdir()) == []
    (tmp_path / "whole.toml").write_text(
        text.replace("rows.parquet", write(tmp_path, "csv", table())) + compute(running)
    )
    settings = load_party(tmp_path / "whole.toml")
    command.publish(settings, tmp_path, "rows", other_people=False, remove_older=False, console=said).show(said)
    assert asked == ["read_part", "read_part", "sort_range", "sort_range", "number_range", "place_range"]
    assert READ_ALONE in said.export_text(clear=False)
    assert "rows: snapshot 1, 240 rows" in said.export_text()
    assert {path.stat().st_mode & 0o777 for path in snapshots.iterdir()} == {0o700}


def test_where_there_is_no_cluster_a_party_is_one_process(tmp_path: Path) -> None:
    Split(tmp_path)
    assert cluster_of(load_party(tmp_path / "whole.toml"), tmp_path) is in_this_process


def maps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the functions that workers ran."""
    asked: list[str] = []
    through = JoblibWorkers.map

    def noted(self: JoblibWorkers, function: Any, tasks: Any) -> list[Any]:
        asked.append(function.__name__)
        return through(self, function, tasks)

    monkeypatch.setattr(JoblibWorkers, "map", noted)
    return asked


def test_a_job_gets_the_same_release(tmp_path: Path, running: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    house, asked, found = Split(tmp_path, persons=True), maps(monkeypatch), released(monkeypatch)
    table = pa.table({"id": list(house.labels), "label": list(house.labels.values()), "person": np.arange(120) // 4})
    pq.write_table(table, tmp_path / "labels.parquet")
    path = tmp_path / "whole.toml"
    path.write_text(path.read_text().replace("csv:labels.csv", "labels.parquet"))
    house.run(job="trusted.toml")
    assert not asked
    path.write_text(path.read_text() + compute(running))
    with house.store("whole") as store:
        changed.snapshots_of(load_party(path), tmp_path, store).publish("rows")
    house.run(job="trusted.toml")
    assert asked == ["read_part", "sort_range", "number_range", "place_range"]
    alone, there = found
    assert alone.sums.tolist() == there.sums.tolist()
    assert alone.rows_kept == there.rows_kept
