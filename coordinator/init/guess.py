"""What a table seems to hold: which columns are texts, are dates or lack values, and what its labels are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blindfit.algorithms.columns import values as conversions
from blindfit.algorithms.columns.values import BadValue
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.coordinator.init.asked import Unclear
from blindfit.coordinator.init.places import Place
from blindfit.coordinator.terminal.wording import join_names, quantity
from blindfit.parties.data.columns import Floats, refuse_missing, to_days, to_levels, to_numbers
from blindfit.parties.data.csv_file import CsvFile, MissingWords
from blindfit.parties.data.dialect import PLAIN, CsvDialect
from blindfit.parties.data.encoding import MOST_LEVELS
from blindfit.parties.data.files import open_file
from blindfit.parties.data.local_files import local_path
from blindfit.parties.data.origin import Origin, Reader, refuse_duplicate_names, refuse_missing_names
from blindfit.parties.data.urls import file_of

MOST_MISFITS = 10
MOST_NAMED = 5
MEANS_YES = ("1", "yes", "true", "y", "t", "positive", "case", "malignant")


@dataclass(frozen=True)
class Guessed:
    """A table as a party file describes it.

    Attributes:
        n_features: columns of the table that are learnt from.
        left_out: by each column that is not learnt from, why, and what to do to keep it.
        remarks: sentences about columns that may hold something else than it seems.
        dialect: how a csv file is written.
        gaps: columns that lack a value in some row.
        features: the columns that are learnt from, where "rest" without `left_out` cannot name them; else empty.
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
    """Open a table; raise DataError or ConfigError if there is no such table, or if it cannot be read."""
    origin = Origin(re.sub(r"\W+", "-", place.stem) or "table", str(place), option=str(place))
    found, table = file_of(place.word), place.open_database(origin)
    if table is None and found is not None:
        table = open_file(found[0], local_path(found[1], Path(), origin.dataset), origin)
    if table is None:
        raise place.refusal()
    refuse_duplicate_names(table.names, table.origin)
    return table


def id_column(tables: Mapping[Place, Reader], given: str | None, label: str) -> str:
    """The column that names a row, by which the tables are joined.

    Raises:
        ConfigError: it cannot be told.
    """
    if given is not None:
        for table in tables.values():
            refuse_missing_names([given], table.names, table.origin)
        return given
    common = set.intersection(*(set(table.names) for table in tables.values())) - {label}
    if "id" in common:
        return "id"
    if len(common) == 1:
        return common.pop()
    said = f"their common columns are {', '.join(sorted(common))}" if common else "they have no column in common"
    raise Unclear("row_id", f"which column names a row? {said}", hint="name it: --id COLUMN")


def owner_of(label: str, tables: Mapping[Place, Reader]) -> Place:
    """Raises ConfigError: no table has the label, or several do."""
    owners = [path for path, table in tables.items() if label in table.names]
    if len(owners) == 1:
        return owners[0]
    if owners:
        raise ConfigError(
            f"{' and '.join(map(str, owners))} both have a column {label}", hint="one party has the label"
        )
    raise Unclear("label", f"no table has a column {label}", hint="name the column to learn: --label COLUMN")


def guess_table(
    place: Place, table: Reader, row_id: str, *, label: str = "", positive: str | None = None, as_number: bool = False
) -> Guessed:
    """Guess what a table holds; the whole table is read.

    Args:
        as_number: the label is a number, also if it is 0 or 1 in every row.

    Raises:
        DataError, ConfigError: a column is nothing that can be learnt from, or the label is unclear.
    """
    names = [name for name in table.names if name != row_id]
    rows = pa.Table.from_batches(table.arrow_batches([row_id, *names], 1 << 16)).combine_chunks()
    if not rows.num_rows:
        raise table.origin.error("there are no rows", hint="a dataset needs at least one row")
    origin, kinds, gaps, remarks = table.origin, dict[str, str](), list[str](), list[str]()
    for name in names:
        if name != label:
            kind = _Kind("other") if name in table.problems else _kind(_column(rows, name), name, origin)
            kinds[name] = kind.name
            gaps += [name] if kind.lacks_values else []
            remarks += [f"{kind.misfit.message}; the other values are {kind.name}s"] if kind.misfit else []
    remarks += _words(table, rows, [name for name, kind in kinds.items() if kind in ("category", "other")])
    ids = to_levels(_column(rows, row_id), name=row_id, origin=origin).to_pylist()
    left_out = {name: "not numbers, dates or texts of few levels" for name, kind in kinds.items() if kind == "other"}
    left_out |= {name: problem.message for name, problem in table.problems.items() if name in kinds}
    return Guessed(
        place,
        frozenset(str(i) for i in ids),
        tuple(name for name, kind in kinds.items() if kind == "category"),
        tuple(name for name, kind in kinds.items() if kind == "date"),
        bool(gaps),
        len(kinds) - len(left_out),
        left_out,
        tuple(remarks),
        gaps=tuple(gaps),
        **(_label(_column(rows, label), label, origin, positive, as_number=as_number) if label else {}),
    )


