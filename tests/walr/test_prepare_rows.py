"""The active party of a walr job prepares its rows: nothing depends on the held-out ones."""

from __future__ import annotations

import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from blindfit.algorithms.statistics.linear.scaling import PIECE_ROWS
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.data.source import Source
from blindfit.parties.walr.reading import prepare_rows
from blindfit.parties.walr.rows import ArrowIds, PreparedRows, read_columns
from blindfit.parties.walr.settings import WalrJob

N_ROWS = 300
JOB = WalrJob.model_validate({"seed": 3, "privacy": {"epsilon": 1.0}})


def rows_by_id() -> dict[str, np.ndarray]:
    rows = np.random.default_rng(7).normal(size=(N_ROWS, 3)) * [12, 3, 20] + [50, 10, 80]
    return {f"p{i}": row for i, row in enumerate(rows.round(4))}


def source_of(directory: Path, rows: dict[str, np.ndarray]) -> Source:
    lines = [",".join([name, *map(str, row.tolist())]) for name, row in rows.items()]
    (directory / "rows.csv").write_text("\n".join(["id,age,dose,pulse", *lines]) + "\n")
    settings = PartyDatasetSettings(url="csv:rows.csv", id="id", features="rest", batch_rows=64)
    return open_source(settings, directory, "rows")


def prepared(directory: Path, rows: dict[str, np.ndarray]) -> PreparedRows:
    return prepare_rows(source_of(directory, rows), JOB, JOB.trial_randomness, lambda *_: None)


def test_the_scale_is_that_of_the_training_rows(tmp_path: Path) -> None:
    rows = rows_by_id()
    made = prepared(tmp_path, rows)
    trained = np.array([rows[name] for name in made.train.ids])
    assert 0 < len(made.test_ids) == N_ROWS - len(trained)
    assert made.standardiser.mean == pytest.approx(trained.mean(axis=0))
    assert made.standardiser.std == pytest.approx(trained.std(axis=0))


def test_rows_that_are_held_out_have_no_say_in_it(tmp_path: Path) -> None:
    rows = rows_by_id()
    before = prepared(tmp_path, rows)
    held_out = before.test_ids.to_pylist()
    after = prepared(tmp_path, rows | {name: rows[name] + 1e6 for name in held_out})
    assert after.test_ids.to_pylist() == held_out
    assert (after.standardiser, after.grid) == (before.standardiser, before.grid)
    assert (after.rows_clipped, *after.train.ids) == (before.rows_clipped, *before.train.ids)
    np.testing.assert_array_equal(after.train.weights, before.train.weights)
    trained = before.train.ids[0]
    assert prepared(tmp_path, rows | {trained: rows[trained] + 1e6}).standardiser != before.standardiser


def test_ids_are_those_that_were_read() -> None:
    texts = [f"id {i}" for i in range(2 * PIECE_ROWS + 5)]
    ids = ArrowIds(pa.array(texts))
    assert (list(ids), len(ids), ids[7], ids[-1]) == (texts, len(texts), texts[7], texts[-1])
    for part in (slice(3, 9), slice(PIECE_ROWS - 1, None), slice(0, 0), slice(len(texts), 2 * len(texts))):
        assert ids[part] == tuple(texts[part])


def test_raw_rows_are_let_go_as_they_are_rounded(tmp_path: Path) -> None:
    source = source_of(tmp_path, rows_by_id())
    read = read_columns(source, JOB, JOB.trial_randomness, lambda *_: None, intercept=True)
    raw = [weakref.ref(block) for block in read.train.features]
    assert len(raw) == -(-N_ROWS // 64)
    read.round(JOB.grid(read.norm_bound(JOB.walr)))
    assert not any(block() is not None for block in raw)
