from __future__ import annotations

import errno
import os
import secrets
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import ConfigError, DataError, DuplicateId, UnknownId
from blindfit.parties.data.id_hash import HashKeys
from blindfit.parties.measurement import label_index, label_index_build
from blindfit.parties.measurement.label_index import LabelIndex, open_index
from blindfit.parties.measurement.label_index_build import IndexKeys
from blindfit.parties.measurement.mapped import MappedArray
from tests.data.tables import source_of, write
from tests.hints.following import refused
from tests.measurement.indexes import built

LAW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def build(directory: Path, ids, labels, persons=None) -> LabelIndex:
    columns = {"id": ids, "y": labels} | ({} if persons is None else {"who": persons})
    return built(source(directory, columns), directory / "state" / secrets.token_hex(4))


def source(directory: Path, columns):
    url = write(directory, "parquet", columns)
    return source_of(directory, url, label="y", person="who" if "who" in columns else None, batch_rows=8)


@pytest.fixture(params=["random", "colliding"])
def _keys(request, monkeypatch):
    """Under `colliding` keys all ids share their first 64 bits, which by chance would happen once in a lifetime."""
    if request.param == "colliding":
        ids = HashKeys.random().keys.copy()
        ids[:2] = 0
        monkeypatch.setattr(IndexKeys, "random", lambda: IndexKeys(HashKeys(ids), HashKeys.random()))


# --- the law: a join is a dictionary ----------------------------------------------------------------


@st.composite
def tables(draw):
    n = draw(st.integers(1, 60))
    ids = [f"id{i}" for i in draw(st.permutations(range(n)))]
    return (
        ids,
        draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)),
        draw(st.lists(st.sampled_from([f"p{i}" for i in range(8)]), min_size=n, max_size=n)),
    )


@pytest.mark.usefixtures("_keys")
@LAW
@given(table=tables(), data=st.data())
def test_join_is_a_dictionary(tmp_path, table, data):
    ids, labels, _ = table
    known = dict(zip(ids, labels, strict=True))
    asked = data.draw(st.lists(st.sampled_from([*ids, *(f"stranger{i}" for i in range(9))]), unique=True))
    cut = data.draw(st.integers(0, len(asked)))
    with build(tmp_path, ids, labels) as index, index.new_request(None, "zero") as request:
        for part in (asked[:cut], asked[cut:]):
            joined = request.join(pa.array(part, pa.string()))
            assert joined.labels.tolist() == [known.get(name, 0) for name in part]
            assert joined.kept.all()
        assert request.unknown == sum(name not in known for name in asked)
        request.check()


@pytest.mark.usefixtures("_keys")
@LAW
@given(table=tables(), cap=st.integers(1, 4), data=st.data())
def test_a_person_has_at_most_so_many_rows(tmp_path, table, cap, data):
    ids, labels, persons = table
    label, person = dict(zip(ids, labels, strict=True)), dict(zip(ids, persons, strict=True))
    asked = data.draw(st.permutations(ids))
    size = data.draw(st.integers(1, len(ids)))
    seen: Counter[str] = Counter()
    with build(tmp_path, ids, labels, persons) as index, index.new_request(cap, "refuse") as request:
        assert index.n_persons == len(set(persons))
        for start in range(0, len(asked), size):
            joined = request.join(asked[start : start + size])
            for name, kept, got in zip(asked[start : start + size], joined.kept, joined.labels, strict=True):
                assert kept == (seen[person[name]] < cap)
                assert got == (label[name] if kept else 0)
                seen[person[name]] += 1


@pytest.mark.usefixtures("_keys")
@LAW
@given(table=tables(), cap=st.sampled_from([None, 1, 2, 3]), data=st.data())
def test_rows_of_a_request_that_are_among_the_first_of_their_person(tmp_path, table, cap, data):
    """Rows are counted as they are marked in the index's order, in blocks of a few rows or in one."""
    ids, _, persons = table
    asked = data.draw(st.lists(st.sampled_from(ids), unique=True))
    url = write(tmp_path, "parquet", {"id": ids, "y": [float(i) for i in range(len(ids))], "who": persons})
    numbers = source_of(tmp_path, url, label="y", label_kind="number", person="who")
    with pytest.MonkeyPatch.context() as patched, built(numbers, tmp_path / secrets.token_hex(4)) as index:
        first = {ids[int(row)] for labels, kept in index.labels_in_order(cap) for row in labels[kept]}
        in_all = Counter(persons).values()
        assert len(first) == sum(n if cap is None else min(n, cap) for n in in_all)
        with index.new_request(None, "refuse") as request:
            request.join(asked)
            for block_rows in (8, 1 << 16):
                patched.setattr(label_index, "BLOCK_ROWS", block_rows)
                assert request.count_within(cap) == len(first & set(asked))


