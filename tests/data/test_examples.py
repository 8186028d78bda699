"""The example data are as the examples describe them."""

from __future__ import annotations

import contextlib
import io
import runpy
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.data.tables import read, source_of
from tests.measurement.indexes import built

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, EXAMPLES / script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def run_here(script: str, *arguments: object) -> tuple[int, str]:
    """Run a script in this process; return its exit code and its standard error."""
    errors = io.StringIO()
    with mock.patch.object(sys, "argv", [script, *map(str, arguments)]):
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            try:
                runpy.run_path(str(EXAMPLES / script), run_name="__main__")
            except SystemExit as ended:
                return int(ended.code or 0), errors.getvalue()
    return 0, errors.getvalue()


def ids_of(directory: Path, url: str) -> list[str]:
    return [name for batch in read(directory, url) for name in batch.ids.to_pylist()]


def test_walr_data(tmp_path):
    pytest.importorskip("statsmodels")
    done = run("walr/prepare.py", "--out", tmp_path)
    assert done.returncode == 0
    assert "20,190 rows, 9 features" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["features.parquet", "sample.csv", "visits.csv"]
    features = source_of(tmp_path, "parquet:features.parquet", features="rest")
    assert len(features.feature_names) == 9
    assert sum(map(len, features.batches())) == 20_190
    insurer, server = ids_of(tmp_path, "features.parquet"), ids_of(tmp_path, "csv:visits.csv")
    assert insurer != server
    assert sorted(insurer) == sorted(server) == [f"py{i:05}" for i in range(20_190)]


def test_walr_data_rows_belong_together(tmp_path):
    """The join of both files is the original table: sums of features over the positives agree."""
    pytest.importorskip("statsmodels")
    from statsmodels.datasets import randhie

    assert run_here("walr/prepare.py", "--out", tmp_path) == (0, "")
    data = randhie.load_pandas().data
    features = source_of(tmp_path, "features.parquet", features="rest")
    labels = source_of(tmp_path, "visits.csv", label="saw_doctor")
    with built(labels, tmp_path / "index") as index, index.new_request(None, "refuse") as request:
        sums = sum(batch.features.T @ request.join(batch.ids).labels for batch in features.batches())
    expected = data.loc[data["mdvis"] > 0, list(features.feature_names)].sum()
    assert np.allclose(sums, expected, rtol=1e-12)


def test_walr_without_statsmodels(tmp_path):
    blocked = (
        f"import sys, runpy; sys.modules['statsmodels'] = None; sys.argv = ['prepare.py', '--out', {str(tmp_path)!r}];"
    )
    blocked += f"runpy.run_path({str(EXAMPLES / 'walr/prepare.py')!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("pip install 'statsmodels>=0.14.4'")
    assert list(tmp_path.iterdir()) == []


def test_advertising_data(tmp_path):
    arguments = ("--people", 40_000, "--rows-per-person", 2.5, "--features", 10, "--positive-rate", 0.03, "--seed", 5)
    assert run_here("advertising/generate.py", *arguments, "--out", tmp_path) == (0, "")
    n_rows = pq.read_metadata(tmp_path / "features.parquet").num_rows
    # Poisson: 5 standard deviations are sqrt(40000 * 1.5) * 5 = 1225.
    assert abs(n_rows - 100_000) < 1225
    table = source_of(tmp_path, "conversions.parquet", person="person", label="label")
    with built(table, tmp_path / "index") as index:
        assert (index.n_rows, index.n_persons) == (n_rows, 40_000)
        features = source_of(tmp_path, "features.parquet", features="rest")
        with index.new_request(None, "refuse") as request:
            labels = np.concatenate([request.join(batch.ids).labels for batch in features.batches()])
    # The intercept's sample and these rows, both with a spread below 2 sqrt(rate / rows): 5 standard deviations.
    assert abs(labels.mean() - 0.03) < 5 * 2 * (0.03 / 100_000) ** 0.5 * 2**0.5
    X = np.concatenate([batch.features for batch in features.batches()])
    correlation = np.corrcoef(X.T)
    assert np.abs(correlation[:5, :5] - np.eye(5)).max() < 0.03
    assert np.allclose(correlation[5:8, 5:8], 0.7 + 0.3 * np.eye(3), atol=0.03)
    assert set(np.unique(X[:, 8:])) == {0, 1}
    assert np.abs(np.corrcoef(X.T, labels)[-1, :-1]).max() > 0.03, "the labels follow the features"
    assert ids_of(tmp_path, "features.parquet") != ids_of(tmp_path, "conversions.parquet")


def test_advertising_data_are_reproducible_and_options_checked(tmp_path):
    few = ("--people", 300, "--features", 3, "--out")
    assert run("advertising/generate.py", *few, tmp_path / "a").returncode == 0  # another process hashes otherwise
    assert run_here("advertising/generate.py", *few, tmp_path / "b") == (0, "")
    for file in ("features.parquet", "conversions.parquet"):
        assert pq.read_table(tmp_path / "a" / file).equals(pq.read_table(tmp_path / "b" / file))
    for wrong in (("--people", 0), ("--positive-rate", 1), ("--rows-per-person", 0.5)):
        code, said = run_here("advertising/generate.py", *wrong, "--out", tmp_path / "c")
        assert code == 2
        assert "must" in said
    assert not (tmp_path / "c").exists()
