"""Sheets of Excel workbooks (.xlsx), read forward through openpyxl, which only these need."""

from __future__ import annotations

import datetime as dt
import warnings
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import pyarrow as pa

from blindfit.algorithms.columns import objects
from blindfit.algorithms.columns.values import BadValue
from blindfit.algorithms.errors import DataError
from blindfit.parties.data.columns import locate_errors
from blindfit.parties.data.local_files import file_fingerprint, readable
from blindfit.parties.data.origin import PLAIN_KINDS, ColumnKinds, Origin, Tolerates, near_names, nothing, or_nulls

OLD_FORMAT = b"\xd0\xcf\x11\xe0"  # beginning of .xls files, and of workbooks with a password
NO_FORMULA_VALUE = "the formula has no value"

warnings.filterwarnings("ignore", module="openpyxl")  # about styles and drawings, which hold no rows

Cells = tuple[Any, ...]


class _Error(str):
    """An error of Excel, such as #DIV/0!, in the place of a value."""


@dataclass(frozen=True)
class ExcelFile:
    """One sheet, whose first row has the names. A row without any value does not count, like an empty line of a csv
    file.

    Every batch has a column in one Arrow type, although its cells may have several types.

    Args:
        kinds: kinds in which the columns are read.
        mixed: columns whose cells have several types; they are read as texts.
        tolerates: test of a column's name: True if the column may have a problem.
    """

    path: Path
    origin: Origin
    sheet: str
    names: tuple[str, ...]
    has_formulas: bool = False
    kinds: ColumnKinds = PLAIN_KINDS
    mixed: frozenset[str] = frozenset()
    tolerates: Tolerates = nothing
    booleans: frozenset[str] = frozenset()
    problems: dict[str, DataError] = field(default_factory=dict)

    @classmethod
    def open(
        cls, path: Path, origin: Origin, sheet: str, kinds: ColumnKinds = PLAIN_KINDS, tolerates: Tolerates = nothing
    ) -> ExcelFile:
        """Open a sheet.

        Raises:
            DataError: openpyxl is not installed, the file is not an Excel file, or there is no such sheet.
        """
        _refuse_other_formats(path, origin)
        with _sound(origin), _workbook(path, origin) as book:
            sheets = [one.title for one in book.worksheets]
        if sheet not in sheets and (sheet or len(sheets) != 1):
            problem = f"there is no sheet {sheet}" if sheet else f"it has {len(sheets)} sheets"
            hint = f"end `{origin.url}` with ?sheet=NAME: {near_names(sheet, sheets, 'sheets')}"
            raise origin.error(problem, hint=hint)
        with _sound(origin), zipfile.ZipFile(path) as parts:
            has_formulas = any(_has_formula(parts, name) for name in parts.namelist() if "worksheets/" in name)
        found = cls(path, origin, sheet or sheets[0], (), has_formulas, kinds, tolerates=tolerates)
        (header,) = list(islice(found._rows(), 1)) or [(0, ())]
        names = ["" if value is None else str(value) for value in header[1]]
        while names and not names[-1]:  # cells that only have a format
            names.pop()
        if not names:
            raise origin.error("the sheet is empty", hint="it needs a row of names, and rows")
        return replace(found, names=tuple(names), origin=replace(origin, locate=found._place_of_row))

    def fingerprint(self) -> str:
        return file_fingerprint(self.path)

    def as_typed(self, texts: frozenset[str]) -> ExcelFile:
        """Return the same sheet. A column is read as the type that all of its cells have; a mixed column is read as
        texts.

        A column that cannot be read is recorded as a problem of that column and raises no error.

        Args:
            texts: columns that are read as text, also if they have another type.
        """
        cells = list(zip(*(row for _, row in islice(self._rows(), 1, None)), strict=True)) or [()] * len(self.names)
        types = {name: objects.common_type(column) for name, column in zip(self.names, cells, strict=False)}
        words = frozenset(name for name, kind in types.items() if pa.types.is_string(kind))
        dates = frozenset(name for name, kind in types.items() if pa.types.is_timestamp(kind)) - texts
        return replace(
            self,
            kinds=ColumnKinds(texts | words, dates),
            mixed=words - texts,
            tolerates=lambda name: name not in texts,
            problems={},
        )

    def without_mixed(self, names: Collection[str]) -> ExcelFile:
        """Return the sheet with the problems of those mixed columns that a dataset could not read as categories."""
        found = replace(self, mixed=frozenset(), tolerates=lambda _: True, problems={})
        for _ in found.arrow_batches([name for name in self.names if name in self.mixed and name in names], 1 << 16):
            pass
        return found

    def arrow_batches(self, names: Sequence[str], batch_rows: int) -> Iterator[Any]:
        places = [self.names.index(name) for name in names]
        rows, first_row = islice(self._rows(), 1, None), 1
        while batch := [cells for _, cells in islice(rows, batch_rows)]:
            found = zip(names, places, strict=True)
            columns = [self._tolerant(name, [row[place] for row in batch], first_row) for name, place in found]
            yield pa.RecordBatch.from_arrays(columns, list(names))
            first_row += len(batch)

    def _tolerant(self, name: str, values: Sequence[Any], first_row: int) -> Any:
        nulls = pa.nulls(len(values), objects.arrow_type(self.kinds.of(name)))
        return or_nulls(name, partial(self._to_arrow, name, values, first_row), nulls, self.problems, self.tolerates)

    def _to_arrow(self, name: str, values: Sequence[Any], first_row: int) -> Any:
        kind = self.kinds.of(name)
        with locate_errors(self.origin, name, first_row, hint=self.origin.advice.no_number(name)):
            for row, value in enumerate(values):
                if isinstance(value, _Error):
                    problem = NO_FORMULA_VALUE if value == NO_FORMULA_VALUE else f"the cell holds an error, {value}"
                    raise BadValue(problem, row, hint="correct it in Excel, and save the file there")
            if name in self.mixed:
                values = [None if value is None else str(value) for value in values]
            return objects.MAKERS[kind](values)

    def _rows(self) -> Iterator[tuple[int, Cells]]:
        """Yield each row that has a value, with its number in the sheet, as long as the row of names."""
        with readable(self.origin), _sound(self.origin), _workbook(self.path, self.origin) as book:
            rows = _all_rows(book[self.sheet])
            if not self.has_formulas:
                yield from self._with_values((row, row) for row in rows)
            else:
                with _workbook(self.path, self.origin, formulas=True) as other:
                    yield from self._with_values(zip(rows, _all_rows(other[self.sheet]), strict=True))

    def _with_values(self, rows: Iterable[tuple[Cells, Cells]]) -> Iterator[tuple[int, Cells]]:
        """Yield each row that has a value, with its number.

        Args:
            rows: the cells of each row: once with their values, once with their formulas.
        """
        width = len(self.names) or None
        for number, (row, written) in enumerate(rows, start=1):
            cells = tuple(_value(cell, formula) for cell, formula in zip(row, written, strict=True))[:width]
            if any(value is not None for value in cells):
                yield number, cells + (None,) * ((width or 0) - len(cells))

    def _place_of_row(self, row: int) -> str:
        with suppress(DataError):
            for number, _ in islice(self._rows(), row, row + 1):
                return f"row {row} (row {number} of the sheet)"
        return f"row {row}"


