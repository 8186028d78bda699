"""One table of a simulation: read from a file, a database or a data frame, and judged as `blindfit init` judges it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blindfit.algorithms.columns import values
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.coordinator.init.forms import guess_forms
from blindfit.coordinator.init.guess import Guessed, guess_table, open_table, read_all
from blindfit.coordinator.init.kinds import Judge, why_unreadable
from blindfit.coordinator.init.places import Place
from blindfit.coordinator.simulate.asked import Asked
from blindfit.coordinator.terminal.wording import join_names, quantity
from blindfit.parties.data.columns import refuse_missing, to_days, to_levels, to_numbers, to_texts
from blindfit.parties.data.csv_file import CsvFile
from blindfit.parties.data.excel_file import ExcelFile
from blindfit.parties.data.origin import (
    ColumnKinds,
    Origin,
    no_rows,
    refuse_duplicate_names,
    refuse_missing_names,
)
from blindfit.parties.training.feature_bounds import ALL_OTHERS

Floats = NDArray[np.float64]
LEFT_OUT, WHERE = b"left out", b"where"  # metadata of the schema: JSON of reasons by column; the file
TO_KEEP = "; to keep it"  # the rest is for a person who writes party files
MOST = 1e100  # largest number: its square is finite, and so is a sum of many squares
ALIKE = 1e-9  # largest distance from a correlation of 1, for the label in another unit
IN_MEMORY = Origin("table", "the data frame", option="TABLE")
SOMEWHERE = Place("table.parquet")  # a table in memory has no file


# --- reading ------------------------------------------------------------------------------------------


def read_table(source: Any, asked: Asked) -> pa.Table:
    """Read one table with typed columns; its ids and its label keep their texts.

    Args:
        source: path or `url` of a dataset; or a data frame of pandas, polars or pyarrow, or a mapping of names to
            columns.

    Raises:
        ConfigError, DataError: the table is wrong; names the place.
    """
    if not isinstance(source, str | Path):
        return _of_frame(source)
    place = Place(str(source))
    reader = open_table(place)
    kept = _names_of_roles(asked)
    refuse_missing_names(kept, reader.names, reader.origin)
    if isinstance(reader, CsvFile):
        return _of_csv(reader, asked, place)
    reader = place.as_declared(reader, kept[1:])
    rows = read_all(reader, reader.names)
    if isinstance(reader, ExcelFile):
        mixed = reader.without_mixed({name for name in reader.names if name not in kept})
        reader = replace(reader, problems={**reader.problems, **mixed.problems})
    for name in kept:
        if problem := reader.problems.get(name):
            raise problem
    why = {name: why_unreadable(problem, reader.origin) for name, problem in reader.problems.items()}
    return _with_reasons(rows, why, place)


def _of_frame(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        table = frame
    elif isinstance(frame, pa.RecordBatch):
        table = pa.Table.from_batches([frame])
    else:
        table = pa.table({name: _of_column(column, name) for name, column in _columns_of(frame)})
    refuse_duplicate_names(table.column_names, IN_MEMORY)
    return table


def _columns_of(frame: Any) -> Iterator[tuple[str, Any]]:
    index = getattr(frame, "index", None)
    if getattr(index, "name", None) is not None and hasattr(frame, "reset_index"):
        frame = frame.reset_index()  # an index that has a name is a column: often the ids
    names = list(frame) if isinstance(frame, Mapping) else list(getattr(frame, "columns", ()))
    if not names:
        raise ConfigError(
            f"the table is of the type {type(frame).__name__}, which has no columns",
            hint="give a path, or a data frame of pandas, polars or pyarrow",
        )
    for name in names:
        if not isinstance(name, str):
            raise DataError(
                f"the data frame has a column called {name!r}, which is not a text", hint="name it by a text"
            )
    refuse_duplicate_names(names, IN_MEMORY)
    for name in names:
        yield name, frame[name]


def _of_column(column: Any, name: str) -> Any:
    try:
        if hasattr(column, "to_arrow"):
            return column.to_arrow()
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise IN_MEMORY.error(
            "its values are of several types, or of a type that no column of a table has",
            column=name,
            hint="convert them to one type, or leave the column out",
        ) from None


def _of_csv(reader: CsvFile, asked: Asked, place: Place) -> pa.Table:
    """Convert the columns of a csv file, whose numbers and dates may have other forms."""
    reader = replace(reader, kinds=ColumnKinds(frozenset(reader.names)))
    rows = read_all(reader, reader.names)
    others = {name: rows.column(name).combine_chunks() for name in reader.names if name != asked.row_id}
    forms = guess_forms(others, reader.dialect)
    judge = Judge(reader.origin, is_csv=True, forms=forms)
    why, columns = {}, {}
    for name in reader.names:
        column = rows.column(name).combine_chunks()
        if name in _names_of_roles(asked):
            columns[name] = judge.in_plain_form(column) if name == asked.label else column
            continue
        kind = judge.kind_of(column, name)
        if kind.name == "number":
            columns[name] = pa.array(judge.to_numbers(column), from_pandas=True)
        elif kind.name == "date":
            columns[name] = days_to_moments(judge.to_days(column))
        elif kind.name == "category":
            columns[name] = to_levels(column, name=name, origin=reader.origin)
        else:
            columns[name], why[name] = column, kind.why
    return _with_reasons(pa.table(columns), why, place)


def days_to_moments(days: Floats) -> Any:
    """Return timestamps of days since 1970-01-01; null if a day is NaN."""
    absent = np.isnan(days)
    moments = np.rint(np.where(absent, 0.0, days) * values.DAY_US).astype(np.int64)
    return pa.array(moments, mask=absent).cast(pa.timestamp("us"))


def _with_reasons(table: pa.Table, why: Mapping[str, str], place: Place) -> pa.Table:
    return table.replace_schema_metadata({LEFT_OUT: json.dumps(dict(why)), WHERE: str(place)})


def _origin_of(table: pa.Table) -> Origin:
    where = (table.schema.metadata or {}).get(WHERE)
    return IN_MEMORY if where is None else replace(IN_MEMORY, where=where.decode())


# --- judging ------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Whole:
    """Content of a table before it is cut.

    Attributes:
        ids: (n,) texts.
        features: columns that a model can learn from, (n,) each.
        labels: (n,) labels, 0 and 1 or numbers.
        label_is_number: True if the label is a number, which a linear model predicts.
        positive: text of label 1; "" if labels are 0 and 1, or numbers.
        categories, dates: names among the features.
        gaps: features that lack a value in some row.
        left_out: reasons, by each column that a model cannot learn from.
    """

    id_name: str
    ids: Any
    label_name: str
    labels: Floats
    features: pa.Table
    label_is_number: bool = False
    positive: str = ""
    categories: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ArrowRows:
    """A table in memory, as `init` reads one."""

    table: pa.Table
    origin: Origin
    booleans: frozenset[str] = frozenset()
    problems: Mapping[str, DataError] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    def fingerprint(self) -> str | None:
        return None

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        yield from self.table.select(list(names)).to_batches(batch_rows)


def judge_table(table: pa.Table, asked: Asked) -> Whole:
    """Return the kind of each column, by the rules of `init`.

    Raises:
        ConfigError, DataError: the label or the ids cannot be used, or a named column does not exist.
    """
    origin = _origin_of(table)
    dealt = [] if isinstance(asked.parties, int) else [name for each in asked.parties.values() for name in each]
    bounded = [name for name in asked.bounds if name != ALL_OTHERS]
    refuse_missing_names([*_names_of_roles(asked), *dealt, *bounded], table.column_names, origin)
    if not table.num_rows:
        raise no_rows(origin)
    known = json.loads((table.schema.metadata or {}).get(LEFT_OUT, b"{}"))
    columns = {name: _in_one_chunk(table.column(name)) for name in table.column_names if name not in known}
    id_name = asked.row_id or next(name for name in _names_of_ids() if name not in table.column_names)
    if asked.row_id is None:
        columns[id_name] = pa.array([f"r{row}" for row in range(1, table.num_rows + 1)])
    ids = _ids_of(columns[id_name], id_name, origin)
    rows = ArrowRows(pa.table(columns), origin)
    found = guess_table(SOMEWHERE, rows, id_name, label=asked.label, positive=asked.positive)
    labels = _labels_of(columns[asked.label], asked.label, found, origin)
    features = [name for name in columns if name not in (id_name, asked.label, *found.left_out)]
    why = {name: each.partition(TO_KEEP)[0] for name, each in {**known, **found.left_out}.items()}
    _refuse_bounds_in_vain(bounded, [name for name in features if name not in found.categories])
    return Whole(
        id_name,
        ids,
        asked.label,
        labels,
        pa.table({name: _in_plain_type(columns[name], name, found, asked, origin) for name in features}),
        found.label_is_number,
        found.positive,
        found.categories,
        found.dates,
        found.gaps,
        why,
    )


def _names_of_ids() -> Iterator[str]:
    yield from ("id", "row", "row_id")
    yield from (f"row_{number}" for number in itertools.count(1))


def _names_of_roles(asked: Asked) -> list[str]:
    return [asked.label, *([asked.row_id] if asked.row_id is not None else [])]


def _refuse_bounds_in_vain(bounded: Sequence[str], numbers: Sequence[str]) -> None:
    if strangers := [name for name in bounded if name not in numbers]:
        raise ConfigError(
            f"--bounds {strangers[0]}: this is not a column of numbers or dates that a party learns from",
            hint=f"these are {join_names(numbers)}" if numbers else "leave out --bounds",
        )


def _in_plain_type(column: Any, name: str, found: Guessed, asked: Asked, origin: Origin) -> Any:
    """Return numbers as floats, a date as moments and a category as texts; a boolean without gaps stays boolean."""
    if name in found.categories:
        return to_levels(column, name=name, origin=origin)
    if name in found.dates:
        return days_to_moments(to_days(column, name=name, first_row=1, origin=origin))
    if values.is_boolean(column.type) and not asked.missing and name not in found.gaps:
        return column
    numbers = to_numbers(column, name=name, first_row=1, origin=origin)
    _refuse_huge(numbers, name, origin)
    return pa.array(numbers, from_pandas=True)


def _refuse_huge(numbers: Floats, name: str, origin: Origin) -> None:
    """Raise DataError: a number is too large for any fit."""
    huge = np.abs(numbers) > MOST
    if huge.any():
        row = int(np.argmax(huge))
        raise origin.error(
            f"row {row + 1} has the number {numbers[row]:g}, which is above {MOST:g} in size",
            column=name,
            hint="correct it, give the column another unit, or remove the column",
        )


def _in_one_chunk(column: Any) -> Any:
    """Return a column without a dictionary, which a subset of the rows would keep whole."""
    found = column.combine_chunks()
    return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found


def _ids_of(column: Any, name: str, origin: Origin) -> Any:
    ids = to_texts(column, name=name, first_row=1, origin=origin)
    counts = pc.value_counts(ids)
    often = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(often):
        rows = np.flatnonzero(pc.equal(ids, often[0]["values"]).to_numpy(zero_copy_only=False)) + 1
        raise origin.error(
            f"{quantity(len(often), 'id')} in more than one row, such as row {rows[0]} and row {rows[1]}",
            column=name,
            hint="remove rows, name another column with --id, or leave --id out: rows are then numbered",
        )
    return ids


def _labels_of(column: Any, name: str, found: Guessed, origin: Origin) -> Floats:
    if found.positive:
        texts = to_levels(column, name=name, origin=origin, known=[found.positive])
        labels: Floats = pc.equal(texts, found.positive).to_numpy(zero_copy_only=False).astype(np.float64)
    else:
        labels = to_numbers(column, name=name, first_row=1, origin=origin)
        refuse_missing(labels, name=name, first_row=1, origin=origin, hint="remove the rows without a label")
    _refuse_huge(labels, name, origin)
    if 0 < np.ptp(labels) < 1 / MOST:
        raise origin.error(
            f"the labels differ by {np.ptp(labels):g}, less than {1 / MOST:g}",
            column=name,
            hint="give the labels another unit",
        )
    if (labels == labels[0]).all():
        raise origin.error(
            "every row has the same label, so there is nothing to learn",
            column=name,
            hint="name another column, --label COLUMN, or add rows with another label",
        )
    return labels


def find_copies(features: pa.Table, labels: Floats) -> tuple[str, ...]:
    """Return the columns that are the label in another form: another unit, or another text for each label."""
    return tuple(name for name in features.column_names if _is_copy(features.column(name), labels))


def _is_copy(column: Any, labels: Floats) -> bool:
    if pa.types.is_floating(column.type):
        numbers = values.to_numbers(column)
        there = ~np.isnan(numbers)
        x, y = numbers[there], labels[there]
        if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
            return False
        x, y = (x - x.mean()) / np.ptp(x), (y - y.mean()) / np.ptp(y)
        return bool(abs(x @ y) >= (1 - ALIKE) * np.sqrt((x @ x) * (y @ y)))
    pairs = pa.table({"value": column, "label": pa.array(labels)}).filter(pc.is_valid(column))
    n_pairs = pairs.group_by(["value", "label"]).aggregate([]).num_rows
    n_values, n_labels = (len(pc.unique(pairs[name])) for name in ("value", "label"))
    return bool(1 < n_pairs == n_values == n_labels < len(labels))


# --- dealing columns ----------------------------------------------------------------------------------


def deal_columns(whole: Whole, asked: Asked) -> dict[str, tuple[str, ...]]:
    """Return the columns of each party, the active party first. Only the seed decides, not the repeat.

    Raises:
        ConfigError: there are too few columns, or a party's column cannot be learnt from.
    """
    names = whole.features.column_names
    if isinstance(asked.parties, int):
        if len(names) < asked.parties:
            left = f"; it leaves out {join_names(list(whole.left_out), most=5)}" if whole.left_out else ""
            there = f"the table has {quantity(len(names), 'column')} to learn from"
            raise ConfigError(
                f"{there}, fewer than {asked.parties} parties{left}",
                hint=f"take --parties {len(names)}" if len(names) > 1 else "name a table with more columns",
            )
        order = np.random.default_rng([asked.seed, 0]).permutation(len(names))
        dealt = np.array_split(order, asked.parties)
        return {f"party-{i}": tuple(names[c] for c in sorted(part)) for i, part in enumerate(dealt, 1)}
    for party, columns in asked.parties.items():
        for column in columns:
            if column not in names:
                raise ConfigError(
                    f"--party {party}: the column {column} cannot be learnt from: {whole.left_out.get(column, '')}",
                    hint=f"correct it in the table, or leave {column} out",
                )
    return dict(asked.parties)
