"""Open a file of rows of any format."""

from __future__ import annotations

from pathlib import Path

from blindfit.parties.data.csv_file import CsvFile, MissingWords
from blindfit.parties.data.dialect import PLAIN, CsvDialect
from blindfit.parties.data.local_files import readable, require_file
from blindfit.parties.data.origin import PLAIN_KINDS, ColumnKinds, Origin, Reader, Tolerates, nothing
from blindfit.parties.data.parquet_file import ParquetFile
from blindfit.parties.data.urls import FileFormat


def open_file(
    kind: FileFormat,
    path: Path,
    origin: Origin,
    made_by: str | None = None,
    tolerates: Tolerates = nothing,
    *,
    words: MissingWords | None = None,
    dialect: CsvDialect = PLAIN,
    kinds: ColumnKinds = PLAIN_KINDS,
    sheet: str = "",
) -> Reader:
    """Return a reader of a file that exists and whose header is sound.

    Args:
        origin: name of the file in errors.
        tolerates: test of a column's name: True if the column may have a problem.
        words: words that stand for no value in a csv file.
        dialect: form of a csv file.
        kinds: kinds in which the columns of a csv or Excel file are read.
        sheet: sheet of an Excel file; empty for the only sheet.
    """
    require_file(path, origin, made_by)
    with readable(origin):
        if kind == "csv":
            return CsvFile.open(path, origin, words or MissingWords(), dialect, kinds, tolerates)
        if kind == "excel":
            from blindfit.parties.data.excel_file import ExcelFile  # here: other files need no openpyxl

            return ExcelFile.open(path, origin, sheet, kinds, tolerates)
        return ParquetFile.open(path, origin, tolerates)
