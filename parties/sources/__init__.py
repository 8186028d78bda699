"""Rows from a URL, streamed in batches: csv, parquet, SQLite and PostgreSQL.

    settings = DatasetSettings(url="csv:visits.csv", id="id", label="saw_doctor")
    for batch in open_source(settings, Path("."), "visits").batches():
        ...

Memory holds a batch or two, never the table. Whatever is wrong with the data is a `DataError` of one line
that names the dataset, the file or table, the row and the column. It never shows a password, nor a value,
which could be a label.
"""

from blindfit.parties.sources.settings import DatasetSettings
from blindfit.parties.sources.source import DuplicateSearch, RowBatch, Source, open_source

__all__ = [
    "DatasetSettings",
    "DuplicateSearch",
    "RowBatch",
    "Source",
    "open_source",
]