def _all_rows(sheet: Any) -> Iterator[Cells]:
    """Return the rows without use of the sheet's recorded size, which some programs write wrongly."""
    sheet.reset_dimensions()
    rows: Iterator[Cells] = sheet.iter_rows()
    return rows


def _value(cell: Any, written: Any) -> Any:
    value = cell.value
    if cell.data_type == "e":
        return _Error(value)
    if value is None and written.data_type == "f":
        return _Error(NO_FORMULA_VALUE)
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date()
    return None if isinstance(value, str) and not value.strip() else value


def _has_formula(parts: zipfile.ZipFile, name: str) -> bool:
    with parts.open(name) as part:
        before = b""
        while block := part.read(1 << 20):
            if b"<f>" in before + block or b"<f " in before + block:
                return True
            before = block[-2:]
    return False


@contextmanager
def _workbook(path: Path, origin: Origin, *, formulas: bool = False) -> Iterator[Any]:
    try:
        import openpyxl
    except ImportError:
        hint = "run `pip install 'openpyxl>=3.1.2'`"
        raise origin.error("the package that reads Excel files is not installed", hint=hint) from None
    with path.open("rb") as file, closing(openpyxl.load_workbook(file, read_only=True, data_only=not formulas)) as book:
        yield book  # from an open file: openpyxl checks the ending of a path


def _refuse_other_formats(path: Path, origin: Origin) -> None:
    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith(OLD_FORMAT):
        hint = "save it as .xlsx without a password"
        raise origin.error("this is an old .xls workbook, or one with a password", hint=hint)
    if not head.startswith(b"PK"):
        raise origin.error("this is not an Excel workbook", hint=f"save it as .xlsx, or correct `{origin.url}`")


@contextmanager
def _sound(origin: Origin) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, ParseError, KeyError, ValueError, TypeError, AttributeError, EOFError) as error:
        problem = "this is not an Excel workbook, or it is damaged"
        raise origin.error(problem, hint="open it in Excel and save it again") from error
