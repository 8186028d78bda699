"""Everything that can be wrong with a file, and the one line about it."""

from __future__ import annotations

import os
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.errors import DataError
from blindfit.parties.data.local_files import BLOCK_BYTES
from tests.data.tables import read, refused, source_of, write, write_text
from tests.each_case import each_case


def csv_refused(tmp_path, text, message, hint="", **settings):
    write_text(tmp_path, text)
    refused(f"visits: DIR/rows.csv{message}", hint, tmp_path, "csv:rows.csv", **settings)


@pytest.mark.parametrize(("url", "made_by"), [("csv:gone.csv", "make it"), ("gone.parquet", None)])
def test_missing_file(tmp_path, url, made_by):
    hint = "run: make it" if made_by else "correct `datasets.visits.url`"
    message = f"visits: DIR/{url.removeprefix('csv:')}: the file does not exist"
    refused(message, hint, tmp_path, url, made_by=made_by)


def test_directory(tmp_path):
    refused("visits: DIR: this is a directory", "one file", tmp_path, f"csv:{tmp_path}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path):
    write_text(tmp_path, "id\na\n").chmod(0)
    refused("visits: DIR/rows.csv: the file cannot be read: Permission denied", "", tmp_path, "rows.csv")


@each_case(
    "url, shown",
    [(url, url) for url in ("oracle://h/db", "rows.xls", "xlsx:rows", "csv:", "postgresql+psycopg2://h/db")]
    + [("rows.csv?sheet=x", "rows.csv?sheet=..."), ("host=h password=word", "host=..."), ("u:word@h/db", "...")],
)
def test_unknown_url(tmp_path, url, shown):
    refused(
        f"visits: {shown}: this kind of URL is not known",
        r"use excel:PATH\?sheet=NAME, csv:PATH, parquet:PATH, sqlite",
        tmp_path,
        url,
    )


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_empty_csv(tmp_path, text):
    csv_refused(tmp_path, text, ": the file is empty", "header and rows")


def test_header_only(tmp_path):
    csv_refused(tmp_path, "id,x\n", ": the table has no rows", "at least one row")
    csv_refused(tmp_path, "id,x", ": the table has no rows", "at least one row")
    csv_refused(
        tmp_path, "id,a,,b\nx,1,0,2\n", ": column 3 has no name", "give it a name in the table", features="rest"
    )
    csv_refused(
        tmp_path, "id\n", ": no column is left for the features", "remove datasets.visits.features", features="rest"
    )


def test_a_column_that_is_left_out(tmp_path):
    write_text(tmp_path, "id,age,note,wage\na,1,likes tea,2\n")
    rest = {"features": "rest", "except": ["note"]}
    (batch,) = read(tmp_path, "csv:rows.csv", **rest)
    assert source_of(tmp_path, "csv:rows.csv", **rest).feature_names == ("age", "wage")
    assert batch.features.tolist() == [[1, 2]]
    csv_refused(
        tmp_path,
        "id,age,note\na,1,likes tea\n",
        ": there is no column notes",
        r"did you mean note\? the columns are id, age, note",
        **{"features": "rest", "except": ["notes"]},
    )


def test_csv_that_is_something_else(tmp_path):
    csv_refused(tmp_path, b"PAR1\0\0", ": this is a parquet file, not csv", "parquet:")
    csv_refused(tmp_path, b"\x7fELF\0", ": this is not a csv file: it holds binary data", "UTF-8")
    csv_refused(tmp_path, "id,x\n".encode("utf-16"), ": the file is UTF-16, not utf-8", 'encoding = "utf-16"')
    csv_refused(tmp_path, "id;x\n1;2\n", ": the fields are not separated by commas", 'separator = ";"')


def test_missing_column(tmp_path):
    csv_refused(
        tmp_path,
        "id,age,wage\na,1,2\n",
        ": there is no column wages",
        r"^did you mean wage(, age)?\? the columns are id, age, wage$",
        features=["wages"],
    )


def test_duplicate_column_names(tmp_path):
    for features in ("rest", ["x"]):
        csv_refused(tmp_path, "id,x,x\na,1,2\n", ": two columns are called x", "rename", features=features)
    csv_refused(tmp_path, "id,,\na,1,2\n", ": two columns are called (nothing)", "rename", features="rest")
    csv_refused(tmp_path, "id,y,id\na,1,2\n", ": two columns are called id", "rename", features=["y"])


def test_names_of_columns_that_are_not_used_may_be_anything(tmp_path):
    write_text(tmp_path, "id,x,note,,note,\na,1,2,3,4,5\n")
    (batch,) = read(tmp_path, "rows.csv", features=["x"])
    assert batch.features.tolist() == [[1.0]]


def test_string_where_a_number_belongs(tmp_path):
    text = "id,x\n" + "".join(f"a{i},{i}\n" for i in range(700)) + "b,s3cret\n"
    message = ", row 701 (line 702), column x: not a number"
    csv_refused(tmp_path, text, message, 'remove "x" from datasets.visits.features', features=["x"], batch_rows=256)


@each_case("words", [("true", "false"), (" True ", "FALSE"), ("TRUE", "0"), ("1.0", "False")])
def test_true_and_false_are_1_and_0(tmp_path, words):
    """Pandas writes booleans like this, and other sources have them; labels may be booleans too."""
    write_text(tmp_path, f"id,x,y\na,{words[0]},{words[0]}\nb,{words[1]},{words[1]}\n")
    (batch,) = read(tmp_path, "rows.csv", features=["x"], label="y")
    assert batch.features.tolist() == [[1.0], [0.0]]
    assert batch.labels.tolist() == [1, 0]


@each_case("value", ["1,5", "0x1F", "1 2", "yes", "truth", "--"])
def test_no_number(tmp_path, value):
    csv_refused(tmp_path, f'id,x\na,1\nb,"{value}"\n', ", row 2 (line 3), column x: not a number", features=["x"])


@each_case("value", ["inf", "-Infinity", "1e999"])
def test_infinite(tmp_path, value):
    csv_refused(tmp_path, f"id,x\na,{value}\n", ", row 1 (line 2), column x: the number is infinite", features=["x"])


@each_case("value", ["", " ", "NaN", "NA", "null"])
def test_missing_value(tmp_path, value):
    message = ", row 2 (line 5), column x: the value is missing (empty, null or NaN)"
    csv_refused(tmp_path, f'id,x,note\na,1,"two\nlines"\n\nb,{value},\n', message, 'missing = "drop"', features=["x"])


def test_missing_and_overlong_ids(tmp_path):
    message = ", row 2 (line 3), column id: the value is missing"
    csv_refused(tmp_path, "id,x\na,1\n,2\n", message, "give every row")
    message = ", row 1 (line 2), column id: longer than 256 bytes"
    csv_refused(tmp_path, f"id,x\n{'é' * 128}e,1\n", message, "shorter key")
    csv_refused(tmp_path, "id,who\na,\n", ", row 1 (line 2), column who: the value is missing", person="who")
    write_text(tmp_path, f"id,x\n{'é' * 128},1\n")
    assert len(read(tmp_path, "rows.csv")) == 1


@each_case("value", ["2", "-1", "0.5"])
def test_label_that_is_not_binary(tmp_path, value):
    message = ", row 2 (line 3), column y: the label is neither 0 nor 1"
    csv_refused(tmp_path, f"id,y\na,1\nb,{value}\n", message, "as 0 and 1", label="y")


def test_label_that_is_no_number_or_missing(tmp_path):
    number = ", row 1 (line 2), column y: not a number"
    csv_refused(tmp_path, "id,y\na,many\n", number, "write labels as numbers", label="y", label_kind="number")
    csv_refused(
        tmp_path, "id,y\na,yes\n", ", row 1 (line 2), column y: not a number", "datasets.visits.positive = ", label="y"
    )
    message = ", row 1 (line 2), column y: the value is missing (empty, null or NaN)"
    csv_refused(tmp_path, "id,y\na,\n", message, "without a label", label="y", missing="drop")


@pytest.mark.parametrize(("line", "fields"), [("b", 1), ("b,1,2,3", 4)])
def test_inconsistent_number_of_fields(tmp_path, line, fields):
    message = f", row 2 (line 4): {fields} fields, but the header has 3"
    csv_refused(tmp_path, f'id,x,note\na,1,"two\nlines"\n{line}\n', message, "double quotes")


@each_case("last", ['"b,2\nc,3\n', 'b,"2\nc,3\n', 'b,"2', '"b\n', 'b,2,"3\n'])
def test_a_double_quote_that_is_left_open(tmp_path, last):
    message = ", row 2 (line 4): a double quote is left open"
    csv_refused(tmp_path, f'id,x\n"a\n",1\n{last}', message, "^close it")


def test_a_double_quote_within_a_text_is_not_left_open(tmp_path):
    write_text(tmp_path, 'id,note\na,5" pipe\n"b ""x""",y\n')
    (batch,) = read(tmp_path, "rows.csv")
    assert batch.ids.to_pylist() == ["a", 'b "x"']


def test_wrong_encoding(tmp_path):
    csv_refused(tmp_path, "id,x\na,1\né,2\n".encode("latin-1"), ": line 3 is not UTF-8", "save the file in UTF-8")
    csv_refused(tmp_path, "id,é\na,1\n".encode("latin-1"), ": line 1 is not UTF-8", "save the file in UTF-8")


def test_row_longer_than_a_block(tmp_path):
    long = "x" * (3 * BLOCK_BYTES)
    csv_refused(tmp_path, f"id,x\na,{long}\nb,{long}\nc,{long}\n", ": the file cannot be read as csv", "double quote")


def test_a_role_that_is_not_asked_for_is_not_checked(tmp_path):
    write_text(tmp_path, "id,y,x\na,1,oops\n")
    (batch,) = source_of(tmp_path, "rows.csv", label="y", features=["x"]).batches(features=False)
    assert batch.features.shape == (1, 0)


# --- parquet --------------------------------------------------------------------------------------


def parquet_refused(tmp_path, columns, message, hint="", **settings):
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    refused(f"visits: DIR/rows.parquet{message}", hint, tmp_path, "rows.parquet", **settings)


def test_empty_and_damaged_parquet(tmp_path):
    parquet_refused(tmp_path, {"id": pa.array([], pa.string())}, ": the table has no rows", "at least one")
    path = write_text(tmp_path, "", "rows.parquet")
    refused("visits: DIR/rows.parquet: the file is empty", "", tmp_path, "rows.parquet")
    message = "visits: DIR/rows.parquet: this is not a parquet file, or it is damaged"
    path.write_bytes(b"id,x\n1,2\n")
    refused(message, "write the file again", tmp_path, "rows.parquet")


def test_parquet_damaged_inside(tmp_path):
    pq.write_table(pa.table({"id": [str(i) for i in range(1000)]}), tmp_path / "rows.parquet", compression="zstd")
    path = tmp_path / "rows.parquet"
    content = bytearray(path.read_bytes())
    content[40:400] = bytes(360)
    path.write_bytes(content)
    message = "visits: DIR/rows.parquet: this is not a parquet file, or it is damaged"
    refused(message, "write the file again", tmp_path, "rows.parquet")


def test_parquet_values(tmp_path):
    ids = ["a", "b", "c"]
    parquet_refused(tmp_path, {"id": ids, "x": ["1", "s3cret", "2"]}, ", row 2, column x: not a number", features=["x"])
    message = ", row 3, column x: the value is missing (empty, null or NaN)"
    parquet_refused(tmp_path, {"id": ids, "x": [1, 2, float("nan")]}, message, features=["x"])
    parquet_refused(tmp_path, {"id": ids, "x": [1, None, 2]}, message.replace("3", "2"), features=["x"])
    message = ", row 1, column x: the number is infinite"
    parquet_refused(tmp_path, {"id": ids, "x": [float("inf"), 1, 2]}, message, features=["x"])
    message = ", column x: its values are of the type list<element: int64>, not numbers"
    parquet_refused(tmp_path, {"id": ids, "x": [[1], [2], [3]]}, message, features=["x"])


def test_parquet_ids(tmp_path):
    message = ", column id: its values are floating-point numbers, so that 7 may be written 7.0"
    parquet_refused(tmp_path, {"id": [1.0, 2.0]}, message, "as text or as whole numbers")
    parquet_refused(tmp_path, {"id": [True]}, ", column id: its values are of the type bool", "as text")
    parquet_refused(tmp_path, {"id": ["a", None]}, ", row 2, column id: the value is missing")


def test_uuids_are_their_texts(tmp_path):
    keys = [uuid.UUID(int=5), uuid.UUID(int=2**127)]
    column = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([key.bytes for key in keys], pa.binary(16)))
    pq.write_table(pa.table({"id": column}), tmp_path / "rows.parquet")
    (batch,) = read(tmp_path, "rows.parquet")
    assert batch.ids.to_pylist() == [str(key) for key in keys]