def test_small_parts_change_nothing(tmp_path, monkeypatch):
    """Parts are made where an index is larger than RESIDENT_BYTES; here each has a few rows."""
    rng = np.random.default_rng(2)
    ids, persons = [f"id{i}" for i in rng.permutation(600)], [f"p{i}" for i in rng.integers(0, 150, 600)]
    labels = rng.integers(0, 2, 600).tolist()
    results = []
    for resident, least in ((1 << 30, 128), (1, 1), (5000, 3)):
        monkeypatch.setattr(label_index, "RESIDENT_BYTES", resident)
        monkeypatch.setattr(label_index, "LEAST_PART", least)
        with build(tmp_path, ids, labels, persons) as index, index.new_request(2, "refuse") as request:
            parts = [request.join(sorted(ids)[i : i + 250]) for i in range(0, 600, 250)]
            results.append([np.concatenate([getattr(part, name) for part in parts]) for name in ("labels", "kept")])
    for other in results[1:]:
        assert np.array_equal(results[0], other)


def test_many_flushes_of_the_buckets_change_nothing(tmp_path, monkeypatch):
    """Under the same keys every file is that of a table which is held in memory."""
    keys = IndexKeys.random()
    monkeypatch.setattr(IndexKeys, "random", lambda: keys)
    ids = [f"id{i}" for i in range(300)]
    labels = [i % 2 for i in range(300)]
    files = []
    for held in (10, 299, 1000):  # records; of the second a last one is left over
        monkeypatch.setattr(label_index_build, "HELD_RECORDS", held)
        with build(tmp_path, ids, labels, [f"p{i // 3}" for i in range(300)]) as index:
            files.append({name: (index.directory / name).read_bytes() for name in os.listdir(index.directory)})
            assert (index.n_rows, index.n_persons) == (300, 100)
            with index.new_request(1, "refuse") as request:
                joined = request.join(ids)
        assert joined.kept.tolist() == [i % 3 == 0 for i in range(300)]
    assert files[0].keys() == {"header.json", "high", "low", "label", "person"}
    assert files[0] == files[1] == files[2]


# --- ids used twice, unknown ids --------------------------------------------------------------------


@pytest.mark.usefixtures("_keys")
@pytest.mark.parametrize("unknown", ["refuse", "zero"])
def test_an_id_twice_in_a_batch(tmp_path, unknown):
    with build(tmp_path, list("abcd"), [1, 1, 0, 0]) as index, index.new_request(None, unknown) as request:
        request.join(["d"])
        with pytest.raises(
            DuplicateId, match=r"^row 4 of the request has an id that the request has used before( \(|$)"
        ) as e:
            request.join(["a", "b", "a", "c", "b"])
    assert e.value.position == 4


def test_an_id_twice_in_a_request(tmp_path):
    with build(tmp_path, list("abcd"), [1, 1, 0, 0]) as index:
        with index.new_request(None, "refuse") as request:
            request.join(["a", "b"])
            request.join(["c", "b", "a"])
            assert request.join(["d"]).labels.tolist() == [0]
            with pytest.raises(DuplicateId) as caught:
                request.check()
        assert caught.value.position == 4
        with index.new_request(None, "refuse") as another:
            assert another.join(["a", "b"]).labels.tolist() == [1, 1]


def test_under_zero_a_second_use_looks_like_a_stranger(tmp_path):
    """An error would reveal that the table has the id, and yet no row may count twice."""
    with build(tmp_path, ["a"], [1]) as index, index.new_request(None, "zero") as request:
        assert request.join(["a", "s"]).labels.tolist() == [1, 0]
        again = request.join(["a", "s"])
        assert again.labels.tolist() == [0, 0]
        assert again.kept.tolist() == [True, True]


