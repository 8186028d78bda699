"""The batches are the same for every source of the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.errors import DataError
from blindfit.parties.data.duplicates import DuplicateSearch
from tests.data.tables import read, source_of, write, write_text

KINDS = ["csv", "parquet", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]
N = 23
TABLE = {
    "id": [f"{7 * i % N:05}" for i in range(N)],
    "who": [f"pé{i // 2}" for i in range(N)],
    "age": [20 + i for i in range(N)],
    "wage": [0.1 * i - 1 for i in range(N)],
    "town": [f"t{i}" for i in range(N)],
    "y": [i % 3 // 2 for i in range(N)],
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def server(request, kind):
    return request.getfixturevalue("postgres") if kind == "postgresql" else None


def searched(source):
    search = DuplicateSearch()
    for batch in source.batches(persons=False, labels=False, features=False):
        search.add(batch)
    return search


def test_every_kind_gives_the_same_batches(tmp_path, kind, server):
    url = write(tmp_path, kind, TABLE, server)
    source = source_of(tmp_path, url, person="who", label="y", features=["age", "wage"], batch_rows=10)
    assert source.feature_names == ("age", "wage")
    batches = list(source.batches())
    assert [len(batch) for batch in batches] == [10, 10, 3]
    assert [batch.first_row for batch in batches] == [1, 11, 21]
    assert np.concatenate([batch.rows for batch in batches]).tolist() == list(range(1, N + 1))
    assert [text for batch in batches for text in batch.ids.to_pylist()] == TABLE["id"]
    assert [text for batch in batches for text in batch.persons.to_pylist()] == TABLE["who"]
    labels = np.concatenate([batch.labels for batch in batches])
    assert labels.dtype == np.uint8
    assert labels.tolist() == TABLE["y"]
    features = np.concatenate([batch.features for batch in batches])
    assert features.tolist() == [list(row) for row in zip(TABLE["age"], TABLE["wage"], strict=True)]
    assert all(batch.features.flags.c_contiguous and batch.features.dtype == np.float64 for batch in batches)
    assert all(batch.ids.type == pa.string() for batch in batches)


def test_rest_is_every_other_column_and_one_without_numbers_is_an_error(tmp_path, kind, server):
    url = write(tmp_path, kind, {name: TABLE[name] for name in ("id", "age", "wage")}, server)
    assert source_of(tmp_path, url, features="rest").feature_names == ("age", "wage")
    (tmp_path / "all").mkdir()
    url = write(tmp_path / "all", kind, TABLE, server)
    with pytest.raises(DataError, match="column who"):
        read(tmp_path / "all", url, label="y", features="rest")


def test_named_features_keep_their_order_and_other_roles_are_absent(tmp_path, kind, server):
    url = write(tmp_path, kind, TABLE, server)
    (batch,) = read(tmp_path, url, features=["wage", "age"])
    assert batch.features[1].tolist() == [TABLE["wage"][1], 21]
    assert batch.persons is None
    assert batch.labels is None


def test_whole_numbers_are_ids_in_decimal(tmp_path, kind, server):
    url = write(tmp_path, kind, {"id": [7, 10**15, -3]}, server)
    (batch,) = read(tmp_path, url)
    assert batch.ids.to_pylist() == ["7", "1000000000000000", "-3"]


def test_missing_values_are_refused_dropped_or_made_the_mean(tmp_path, kind, server):
    url = write(tmp_path, kind, {"id": ["a", "b", "c", "d"], "x": [1.0, None, 4.0, None], "z": [1, 2, 3, None]}, server)
    with pytest.raises(
        DataError, match=r"row 2( \(line 3\))?, column x: the value is missing \(empty, null or NaN\)( \(|$)"
    ):
        read(tmp_path, url, features="rest")
    (dropped,) = read(tmp_path, url, features="rest", missing="drop")
    assert dropped.rows.tolist() == [1, 3]
    assert dropped.ids.to_pylist() == ["a", "c"]
    assert dropped.features.tolist() == [[1, 1], [4, 3]]
    (mean,) = read(tmp_path, url, features="rest", missing="mean")
    assert mean.features.tolist() == [[1, 1], [2.5, 2], [4, 3], [2.5, 2]]


def test_mean_is_over_the_whole_table_not_the_batch(tmp_path):
    url = write(tmp_path, "parquet", {"id": list("abcd"), "x": [1.0, None, 4.0, 7.0]})
    batches = read(tmp_path, url, features=["x"], missing="mean", batch_rows=2)
    assert np.concatenate([batch.features for batch in batches])[:, 0].tolist() == [1, 4, 4, 7]


def test_a_batch_may_be_dropped_whole_but_not_the_table(tmp_path):
    url = write(tmp_path, "parquet", {"id": list("abcd"), "x": [None, None, 4.0, 7.0]})
    assert [len(batch) for batch in read(tmp_path, url, features=["x"], missing="drop", batch_rows=2)] == [0, 2]
    url = write(tmp_path, "parquet", {"id": ["a"], "x": pa.array([None], pa.float64())})
    with pytest.raises(DataError, match="every row has a missing value, so none is left"):
        read(tmp_path, url, features=["x"], missing="drop")
    with pytest.raises(DataError, match="column x: no row has a value"):
        read(tmp_path, url, features=["x"], missing="mean")


def test_number_labels(tmp_path, kind, server):
    url = write(tmp_path, kind, {"id": ["a", "b"], "y": [0.5, -3.0]}, server)
    (batch,) = read(tmp_path, url, label="y", label_kind="number")
    assert batch.labels.tolist() == [0.5, -3]


def test_other_arrow_types_are_read(tmp_path):
    table = pa.table(
        {
            "id": pa.array(["a", "b"]).dictionary_encode(),
            "f": pa.array([1.5, 2.5], pa.float32()),
            "b": [True, False],
            "d": pa.array(["1", "2"]).dictionary_encode(),
            "big": pa.array([2**62 + 1, 0], pa.uint64()),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    (batch,) = read(tmp_path, "rows.parquet", features=["f", "b", "d", "big"])
    assert batch.ids.to_pylist() == ["a", "b"]
    assert batch.features.tolist() == [[1.5, 1, 1, 2.0**62], [2.5, 0, 2, 0]]


def test_csv_with_everything_that_is_allowed(tmp_path):
    text = '\ufeffid,"note, free",x\r\n\r\n00123,"two\r\nlines", 1.5 \r\n0124,"a ""quote""",NA\r\n'
    write_text(tmp_path, text)
    (batch,) = read(tmp_path, "rows.csv", features=["x"], missing="drop")
    assert batch.ids.to_pylist() == ["00123"]
    assert batch.features.tolist() == [[1.5]]


def test_first_duplicate_id_names_both_rows(tmp_path, kind, server):
    ids = [f"a{i}" for i in range(50)]
    ids[40], ids[31], ids[44] = ids[30], ids[2], ids[2]
    source = source_of(tmp_path, write(tmp_path, kind, {"id": ids}, server), batch_rows=16)
    assert searched(source).first() == (3, 32)
    lines = (" (line 33)", " (line 4)") if kind == "csv" else ("", "")
    with pytest.raises(DataError) as caught:
        searched(source).refuse_duplicates(source)
    assert caught.value.message.endswith(f"row 32{lines[0]}, column id: the id is that of row 3{lines[1]} again")


def test_no_duplicate_ids(tmp_path):
    source = source_of(tmp_path, write(tmp_path, "csv", TABLE))
    assert searched(source).first() is None
    searched(source).refuse_duplicates(source)
