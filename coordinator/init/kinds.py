"""The kind of a column, and the reason why `blindfit init` leaves it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from blindfit.algorithms.columns import values
from blindfit.algorithms.columns.record import MISSING_WORDS
from blindfit.algorithms.columns.values import BadValue
from blindfit.algorithms.errors import DataError
from blindfit.coordinator.init.forms import Forms, find_two_forms, forms_of_dates, forms_of_numbers
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.data.columns import Floats, to_levels
from blindfit.parties.data.dialect import CsvDialect
from blindfit.parties.data.encoding import MOST_LEVELS
from blindfit.parties.data.origin import Origin
from blindfit.parties.data.written_values import read_dates, write_plain_numbers
from blindfit.parties.tables import toml_of

MOST_MISFITS = 10
MOST_WORDS = 5
FIRST_ROWS = 1000
OF_PANDAS = re.compile(r"|Unnamed: [0-9]+(_level_[0-9]+)?|index|level_[0-9]+|__index_level_[0-9]+__|rownames")


@dataclass(frozen=True)
class Kind:
    """Kind of a column.

    Attributes:
        name: number, date, category, or other for a column that is left out.
        lacks_values: True if a row has no value.
        why: reason why it is left out, and what to do to keep it.
    """

    name: str
    lacks_values: bool = False
    why: str = ""


@dataclass(frozen=True)
class Judge:
    """Finder of the kinds of one table's columns.

    Args:
        is_csv: True if the table is a csv file, which has `missing_words` and the options of its form.
        lists_features: True if the party file lists the features, because a column has no name.
    """

    origin: Origin
    is_csv: bool
    forms: Forms
    lists_features: bool = False

    @property
    def _keep(self) -> str:
        return "add the column to features" if self.lists_features else "take the column out of except"

    def kind_of(self, column: Any, name: str) -> Kind:
        if not name:
            return _leave_out("often it is the index of a data frame; to keep it, give it a name in the table")
        column = values.plain(column)
        valid = _blank_as_null(column)
        if valid.null_count == len(valid):
            return _leave_out("no row has a value")
        try:
            if (found := self._number(column, name)) or (found := self._date(column, name)):
                return found
            return self._category(column, name)
        except DataError as error:
            return _leave_out(why_unreadable(error, self.origin))

    # --- numbers

    def to_numbers(self, column: Any) -> Floats:
        """Return numbers; raise BadValue if a value is not a finite number in the table's form."""
        dialect = self.forms.dialect
        if dialect.converts_numbers and values.is_text(column.type):
            column = write_plain_numbers(column, dialect)
        return values.to_numbers(column)

    def _number(self, column: Any, name: str) -> Kind | None:
        try:
            numbers = self.to_numbers(column)
        except BadValue as error:
            return self._number_of_another_form(column, name) or self._almost(column, "numbers", error)
        lacks = bool(np.isnan(numbers).any())
        if not lacks and (numbers == numbers[0]).all():
            return _leave_out(f"every row has the same value, {_quote_value(column, 0)}")
        if not lacks and _counts_rows(numbers, name):
            return _leave_out(f"it numbers the rows, as the index of a data frame does; to keep it, {self._keep}")
        return Kind("number", lacks)

    def _number_of_another_form(self, column: Any, name: str) -> Kind | None:
        if not values.is_text(column.type):
            return None
        forms = self.forms.numbers.get(name, ()) if self.is_csv else forms_of_numbers(column)
        if not forms or self.forms.numbers_form in forms:
            return None
        row = _first_misfit(column, self.to_numbers)
        says = f"{self._place(row)} has {_quote_value(column, row)}"
        if not self.is_csv:
            return _leave_out(f"{says}; to keep it, write numbers as 1234.5")
        unclear = [form for form in self.forms.unclear if form in forms]
        ways = " or ".join(_options(form) for form in unclear or forms[:1])
        if unclear:
            return _leave_out(f"{says}, and its form is not clear; to keep it, set {ways}, and {self._keep}")
        return _leave_out(f"{says}: it needs {ways}, but other columns do not; write all numbers in one form")

    def _almost(self, column: Any, what: str, error: BadValue) -> Kind | None:
        """Return why a column is left out if all but a few of its values are numbers or dates; else None."""
        if error.row is None:
            return None
        convert = self.to_numbers if what == "numbers" else self.to_days
        misfits = _misfits(column, convert)
        if misfits is None:
            return None
        words = list(dict.fromkeys(str(column[row].as_py()).strip() for row in misfits))
        others = len(column) - len(misfits) - _blank_as_null(column).null_count
        more = f" and {quantity(len(misfits) - 1, 'more row')}" if len(misfits) > 1 else ""
        place = self._place(misfits[0])
        says = f"{place} has {_quote_value(column, misfits[0])}{more}, and the other {others:,} values are {what}"
        if error.problem.startswith("the number is infinite"):
            says = f"{place} is infinite"
        return _leave_out(f"{says}; {self._way_to_keep(words)}, and {self._keep}")

    def _way_to_keep(self, words: Sequence[str]) -> str:
        if not self.is_csv or len(words) > MOST_WORDS:
            return "to keep it, correct these values"
        listed = toml_of([*MISSING_WORDS, *words])
        return f"to keep it, correct the values, or read them as missing: missing_words = {listed}"

    def in_plain_form(self, column: Any) -> Any:
        """Return a column whose numbers are written as 1234.5; any other column unchanged."""
        if not (self.forms.dialect.converts_numbers and values.is_text(column.type)):
            return column
        try:
            return write_plain_numbers(column, self.forms.dialect)
        except BadValue:
            return column

    def remarks(self, rows: Any, numbers: Sequence[str]) -> Iterator[str]:
        """Yield sentences about places where a csv file may have another meaning.

        Args:
            numbers: columns that are read as numbers.
        """
        dialect = self.forms.dialect
        if not self.is_csv:
            return
        if dialect.encoding in ("cp1252", "latin-1"):
            yield f"the file is not UTF-8 and is read as {dialect.encoding}: check how it shows letters with accents"
        for name in numbers:
            column = rows.column(name).combine_chunks()
            such = f"column {name} has numbers such as {_quote_value(column, 0)}"
            if not dialect.converts_numbers and dialect.separator == ";" and _may_be_thousands(column):
                yield f'{such}: if they are thousands, set thousands = "." and decimal = ","'
            if "%Y%m%d" in forms_of_dates(column):
                yield f'{such}: if they are dates, name it in dates and set date_format = "%Y%m%d"'

    # --- dates

    def to_days(self, column: Any) -> Floats:
        """Return days; raise BadValue if a value is not a date in the table's form."""
        dialect = self.forms.dialect
        if dialect.date_format is not None and values.is_text(column.type):
            column = read_dates(column, dialect)
        return values.to_days(column)

    def _date(self, column: Any, name: str) -> Kind | None:
        try:
            days = self.to_days(column)
        except BadValue as error:
            if not values.is_text(column.type):
                return None
            found = self._date_of_another_form(column, name) or self._almost(column, "dates", error)
            return found or self._dates_of_several_forms(column)
        lacks = bool(np.isnan(days).any())
        if not lacks and (days == days[0]).all():
            return _leave_out(f"every row has the same value, {_quote_value(column, 0)}")
        return Kind("date", lacks)

    def _date_of_another_form(self, column: Any, name: str) -> Kind | None:
        forms = self.forms.dates.get(name, ()) if self.is_csv else forms_of_dates(column)
        if not forms or forms == [None]:
            if forms and self.forms.dialect.date_format:
                return _leave_out(
                    "its dates are ISO 8601, but those of other columns are not; write all dates in one form"
                )
            return None
        if (row := _first_misfit(column, self.to_days)) is None:
            return None
        says = f"{self._place(row)} has {_quote_value(column, row)}, a date that is not ISO 8601"
        if not self.is_csv:
            return _leave_out(f"{says}; to keep it, write it as 2024-05-31 or in a column of a date type")
        options = " or ".join(f"date_format = {toml_of(str(form))}" for form in forms)
        if self.forms.dialect.date_format is None:
            why = f"{says}, and nothing shows which number is the day"
            return _leave_out(f"{why}; to keep it, set {options}, name it in dates and {self._keep}")
        other = toml_of(self.forms.dialect.date_format)
        return _leave_out(f"{says}: it fits {options}, and other dates {other}; write all dates in one form")

    def _dates_of_several_forms(self, column: Any) -> Kind | None:
        if (rows := find_two_forms(column)) is None:
            return None
        one, other = (f"{self._place(row)} has {_quote_value(column, row)}" for row in rows)
        return _leave_out(f"{one}, and {other}: dates in several forms; to keep it, write all dates in one form")

    # --- categories

    def _category(self, column: Any, name: str) -> Kind:
        texts = to_levels(column, name=name, origin=self.origin)
        levels = pc.unique(texts.drop_null()).to_pylist()
        if len(levels) == 1 and not texts.null_count:
            return _leave_out(f"every row has the same value, {_quote(levels[0])}")
        if len(levels) <= min(MOST_LEVELS, max(2, len(texts) // 5)):
            return Kind("category", texts.null_count > 0)
        key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_of(name)
        why = (
            f"it has {len(levels):,} texts, too many to find levels in the rows; to keep it, name the levels that "
            f"matter, categories = {{ {key} = {toml_of(levels[:2])[:-1]}, ...] }}, and {self._keep}"
        )
        return _leave_out(why)

    # --- places

    def _place(self, row: int | None) -> str:
        return self.origin.locate(1 + (row or 0))


def why_unreadable(problem: DataError, origin: Origin) -> str:
    """Return why a column cannot be read, and what to do to keep it."""
    says = problem.message.removeprefix(f"{origin.dataset}: ")
    return f"{says}; to keep it, {problem.hint}" if problem.hint else says


def _leave_out(why: str) -> Kind:
    return Kind("other", why=why)


def _options(form: CsvDialect) -> str:
    return " and ".join(f"{option} = {toml_of(value)}" for option, value in form.options().items())


def _counts_rows(numbers: Floats, name: str) -> bool:
    """Return True if a column numbers the rows in order, or has the name of an index and no value twice."""
    n = len(numbers)
    if np.array_equal(numbers, np.arange(n)) or np.array_equal(numbers, np.arange(1, n + 1)):
        return True
    is_whole = bool((numbers == np.floor(numbers)).all())
    return OF_PANDAS.fullmatch(name) is not None and is_whole and len(np.unique(numbers)) == n


def _misfits(column: Any, convert: Callable[[Any], Floats]) -> list[int] | None:
    """Return the rows that cannot be converted, if they are few or have few different words; else None."""
    has_few_levels = len(pc.unique(column.drop_null())) <= min(MOST_LEVELS, max(2, len(column) // 5))
    too_many_words = 1 if has_few_levels else MOST_WORDS + 1
    if _misfits_of(column.slice(0, FIRST_ROWS), convert, too_many_words) is None:  # then all rows have too many as well
        return None
    found = _misfits_of(column, convert, too_many_words)
    if found is None:
        return None
    return found if len(column) - _blank_as_null(column).null_count > 2 * len(found) else None


def _misfits_of(column: Any, convert: Callable[[Any], Floats], too_many_words: int) -> list[int] | None:
    found: list[int] = []
    rest, n_words = column, 0
    while (row := _first_misfit(rest, convert)) is not None:
        same = pc.fill_null(pc.equal(column, column[row]), False)
        found += np.flatnonzero(same.to_numpy(zero_copy_only=False)).tolist()
        n_words += 1
        if len(found) > min(MOST_MISFITS, max(1, len(column) // 10)) and n_words >= too_many_words:
            return None
        rest = pc.if_else(same, None, rest)
    return sorted(found)


def _first_misfit(column: Any, convert: Callable[[Any], Floats]) -> int | None:
    try:
        convert(column)
    except BadValue as error:
        return error.row
    return None


def _blank_as_null(column: Any) -> Any:
    if not values.is_text(column.type):
        return column
    return pc.if_else(pc.equal(pc.binary_length(pc.utf8_trim_whitespace(column)), 0), None, column)


def _quote_value(column: Any, row: int | None) -> str:
    return _quote(str(column[row or 0].as_py()).strip())


def _quote(text: str) -> str:
    """Return a value in the form in which its owner may see it at a terminal."""
    short = text if len(text) <= 40 else f"{text[:37]}..."
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short) + '"'


def _may_be_thousands(column: Any) -> bool:
    fractions = column.filter(pc.fill_null(pc.match_substring(column, "."), False))
    return (
        len(fractions) > 0
        and pc.all(pc.match_substring_regex(fractions, r"^\s*[+-]?[1-9][0-9]{0,2}\.[0-9]{3}\s*$")).as_py()
    )


def words_for_missing(texts: Any, known: Any, name: str) -> Iterator[str]:
    """Yield sentences about words of a csv file that count as missing values in a column of texts.

    Args:
        texts: column as the file has it.
        known: column as it is read.
    """
    words = texts.filter(known.is_null()).drop_null()
    for found in pc.value_counts(words).to_pylist():
        word, count = found["values"].strip(), found["counts"]
        if word:
            yield (
                f"column {name} has {word} in {quantity(count, 'row')}, which is read as a missing value; if it "
                "is a value, leave it out of missing_words, or name the column in categories"
            )