def _column(rows: Any, name: str) -> Any:
    return rows.column(name).combine_chunks()


@dataclass(frozen=True)
class _Kind:
    """
    Attributes:
        name: number, date, category or other.
        misfit: of a column that is a number or a date in all rows but a few, what is wrong with the first of these.
    """

    name: str
    lacks_values: bool = False
    misfit: DataError | None = None


def _kind(column: Any, name: str, origin: Origin) -> _Kind:
    if (found := _number_or_date(column, name, origin)) is not None:
        return found
    try:
        texts = to_levels(column, name=name, origin=origin)
    except DataError:
        return _Kind("other")
    few = len(pc.unique(texts.drop_null())) <= min(MOST_LEVELS, max(2, len(texts) // 5))
    return _Kind("category" if few else "other", few and texts.null_count > 0)


def _number_or_date(column: Any, name: str, origin: Origin) -> _Kind | None:
    """Return the kind of a column all of whose values fit, but for a few: a job then refuses the first by its row."""
    plain = {"number": conversions.to_numbers, "date": conversions.to_days}
    for kind, convert in (("number", to_numbers), ("date", to_days)):
        try:
            return _Kind(kind, bool(np.isnan(convert(column, name=name, first_row=1, origin=origin)).any()))
        except DataError as misfit:
            if (others := _all_but_a_few(column, plain[kind])) is not None:
                return _Kind(kind, bool(np.isnan(others).any()), misfit)
    return None


def _all_but_a_few(column: Any, convert: Callable[[Any], Floats]) -> Floats | None:
    """Return the values that can be converted, if at most MOST_MISFITS, and a tenth of all, cannot."""
    fits = np.ones(len(column), np.bool_)
    for _ in range(min(MOST_MISFITS, len(column) // 10) + 1):
        try:
            return convert(pc.if_else(pa.array(fits), column, None))[fits]
        except BadValue as error:
            if error.row is None:
                return None
            fits[error.row] = False
    return None


def _words(table: Reader, rows: Any, names: Sequence[str]) -> Iterator[str]:
    """Say which words of a csv file are taken for missing values in columns of texts."""
    if not isinstance(table, CsvFile) or not names:
        return
    as_written = replace(table, words=MissingWords(frozenset()))
    texts = pa.Table.from_batches(as_written.arrow_batches(names, 1 << 16)).combine_chunks()
    for name in names:
        words = _column(texts, name).filter(_column(rows, name).is_null()).drop_null()
        for found in pc.value_counts(words).to_pylist():
            word, count = found["values"].strip(), found["counts"]
            if word:
                yield (
                    f"column {name} has {word} in {quantity(count, 'row')}, which is taken for a missing value; if it "
                    "is a value, leave it out of missing_words, or name it in categories"
                )


def _label(column: Any, name: str, origin: Origin, positive: str | None, *, as_number: bool) -> dict[str, Any]:
    if as_number or (positive is None and pa.types.is_floating(column.type)):  # written 0.0 and 1.0, or any number
        numbers = to_numbers(column, name=name, first_row=1, origin=origin)
        refuse_missing(numbers, name=name, first_row=1, origin=origin, hint="remove the rows without a label")
        return {"label": name, "label_is_number": as_number or not np.isin(numbers, (0.0, 1.0)).all()}
    counts = Counter(to_levels(column, name=name, origin=origin).to_pylist())
    values = sorted(str(value) for value in counts if value is not None)
    if None in counts:
        row = 1 + pc.index(pc.is_null(column), True).as_py()
        raise origin.error("a row has no label", row=row, column=name, hint="remove the rows without one")
    if positive is not None:
        if positive not in values:
            known = join_names(values, most=MOST_NAMED)
            raise Unclear("positive", f"no label is {positive!r}", hint=f"they are {known}")
        return {"label": name, "positive": positive}
    if set(values) <= {"0", "1"}:
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