def broken_text(values):
    """Return text that is not UTF-8, as a careless writer makes it."""
    ends = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(values)))


@each_case(
    "role",
    [
        {"id": "x"},
        {"features": ["x"]},
        {"features": ["x"], "categories": ["x"]},
        {"label": "x"},
        {"quasi_identifiers": {"name": "x"}},
    ],
)
@pytest.mark.parametrize("as_dictionary", [False, True])
def test_parquet_text_that_is_not_utf8(tmp_path, role, as_dictionary):
    text = broken_text([b"1", b"0", b"M\xfcller", b"1"])
    columns = {"id": list("abcd"), "x": text.dictionary_encode() if as_dictionary else text}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"rows\.parquet, row 3, column x: the text is not UTF-8( \(|$)"):
        list(source_of(tmp_path, "rows.parquet", batch_rows=2, **role).canonical())


def test_parts_of_a_parquet_file_are_its_rows_with_their_numbers(tmp_path):
    columns = {"id": [f"row {i}" for i in range(40)], "y": [i % 2 for i in range(40)], "x": list(range(40))}
    source = source_of(tmp_path, write(tmp_path, "parquet", columns), label="y", features=["x"], batch_rows=4)
    assert source.n_rows == 40
    for first, last in [(0, 40), (0, 1), (6, 7), (7, 14), (3, 25), (39, 40), (36, 99)]:
        part = source.part(first, last)
        batches = list(part.batches())
        assert part.n_rows == sum(map(len, batches))
        rows = range(first, min(last, 40))
        assert [row for batch in batches for row in batch.rows] == [row + 1 for row in rows]
        assert [name for batch in batches for name in batch.ids.to_pylist()] == [f"row {row}" for row in rows]
        assert [x for batch in batches for x in batch.features[:, 0]] == list(rows)
        assert all(len(batch) == 4 for batch in batches[:-1])
    with pytest.raises(DataError, match="the table has no rows"):
        list(source.part(40, 44).batches())