def test_two_equal_strangers_in_a_batch_are_refused_like_two_equal_known_ids(tmp_path):
    with build(tmp_path, ["a"], [1]) as index, index.new_request(None, "zero") as request, pytest.raises(DuplicateId):
        request.join(["s", "s"])


def test_unknown_ids_are_refused(tmp_path):
    with build(tmp_path, ["a", "b"], [1, 0]) as index, index.new_request(None, "refuse") as request:
        request.join(["a"])
        request.join(["b", "s", "t"])
        request.join(["u"])
        with refused('have its operator set unknown_rows = "zero" for the dataset') as told:
            request.check()
    assert told.text.startswith("row 3 of the request has an id that the table of labels does not have (3 in all)")
    assert "send only ids that the table has; or, if the table has no person column" in told.text
    with build(tmp_path, ["a", "b"], [1, 0]) as index:
        for unknown, asked in (("refuse", ["a", "b"]), ("zero", ["a", "s"])):
            with index.new_request(None, unknown) as request:
                request.join(asked)
                request.check()


@pytest.mark.usefixtures("_keys")
@LAW
@given(table=tables(), data=st.data())
def test_what_a_request_may_not_have_is_found_wherever_it_is(tmp_path, table, data):
    ids, labels, persons = table
    strangers = [f"stranger{i}" for i in range(3)]
    batches = data.draw(st.lists(st.lists(st.sampled_from([*ids, *strangers]), unique=True), max_size=4))
    asked = [name for batch in batches for name in batch]
    unknown = [row for row, name in enumerate(asked, 1) if name in strangers]
    again = [row for row, name in enumerate(asked, 1) if name in ids and name in asked[: row - 1]]
    with build(tmp_path, ids, labels, persons) as index, index.new_request(2, "refuse") as request:
        for batch in batches:
            request.join(batch)
        if again or unknown:
            with pytest.raises(DuplicateId if again else UnknownId) as caught:
                request.check()
            assert caught.value.position == (again or unknown)[0]
        else:
            request.check()


def test_requests_that_cannot_be(tmp_path):
    with build(tmp_path, ["a"], [1]) as index:
        with pytest.raises(ConfigError, match="needs a person column"):
            index.new_request(2, "refuse")
        with pytest.raises(ConfigError, match="at least 1"):
            index.new_request(0, "refuse")
    with build(tmp_path, ["a"], [1], ["p"]) as index:
        with refused('list every row in the table, with its label 0 or 1, and set unknown_rows = "refuse"') as told:
            index.new_request(2, "zero")
        assert "the sensitivity would double" in told.text
        with index.new_request(2, "refuse") as request:
            request.join(["a"])
            request.check()


def test_empty_batch(tmp_path):
    with build(tmp_path, ["a"], [1], ["p"]) as index, index.new_request(1, "refuse") as request:
        assert request.join([]).labels.shape == (0,)


# --- building ---------------------------------------------------------------------------------------


def test_duplicate_ids_in_the_table_name_both_rows(tmp_path, monkeypatch):
    ids = [f"id{i}" for i in range(40)]
    ids[29] = ids[11]
    for held in (1 << 17, 10):
        monkeypatch.setattr(label_index_build, "HELD_RECORDS", held)
        with pytest.raises(DataError, match=r"rows\.parquet, row 30, column id: the id is that of row 12 again( \(|$)"):
            build(tmp_path, ids, [0] * 40)


def test_persons_are_counted_only_under_a_bound(tmp_path):
    """Without one the counts would take four bytes for each person, and nobody would read them."""
    with build(tmp_path, list("abc"), [0, 1, 0], list("xxy")) as index:
        for cap in (None, 1):
            with index.new_request(cap, "refuse") as request:
                assert (request._counts is None) == (cap is None)


def test_an_index_of_another_format_is_refused(tmp_path):
    built(source(tmp_path, {"id": list("abc"), "y": [0, 1, 0]}), tmp_path / "index").close()
    header = tmp_path / "index" / "header.json"
    other = header.read_text().replace(f'"format": {label_index.FORMAT}', f'"format": {label_index.FORMAT + 1}')
    header.write_text(other)
    with pytest.raises(DataError, match="has no label index, or the index is damaged"):
        open_index(tmp_path / "index")


