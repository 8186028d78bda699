"""A guess of what a table holds: columns of texts, dates and missing values, and the kind of its labels."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.coordinator.init.asked import Unclear
from blindfit.coordinator.init.forms import Forms, guess_file, guess_forms
from blindfit.coordinator.init.kinds import OF_PANDAS, Judge, why_unreadable, words_for_missing
from blindfit.coordinator.init.places import Place
from blindfit.coordinator.terminal.wording import join_names, quantity
from blindfit.parties.data.columns import refuse_missing, to_levels, to_numbers
from blindfit.parties.data.csv_file import CsvFile, MissingWords
from blindfit.parties.data.dialect import PLAIN, CsvDialect
from blindfit.parties.data.excel_file import ExcelFile
from blindfit.parties.data.files import open_file
from blindfit.parties.data.local_files import is_there, local_path
from blindfit.parties.data.origin import (
    ColumnKinds,
    Origin,
    Reader,
    no_rows,
    refuse_duplicate_names,
    refuse_missing_names,
)
from blindfit.parties.data.urls import file_of, sheet_of

MOST_NAMED = 5
MOST_COLUMNS = 20
MEANS_YES = ("1", "yes", "true", "y", "t", "positive", "case", "malignant")


@dataclass(frozen=True)
class Guessed:
    """A table as a party file describes it.

    Attributes:
        n_features: number of columns that the job learns from.
        left_out: columns that the job does not learn from, each with the reason, and what to do to keep it.
        remarks: sentences about columns that may hold something else.
        dialect: dialect of the csv file.
        gaps: columns that lack a value in some row.
        features: columns that the job learns from, if "rest" without `left_out` cannot name them; else empty.
    """

    place: Place
    ids: frozenset[str]
    categories: tuple[str, ...]
    dates: tuple[str, ...]
    lacks_values: bool
    n_features: int
    left_out: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    dialect: CsvDialect = PLAIN
    features: tuple[str, ...] = ()
    label: str = ""
    positive: str = ""
    label_is_number: bool = False
    gaps: tuple[str, ...] = ()


def open_table(place: Place) -> Reader:
    """Return a table; raise DataError or ConfigError if the table does not exist or cannot be read."""
    origin = Origin(re.sub(r"\W+", "-", place.stem) or "table", str(place), option=str(place))
    found, table = file_of(place.word), place.open_database(origin)
    if table is None and found is not None:
        path = local_path(found[1], Path(), origin.dataset)
        dialect = guess_file(path) if found[0] == "csv" and is_there(path, origin) else PLAIN
        table = open_file(found[0], path, origin, dialect=dialect, sheet=sheet_of(place.word))
    if table is None:
        raise place.refusal()
    refuse_duplicate_names(table.names, table.origin)
    return table


def read_all(table: Reader, names: Sequence[str]) -> Any:
    """Return all rows of these columns as a `pyarrow.Table`; raise DataError if the table has no rows."""
    batches = list(table.arrow_batches(names, 1 << 16))
    if not sum(batch.num_rows for batch in batches):
        raise no_rows(table.origin)
    return pa.Table.from_batches(batches).combine_chunks()


def id_column(tables: Mapping[Place, Reader], given: str | None, label: str) -> str:
    """Return the column that names a row, by which the tables are joined.

    Raises:
        ConfigError: the tables do not show which column it is.
    """
    if given is not None:
        for table in tables.values():
            refuse_missing_names([given], table.names, table.origin)
        return given
    common = set.intersection(*(set(table.names) for table in tables.values())) - {label}
    common = {name for name in common if name == "index" or not OF_PANDAS.fullmatch(name)}
    if "id" in common:
        return "id"
    if len(common) == 1:
        return common.pop()
    whose = "their common columns are" if len(tables) > 1 else "the columns are"
    said = f"{whose} {', '.join(sorted(common))}" if common else "they have no column in common"
    raise Unclear("row_id", f"which column names a row? {said}", hint="name it: --id COLUMN")


def owner_of(label: str, tables: Mapping[Place, Reader]) -> Place:
    """Return the table with the label; raise ConfigError if no table has it, or several do."""
    owners = [path for path, table in tables.items() if label in table.names]
    if len(owners) == 1:
        return owners[0]
    if owners:
        raise ConfigError(
            f"{' and '.join(map(str, owners))} both have a column {label}", hint="one party has the label"
        )
    names = dict.fromkeys(name for table in tables.values() for name in table.names if name)
    near = difflib.get_close_matches(label, names, n=1)
    known = (
        f"the nearest name is {near[0]}"
        if near
        else f"the columns are {join_names(list(names) or ['without names'], most=MOST_COLUMNS)}"
    )
    raise Unclear("label", f"no table has a column {label}: {known}", hint="name the column to learn: --label COLUMN")


def guess_table(
    place: Place, table: Reader, row_id: str, *, label: str = "", positive: str | None = None, as_number: bool = False
) -> Guessed:
    """Return a guess of what a table holds; the whole table is read.

    Args:
        as_number: True if the label is a number, even if it is 0 or 1 in every row.

    Raises:
        DataError, ConfigError: a column cannot be learnt from, or the label is unclear.
    """
    names = [name for name in table.names if name != row_id]
    columns = [name for name in names if not label or name != label]  # a column without a name is not a label
    forms, origin, is_csv = Forms(), table.origin, isinstance(table, CsvFile)
    if isinstance(table, CsvFile):  # texts as the file has them
        table = replace(table, kinds=ColumnKinds(frozenset(table.names)))
    rows = read_all(table, [row_id, *names])
    if isinstance(table, CsvFile):
        forms = guess_forms({name: _column(rows, name) for name in names}, table.dialect)
    judge = Judge(origin, is_csv, forms, lists_features="" in names)
    kinds = {name: judge.kind_of(_column(rows, name), name) for name in columns if name not in table.problems}
    left_out = {name: kind.why for name, kind in kinds.items() if kind.name == "other"}
    if isinstance(table, ExcelFile):
        as_read = table.without_mixed({name for name, kind in kinds.items() if kind.name == "category"})
        table = replace(table, problems={**table.problems, **as_read.problems})
    left_out |= {name: why_unreadable(problem, origin) for name, problem in table.problems.items() if name in columns}
    kept = {name: kind for name, kind in kinds.items() if name not in left_out}
    dates = tuple(name for name, kind in kept.items() if kind.name == "date")
    ids = to_levels(_column(rows, row_id), name=row_id, origin=origin)
    remarks = [
        *_find_repeats(ids, row_id, origin),
        *judge.remarks(rows, [n for n, kind in kept.items() if kind.name == "number"]),
    ]
    remarks += _words(table, rows, [name for name, kind in kept.items() if kind.name == "category"])
    found = (
        _label(judge.in_plain_form(_column(rows, label)), label, origin, positive, as_number=as_number) if label else {}
    )
    gaps = tuple(name for name, kind in kept.items() if kind.lacks_values)
    return Guessed(
        place,
        frozenset(str(i) for i in ids.to_pylist()),
        tuple(name for name, kind in kept.items() if kind.name == "category"),
        dates,
        bool(gaps),
        len(kept),
        left_out,
        tuple(remarks),
        dialect=forms.dialect if dates else replace(forms.dialect, date_format=None),
        features=tuple(kept) if "" in left_out else (),
        gaps=gaps,
        **found,
    )


def _column(rows: Any, name: str) -> Any:
    return rows.column(name).combine_chunks()


def _find_repeats(ids: Any, name: str, origin: Origin) -> Iterator[str]:
    """Yield a sentence about ids in several rows, which every job refuses."""
    counts = pc.value_counts(ids)
    often = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(often):
        text = often[0]["values"]
        places = np.flatnonzero(pc.equal(ids, text).to_numpy(zero_copy_only=False))[:2]
        first, second = (origin.locate(int(place) + 1) for place in places)
        yield (
            f"column {name} repeats: {quantity(len(often), 'id')} in more than one row, such as {text.as_py()!r} in "
            f"{first} and {second}; a job needs one row for each id, so remove rows or name another column, --id COLUMN"
        )


def _words(table: Reader, rows: Any, names: Sequence[str]) -> Iterator[str]:
    """Yield sentences about words of a csv file that count as missing values in columns of texts."""
    if not isinstance(table, CsvFile) or not names:
        return
    as_written = replace(table, words=MissingWords(frozenset()))
    texts = pa.Table.from_batches(as_written.arrow_batches(names, 1 << 16)).combine_chunks()
    for name in names:
        yield from words_for_missing(_column(texts, name), _column(rows, name), name)


def _label(column: Any, name: str, origin: Origin, positive: str | None, *, as_number: bool) -> dict[str, Any]:
    if as_number or (positive is None and pa.types.is_floating(column.type)):  # written 0.0 and 1.0, or any number
        numbers = to_numbers(column, name=name, first_row=1, origin=origin)
        refuse_missing(numbers, name=name, first_row=1, origin=origin, hint="remove the rows without a label")
        return {"label": name, "label_is_number": as_number or not np.isin(numbers, (0.0, 1.0)).all()}
    counts = Counter(to_levels(column, name=name, origin=origin).to_pylist())
    values = sorted(str(value) for value in counts if value is not None)
    if None in counts:
        row = 1 + pc.index(pc.is_null(column), True).as_py()
        raise origin.error("a row has no label", row=row, column=name, hint="remove the rows without a label")
    if len(values) == 1:
        raise origin.error(
            f"every row has the label {values[0]!r}, so there is nothing to learn",
            column=name,
            hint="name another column, --label COLUMN, or add rows with another label",
        )
    if positive is not None:
        if positive not in values:
            known = join_names(values, most=MOST_NAMED)
            raise Unclear("positive", f"no label is {positive!r}", hint=f"they are {known}")
        return {"label": name, "positive": positive}
    if all(map(_is_zero_or_one, values)):
        return {"label": name}
    if len(values) == 2:
        yes = [value for value in values if value.lower() in MEANS_YES]
        if len(yes) == 1:
            return {"label": name, "positive": yes[0]}
        raise Unclear(
            "positive", f"which label is 1, {join_names(values, 'or')}?", hint="name its text: --positive TEXT"
        )
    try:
        to_numbers(column, name=name, first_row=1, origin=origin)
    except DataError:
        raise Unclear(
            "positive",
            f"the label {name} has {len(values)} values: {join_names(values, most=MOST_NAMED)}",
            hint="name the one that is label 1, all others being 0: --positive TEXT",
        ) from None
    return {"label": name, "label_is_number": True}


def _is_zero_or_one(text: str) -> bool:
    """Return True if a text is 0 or 1 in any form, such as 1.0, which pandas writes after a missing label."""
    try:
        return float(text) in (0.0, 1.0)
    except ValueError:
        return False
