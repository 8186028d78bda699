"""What the active party of a walr job makes of its rows: nothing of it depends on those that are held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blindfit.parties.data.source import open_source
from blindfit.parties.settings import PartyDatasetSettings
from blindfit.parties.walr.reading import prepare_rows
from blindfit.parties.walr.rows import PreparedRows
from blindfit.parties.walr.settings import WalrJob

N_ROWS = 300
JOB = WalrJob.model_validate({"seed": 3, "privacy": {"epsilon": 1.0}})


def rows_by_id() -> dict[str, np.ndarray]:
    rows = np.random.default_rng(7).normal(size=(N_ROWS, 3)) * [12, 3, 20] + [50, 10, 80]
    return {f"p{i}": row for i, row in enumerate(rows.round(4))}


def prepared(directory: Path, rows: dict[str, np.ndarray]) -> PreparedRows:
    lines = [",".join([name, *map(str, row.tolist())]) for name, row in rows.items()]
    (directory / "rows.csv").write_text("\n".join(["id,age,dose,pulse", *lines]) + "\n")
    settings = PartyDatasetSettings(url="csv:rows.csv", id="id", features="rest", batch_rows=64)
    return prepare_rows(open_source(settings, directory, "rows"), JOB, JOB.trial_randomness, lambda *_: None)


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
    assert (after.rows_clipped, after.train.ids) == (before.rows_clipped, before.train.ids)
    np.testing.assert_array_equal(after.train.weights, before.train.weights)
    trained = before.train.ids[0]
    assert prepared(tmp_path, rows | {trained: rows[trained] + 1e6}).standardiser != before.standardiser
