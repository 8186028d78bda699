"""A path may lead to something else than a file with rows; each case gives one line: no wait, no foreign exception."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.data.sinks import open_sink
from blindfit.parties.files.private_files import read_certificate, read_private_key
from blindfit.parties.files.written import read_json, write_json
from blindfit.parties.settings import PartySettings
from blindfit.parties.tables import mistakes, validate
from tests.data.tables import read, refused, source_of, write_sqlite, write_text
from tests.each_case import each_case

URLS = {"csv": "csv:{}", "parquet": "parquet:{}", "sqlite": "sqlite:///{}?table=rows"}


def place(kind: str, path: str, directory: str = "DIR") -> str:
    return f"table rows of sqlite:///{path}" if kind == "sqlite" else f"{directory}/{path}"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as own:
            own.bind(path.name)
    finally:
        os.chdir(before)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (pipe, "this is a named pipe"),
    "directory": (Path.mkdir, "this is a directory"),
    "socket": (listening, "this is a socket"),
    "device": (device, "this is a device"),
    "loop": (loop, "the file cannot be read: Too many levels of symbolic links"),
}


@pytest.mark.timeout(60)
@each_case("what", WRONG)
@each_case("kind", URLS)
def test_no_regular_file(tmp_path: Path, kind: str, what: str) -> None:
    make, problem = WRONG[what]
    make(tmp_path / "rows")
    shown = "/dev/zero" if (what, kind != "sqlite") == ("device", True) else place(kind, "rows")
    refused(f"visits: {shown}: {problem}", r"`datasets\.visits\.url`", tmp_path, URLS[kind].format("rows"))


@each_case("kind", URLS)
def test_paths_that_lead_nowhere(tmp_path: Path, kind: str) -> None:
    write_text(tmp_path, "id\na\n", "file")
    url, long = URLS[kind], "x" * 300
    refused(
        f"visits: {place(kind, 'file/rows')}: the file does not exist",
        r"`datasets\.visits\.url`",
        tmp_path,
        url.format("file/rows"),
    )
    problem = "the file cannot be read: File name too long"
    refused(f"visits: {place(kind, long)}: {problem}", r"`datasets\.visits\.url`", tmp_path, url.format(long))
    problem = "there is no such user's home directory"
    refused(f"visits: ~nobody-here/rows: {problem}", "whole path", tmp_path, url.format("~nobody-here/rows"))
    problem = "a path cannot hold a NUL character"
    refused(f"visits: ro\\0ws: {problem}", "remove it", tmp_path, url.format("ro\0ws"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("kind", URLS)
def test_a_directory_that_may_not_be_entered(tmp_path: Path, kind: str) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    message = f"visits: {place(kind, 'closed/rows')}: the file cannot be read: Permission denied"
    refused(message, "permissions", tmp_path, URLS[kind].format("closed/rows"))


def test_a_file_that_is_gone_when_it_is_read(tmp_path: Path) -> None:
    write_text(tmp_path, "id,x\na,1\n")
    source = source_of(tmp_path, "rows.csv", features=["x"])
    (tmp_path / "rows.csv").unlink()
    with pytest.raises(DataError, match=r"rows\.csv: the file is gone( \(|$)"):
        list(source.batches())


# --- what is in a file -----------------------------------------------------------------------------------

LONG = "x" * 200_000  # more than Python's reader takes by default


def test_a_long_text_beside_the_columns_that_are_used(tmp_path: Path) -> None:
    write_text(tmp_path, f"id,x,note\na,1,{LONG}\nb,2,\n")
    (batch,) = read(tmp_path, "rows.csv", features=["x"])
    assert batch.ids.to_pylist() == ["a", "b"]


@pytest.mark.parametrize("note", [LONG, "\\xff"], ids=["long", "not UTF-8"])
def test_the_line_of_an_error_is_found_behind_what_is_not_used(tmp_path: Path, note: str) -> None:
    before = "".join(f"a{i},1,\n" for i in range(5000))  # a header is read with what stands near it
    octets = f"id,x,note\n{before}b,1,{note}\nc,no,\n".encode("latin-1").replace(b"\\xff", b"\xff")
    write_text(tmp_path, octets)
    message = "visits: DIR/rows.csv, row 5002 (line 5003), column x: not a number"
    refused(message, "", tmp_path, "rows.csv", features=["x"])


def test_a_header_longer_than_two_blocks(tmp_path: Path) -> None:
    write_text(tmp_path, "id," + "x" * 2**22 + "\na,1\n")
    refused("visits: DIR/rows.csv: this is not a csv file: it has no readable header", "", tmp_path, "rows.csv")


@each_case("kept", [3, 20, 200])
def test_a_parquet_file_that_was_cut_off(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [str(i) for i in range(1000)]}), path)
    path.write_bytes(path.read_bytes()[:-kept])
    message = "visits: DIR/rows.parquet: this is not a parquet file, or it is damaged"
    refused(message, "write the file again", tmp_path, "rows.parquet")


def test_an_sqlite_file_that_was_cut_off_or_holds_no_text(tmp_path: Path) -> None:
    url, path = "sqlite:///rows.db?table=rows", tmp_path / "rows.db"
    write_sqlite(path, "id TEXT, x DOUBLE PRECISION", [(f"a{i}", 1.0) for i in range(2000)])
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(DataError, match=r"could not return the rows|cannot be opened"):
        read(tmp_path, url)
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE rows (id TEXT)")
        connection.execute("INSERT INTO rows VALUES (CAST(x'ff61' AS TEXT))")
    connection.close()
    with pytest.raises(DataError, match="row 1, column id: the text is not UTF-8"):
        read(tmp_path, url)


# --- scores ----------------------------------------------------------------------------------------------

# Without a device: were the guard lost, a run as root would put the scores in the place of this machine's.
WRONG_HERE = sorted(WRONG.keys() - {"device"})


@pytest.mark.timeout(60)
@each_case("if_exists", ["refuse", "append", "replace"])
@each_case("what", WRONG_HERE)
@each_case("kind", URLS)
def test_scores_go_into_regular_files_alone(tmp_path: Path, kind: str, what: str, if_exists: str) -> None:
    make, problem = WRONG[what]
    make(tmp_path / "rows")
    sink = open_sink(URLS[kind].format("rows"), if_exists, tmp_path)  # type: ignore[arg-type]
    for act in (lambda: sink.check(["id", "score"]), lambda: sink.write(pa.table({"id": ["a"], "score": [0.5]}))):
        with pytest.raises(DataError, match=problem):
            act()


def test_scores_to_a_path_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such user's home directory"):
        open_sink("csv:~nobody-here/scores", "replace", tmp_path)
    sink = open_sink("csv:" + "x" * 300, "replace", tmp_path)
    with pytest.raises(DataError, match="File name too long"):
        sink.check(["id"])


# --- a party's own files -----------------------------------------------------------------------------------


@pytest.mark.timeout(60)
@each_case("what", WRONG_HERE)
def test_keys_and_models_are_read_from_regular_files_alone(tmp_path: Path, what: str) -> None:
    WRONG[what][0](tmp_path / "file")
    for reads in (read_certificate, lambda path: read_private_key(path, None), read_json):
        with pytest.raises((ConfigError, DataError), match=r"file cannot be read: (this is a|Too many levels)"):
            reads(tmp_path / "file")


def test_reports_need_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    for folder in ("file", "file/below", "loop", "x" * 300):
        with pytest.raises(ConfigError, match=r"report\.json cannot be written: .*") as caught:
            write_json(tmp_path / folder / "report.json", {})
        assert "output_dir" in caught.value.hint
    (tmp_path / "report.json").mkdir()
    with pytest.raises(ConfigError, match=r"report\.json cannot be written: Is a directory"):
        write_json(tmp_path / "report.json", {})


# --- NUL in settings -------------------------------------------------------------------------------------


@each_case(
    ("values", "where"),
    [
        ({"data_dir": "a\0b"}, "data_dir"),
        ({"datasets": {"rows": {"url": "csv:\0"}}}, "datasets.rows.url"),
        ({"datasets": {"rows": {"features": ["x", "\0"]}}}, "datasets.rows.features.1"),
        ({"identity": {"key": "\0"}}, "identity.key"),
        ({"peers": {"a\0": {"role": "active"}}}, "a name in [peers]"),
    ],
)
def test_no_text_of_a_file_holds_a_nul_character(values: dict[str, object], where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(values, PartySettings, source="party.toml")
    assert str(caught.value) == f"party.toml: {where} holds a NUL character, remove it"
    assert mistakes(values, PartySettings) == [f"{where} holds a NUL character, remove it"]


def test_settings_made_in_python_are_refused_when_they_are_used(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a path cannot hold a NUL character"):
        open_source(PartyDatasetSettings(url="csv:\0", id="id"), tmp_path, "visits")