@pytest.mark.parametrize("damage", ["header.json", "high", "label"])
def test_a_damaged_index_is_refused(tmp_path, damage):
    built(source(tmp_path, {"id": list("abc"), "y": [0, 1, 0]}), tmp_path / "index").close()
    path = tmp_path / "index" / damage
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="has no label index, or the index is damaged"):
        open_index(tmp_path / "index")


def test_a_dataset_without_labels_is_refused(tmp_path):
    url = write(tmp_path, "parquet", {"id": ["a"], "y": [0.5]})
    with pytest.raises(ConfigError, match="needs a label column"):
        built(source_of(tmp_path, url), tmp_path / "index")


def test_labels_that_are_numbers_are_joined_as_they_are(tmp_path):
    values = {"a": 0.1, "b": -1e300, "c": 5e-324, "d": 3.0}
    url = write(tmp_path, "parquet", {"id": list(values), "y": list(values.values())})
    with built(source_of(tmp_path, url, label="y", label_kind="number"), tmp_path / "index") as index:
        with index.new_request(None, "refuse") as state:
            assert state.join(["d", "b", "a", "c"]).labels.tolist() == [3.0, -1e300, 0.1, 5e-324]


# --- what is on the disk and in memory ----------------------------------------------------------------


def test_files_are_private_and_requests_leave_none(tmp_path):
    with build(tmp_path, list("abc"), [0, 1, 0], list("ppq")) as index:
        names = ["header.json", "high", "label", "low", "person"]
        with index.new_request(1, "refuse") as request:
            request.join(["a"])
            assert sorted(os.listdir(index.directory)) == names
        assert sorted(os.listdir(index.directory)) == names
        assert (index.directory.stat().st_mode & 0o777) == 0o700
        assert ((index.directory / "header.json").stat().st_mode & 0o777) == 0o600


MEASURED = r"""
import re, sys
from pathlib import Path
from tests.measurement.indexes import built
from tests.data.tables import source_of
for directory in map(Path, sys.argv[1:]):
    source = source_of(directory, "rows.parquet", label="y", person="who")
    with built(source, directory / "index") as index, index.new_request(2, "refuse") as request:
        for start in range(0, index.n_rows, 10_000):
            request.join([str(number) for number in range(start, start + 10_000)])
    # Not getrusage's figure, in which a child begins with its parent's.
    print(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def peaks_kib(*tables: Path) -> list[int]:
    """Return the peak memory of one process after each table."""
    command = [sys.executable, "-c", MEASURED, *tables]
    measured = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=True)
    return [int(peak) for peak in measured.stdout.split()]


def write_table(directory: Path, n_rows: int) -> Path:
    numbers = np.random.default_rng(3).permutation(n_rows)
    ids = pa.array(numbers).cast(pa.string())
    table = pa.table({"id": ids, "who": pa.array(numbers // 3).cast(pa.string()), "y": numbers % 2})
    directory.mkdir()
    pq.write_table(table, directory / "rows.parquet", row_group_size=65536)  # a reader holds one at a time
    return directory


def test_memory_does_not_grow_with_the_table(tmp_path):
    """The larger index may only add what readers hold, a few MiB.

    400,000 more rows are 13 MB more on disk, and 27 MB as Python's ids. The larger index reaches the 8 MiB that may be
    mapped at a time; the smaller does not."""
    tables = write_table(tmp_path / "small", 100_000), write_table(tmp_path / "large", 500_000)
    (small,), (large,) = map(peaks_kib, tables)
    assert large - small < 18 * 1024
    # Building needs 40 MiB more than a request, which could hold as much unseen: now the indexes are there. 4 MiB, and
    # 32 with all ids held.
    small, large = peaks_kib(*tables)
    assert large - small < 12 * 1024


def test_a_full_disk_is_an_error_and_not_a_signal(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ConfigError, match="has no space for 8 bytes of working files: No space left on device"):
        MappedArray.temporary(8, "u1", tmp_path)
