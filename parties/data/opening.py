"""Open the source of a dataset: find its columns, and check them against the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from blindfit.algorithms.columns.record import Kind, TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.parties.data.advice import Advice
from blindfit.parties.data.csv_file import MissingWords
from blindfit.parties.data.encoding import FromTable, describe, kind_in
from blindfit.parties.data.files import open_file
from blindfit.parties.data.local_files import file_fingerprint, local_path, require_file
from blindfit.parties.data.origin import (
    ColumnKinds,
    Origin,
    Reader,
    Tolerates,
    near_names,
    nothing,
    refuse_missing_names,
)
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.source import Source
from blindfit.parties.data.urls import KINDS_OF_URL, database_of, file_of, sheet_of, without_password


def open_source(settings: DatasetSettings, base_dir: Path, name: str, tolerates: Tolerates = nothing) -> Source:
    """Open a dataset and check that it has its columns; no row is checked yet.

    Levels that the rows define are read.

    Args:
        settings: place of the rows, and meaning of the columns.
        base_dir: start of a relative path: the directory of the party file.
        name: name of the dataset in errors.
        tolerates: test of a feature's name: True if the feature may have a problem, which `Source.problems` then has.

    Raises:
        DataError: there is no such file, table or column, or it cannot be opened.
    """
    reader = _open_reader(settings, base_dir, name, tolerates)
    settings, without = _readable_roles(reader, settings, tolerates)
    columns, problems = _features_of(reader, settings, tolerates)
    found = describe(reader, settings, columns, tolerates)
    levels_found = frozenset(settings.categories) if isinstance(settings.categories, tuple) else frozenset[str]()
    how = FromTable(found.record, levels_found)
    problems |= {**without, **found.problems}
    return Source(name, settings, found.record, found.record.encoded, reader, how, problems, tolerates)


def fingerprint_of(settings: DatasetSettings, base_dir: Path, name: str) -> str | None:
    """Return the fingerprint of a dataset's file, without opening it; None for a table of a database.

    Raises:
        DataError: there is no such file.
    """
    found = file_of(settings.url)
    if not found:
        return None
    path = local_path(found[1], base_dir, name)
    require_file(path, Origin(name, str(path)), settings.made_by)
    return file_fingerprint(path)


def kinds_of(settings: DatasetSettings, base_dir: Path, name: str) -> dict[str, Kind]:
    """Return the kind of each column that could be read as a feature or by a recipe, without reading a row.

    Raises:
            DataError: as in `open_source`, except for problems in rows.
    """
    reader = _open_reader(settings, base_dir, name)
    columns, _ = _features_of(reader, settings, lambda _column: True)
    return {column: kind_in(settings, reader, column) for column in columns}


def open_for_model(
    settings: DatasetSettings, record: TableRecord, columns: Sequence[str], base_dir: Path, name: str, option: str = ""
) -> Source:
    """Open a table that has the columns of a model's record, and read them in the form of the record.

    Args:
        columns: columns of the model, in order.
        option: option that names the table, if that is not the dataset's `url` in a party file.

    Raises:
        DataError: as in `open_source`.
    """
    declared = {column.name: frozenset(column.chosen) for column in record.columns if column.declared}
    words = MissingWords(frozenset(record.missing_words), {**settings.declarations(), **declared})
    texts = settings.text_columns() | {column.name for column in record.columns if column.kind == "category"}
    dates = frozenset(column.name for column in record.columns if column.kind == "date")
    reader = _open(settings, base_dir, Origin(name, "", option=option), words, ColumnKinds(texts, dates))
    refuse_missing_names([*settings.key_columns(), *record.names], reader.names, reader.origin)
    chosen = settings
    if settings.missing == "refuse" and record.filled:  # fills only the columns for which the model has a rule
        chosen = settings.model_copy(update={"missing": "mean"})
        record = record.with_fill({name: record.fill[name] for name in record.filled})
    return Source(name, chosen, record, tuple(columns), reader, FromTable(record))


def _open_reader(settings: DatasetSettings, base_dir: Path, name: str, tolerates: Tolerates = nothing) -> Reader:
    words = MissingWords(frozenset(settings.missing_words), settings.declarations())
    origin = Origin(name, "", advice=Advice(name, settings))
    kinds = ColumnKinds(settings.text_columns(), frozenset(settings.dates))
    return _open(settings, base_dir, origin, words, kinds, tolerates)


def _open(
    settings: DatasetSettings,
    base_dir: Path,
    origin: Origin,
    words: MissingWords,
    kinds: ColumnKinds,
    tolerates: Tolerates = nothing,
) -> Reader:
    if found := file_of(settings.url):
        kind, path = found[0], local_path(found[1], base_dir, origin.dataset)
        origin = replace(origin, where=str(path))
        return open_file(
            kind,
            path,
            origin,
            settings.made_by,
            tolerates,
            words=words,
            dialect=settings.dialect,
            kinds=kinds,
            sheet=sheet_of(settings.url),
        )
    shown = without_password(settings.url)
    url = database_of(settings.url)
    if url is None:
        raise replace(origin, where=shown).error("this kind of URL is not known", hint=f"use {KINDS_OF_URL}")
    from blindfit.parties.data.database import open_table  # here: a file needs no SQLAlchemy

    return open_table(url, base_dir, origin, settings.made_by, kinds.texts, kinds.dates, tolerates)


def _readable_roles(
    reader: Reader, settings: DatasetSettings, tolerates: Tolerates
) -> tuple[DatasetSettings, dict[str, DataError]]:
    """Return the settings without a label, a person and fields that the table does not have, and the reason for each.

    A column that is not tolerated stays, and is refused later.
    """
    absent = [name for name in settings.key_columns() if name not in reader.names and tolerates(name)]
    problems = {
        name: reader.origin.error(f"there is no column {name}", hint=near_names(name, reader.names, "columns"))
        for name in absent
        if name != settings.id
    }
    fields = {field: name for field, name in settings.quasi_identifiers.items() if name not in problems}
    without: dict[str, Any] = {"quasi_identifiers": fields}
    without |= {"label": None, "positive": None} if settings.label in problems else {}
    without |= {"person": None} if settings.person in problems else {}
    return settings.model_copy(update=without), problems


def _features_of(
    reader: Reader, settings: DatasetSettings, tolerates: Tolerates
) -> tuple[tuple[str, ...], dict[str, DataError]]:
    """Return the features by the reader's names, the columns that recipes read, and the problems of unreadable columns.

    Raises:
        DataError: the table lacks a column that the settings name.
    """
    refuse_missing_names([*settings.key_columns(), *settings.left_out], reader.names, reader.origin)
    features = _rest(reader, settings) if settings.features == "rest" else settings.features
    wanted = tuple(dict.fromkeys((*features, *settings.sources)))
    found, problems = [], dict[str, DataError]()
    for name in wanted:
        try:
            _check_name(name, reader)
            found.append(name)
        except DataError as error:
            if not tolerates(name):
                raise
            problems[name] = error
    return tuple(found), problems


def _check_name(name: str, reader: Reader) -> None:
    if not name and reader.names.count(name) == 1:
        place = reader.names.index("") + 1
        hint = f"give it a name in the table, or list the other columns: {reader.origin.advice.table}.features = [...]"
        raise reader.origin.error(f"column {place} has no name", hint=hint)
    refuse_missing_names([name], reader.names, reader.origin)


def _rest(reader: Reader, settings: DatasetSettings) -> tuple[str, ...]:
    """Return every other column that the settings do not leave out.

    A column that does not hold numbers raises an error when it is read. If it were left out without an error, a single
    bad cell of a CSV file would remove its column from the model.
    """
    used = (*settings.key_columns(), *settings.left_out)
    rest = tuple(dict.fromkeys(name for name in reader.names if name not in used))
    if not rest and not settings.derive:
        table = reader.origin.advice.table
        hint = f"remove {table}.features" + (f" or {table}.except" if settings.left_out else "")
        raise reader.origin.error("no column is left for the features", hint=hint)
    return rest