def test_an_error_in_a_part_names_the_row_of_the_whole(tmp_path):
    columns = {"id": [f"row {i}" for i in range(40)], "x": ["1"] * 32 + ["s3cret"] * 8}
    source = source_of(tmp_path, write(tmp_path, "parquet", columns), features=["x"], batch_rows=4)
    with pytest.raises(DataError, match=r"row 33, column x: not a number( \(|$)"):
        list(source.part(20, 40).batches())
    broken = pa.table({"id": columns["id"], "x": broken_text([b"1"] * 32 + [b"\xff"] * 8)})
    pq.write_table(broken, tmp_path / "rows.parquet", row_group_size=7)
    source = source_of(tmp_path, "rows.parquet", features=["x"], batch_rows=4)
    with pytest.raises(DataError, match=r"row 33, column x: the text is not UTF-8( \(|$)"):
        list(source.part(20, 40).batches())


@pytest.mark.parametrize("kind", ["csv", "sqlite"])
def test_what_is_read_from_end_to_end_has_no_parts(tmp_path, kind):
    source = source_of(tmp_path, write(tmp_path, kind, {"id": ["a", "b"]}))
    assert source.n_rows is None
    with pytest.raises(DataError, match="it cannot be read in parts"):
        source.part(0, 1)


def test_duplicate_parquet_columns(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array([1]), pa.array([2])], names=["id", "x", "x"])
    pq.write_table(table, tmp_path / "rows.parquet")
    message = "visits: DIR/rows.parquet: two columns are called x"
    refused(message, "rename", tmp_path, "rows.parquet", features="rest")
    assert len(read(tmp_path, "rows.parquet")) == 1


def test_fingerprint_changes_with_the_file(tmp_path):
    source = source_of(tmp_path, write(tmp_path, "csv", {"id": ["a"]}))
    before = source.fingerprint()
    assert before == source.fingerprint()
    write(tmp_path, "csv", {"id": ["b"]})
    assert before != source.fingerprint()
