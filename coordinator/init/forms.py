"""The form of a csv file, as its bytes and texts show it: separator, encoding, numbers and dates."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from blindfit.algorithms.columns.values import BadValue, to_days
from blindfit.parties.data.csv_file import SNIFFED_BYTES, UTF_16_MARKS
from blindfit.parties.data.dialect import PLAIN, CsvDialect, Decimal, Encoding, Thousands
from blindfit.parties.data.written_values import read_dates

SEPARATORS = (",", ";", "\t", "|")
SNIFFED_ROWS = 50
SAMPLE = 1000  # plain numbers of a column: enough to see that another form does not fit them
NUMBERS = tuple(
    CsvDialect(decimal=decimal, thousands=thousands)
    for thousands, decimal in itertools.product(get_args(Thousands), get_args(Decimal))
    if decimal != thousands
)
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S")
DAYS_FIRST = [f"%d{mark}%m{mark}{year}{clock}" for mark in "./-" for year in ("%Y", "%y") for clock in CLOCKS]
MONTHS_FIRST = [
    f"%m{mark}%d{mark}{year}{clock}"
    for mark in "/-"
    for year in ("%Y", "%y")
    for clock in (*CLOCKS, " %I:%M %p", " %I:%M:%S %p")
]
YEARS_FIRST = ["%Y%m%d", *(f"%Y{mark}%m{mark}%d{clock}" for mark in "/." for clock in CLOCKS)]
NAMED = ["%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d%b%Y", "%d. %B %Y", "%d %B %Y", "%B %d, %Y", "%b %d, %Y"]
DATES = (*YEARS_FIRST, *NAMED, *DAYS_FIRST, *MONTHS_FIRST)


def guess_file(path: Path) -> CsvDialect:
    """Return the separator and the encoding of a csv file; those of a plain file if no others fit better."""
    try:
        encoding = _guess_encoding(path)
        with path.open(encoding=encoding, errors="replace", newline="") as file:
            head = file.read(SNIFFED_BYTES)
    except OSError:  # the reader reports the error
        return PLAIN
    return replace(PLAIN, encoding=encoding, separator=_guess_separator(head.lstrip("\ufeff")))


def _guess_encoding(path: Path) -> Encoding:
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(SNIFFED_BYTES), b"")
        first = next(blocks, b"")
        if first.startswith(UTF_16_MARKS):
            return "utf-16"
        decoder, is_cp1252 = codecs.getincrementaldecoder("utf-8")(), True
        rest = itertools.chain([first], blocks)
        try:
            for block in rest:
                is_cp1252 = is_cp1252 and not any(octet in block for octet in (0x81, 0x8D, 0x8F, 0x90, 0x9D))
                decoder.decode(block)
            decoder.decode(b"", final=True)
            return "utf-8"
        except UnicodeDecodeError:
            others = (octet in block for block in rest for octet in (0x81, 0x8D, 0x8F, 0x90, 0x9D))
            return "cp1252" if is_cp1252 and not any(others) else "latin-1"


def _guess_separator(head: str) -> str:
    """Return the character that splits most rows into the number of fields of the header."""

    def quality(mark: str) -> tuple[float, int]:
        try:
            rows = list(itertools.islice(filter(None, csv.reader(io.StringIO(head), delimiter=mark)), SNIFFED_ROWS))
        except csv.Error:
            return 0.0, 0
        widths = Counter(len(row) for row in rows[1:-1] or rows[1:])  # the last row may be cut off
        fields = len(rows[0]) if rows else 0
        return (widths[fields] / max(1, widths.total()), fields) if fields > 1 else (0.0, 0)

    return max(SEPARATORS, key=quality)


# --- numbers and dates --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forms:
    """The forms of a table's numbers and dates.

    Attributes:
        dialect: dialect of the csv file.
        numbers: forms in which all texts with a digit are numbers, by column of texts.
        dates: forms in which all texts with a digit are dates, by column of texts; ISO 8601 is None.
        unclear: forms of numbers that fit equally well; empty if the dialect's form is clear.
    """

    dialect: CsvDialect = PLAIN
    numbers: Mapping[str, Sequence[CsvDialect]] = field(default_factory=dict)
    dates: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    unclear: Sequence[CsvDialect] = ()

    @property
    def numbers_form(self) -> CsvDialect:
        """Form of numbers, without any other part."""
        return CsvDialect(decimal=self.dialect.decimal, thousands=self.dialect.thousands)


def guess_forms(texts: Mapping[str, Any], dialect: CsvDialect) -> Forms:
    """Return the forms in which a csv file has its numbers and dates.

    Args:
        texts: values of each column, as texts.
        dialect: separator and encoding.
    """
    numbers = {name: found for name, column in texts.items() if (found := forms_of_numbers(column))}
    scores = Counter(form for found in numbers.values() for form in found)
    best = max(NUMBERS, key=lambda form: scores[form])  # the first of equally good ones
    rivals = [form for form in NUMBERS if scores[form] == scores[best] > 0 and _differs(form, best)]
    if best.converts_numbers and rivals:
        unclear: Sequence[CsvDialect] = (best, *rivals)
        best = PLAIN
    else:
        unclear = ()
    plain = {name for name, found in numbers.items() if best in found}
    dates = {n: likely for n, column in texts.items() if n not in plain and (likely := forms_of_dates(column))}
    days = Counter(form for found in dates.values() for form in found)
    form = max((None, *DATES), key=lambda one: days[one])
    if form is not None and any(_disagree(texts, dates, form, one) for one in days if days[one] == days[form]):
        form = None  # nothing distinguishes the day from the month
    made = replace(dialect, decimal=best.decimal, thousands=best.thousands, date_format=form)
    return Forms(made, numbers, dates, unclear)


def _differs(form: CsvDialect, other: CsvDialect) -> bool:
    """Return True if one form reads as thousands what the other reads as a fraction."""
    return form.thousands == other.decimal or other.thousands == form.decimal


def _disagree(
    texts: Mapping[str, Any], dates: Mapping[str, Sequence[str | None]], form: str, other: str | None
) -> bool:
    """Return True if two forms read a column as different dates."""
    both = [_with_digits(texts[name]) for name, found in dates.items() if form in found and other in found]
    return other is not None and any(
        not read_dates(column, _of(form)).equals(read_dates(column, _of(other))) for column in both
    )


def forms_of_numbers(column: Any) -> list[CsvDialect]:
    """Return the forms in which all texts with a digit are numbers; an empty list if no text has a digit."""
    texts = _with_digits(column)
    if not len(texts):
        return []
    is_plain = pc.match_substring_regex(texts, PLAIN.number_pattern)
    looked_at = pa.concat_arrays([texts.filter(pc.invert(is_plain)), texts.filter(is_plain).slice(0, SAMPLE)])
    return [form for form in NUMBERS if pc.all(pc.match_substring_regex(looked_at, form.number_pattern)).as_py()]


def forms_of_dates(column: Any) -> list[str | None]:
    """Return the forms in which all texts with a digit are dates. ISO 8601 is None, and the only form where it fits."""
    texts = _with_digits(column)
    if not len(texts):
        return []
    if _fits(lambda: to_days(texts)):
        return [None]
    head = texts.slice(0, 1)
    likely = [form for form in DATES if _reads(form, head)]
    return [form for form in likely if _reads(form, texts)]


def find_two_forms(column: Any) -> tuple[int, int] | None:
    """Return two rows with dates that no common form fits; None if the texts before the second are not dates."""
    texts = _with_digits(column).slice(0, SAMPLE)
    common = _forms_of_one(texts.slice(0, 1)) if len(texts) else []
    for place in range(1, len(texts)):
        if not common:
            return None
        text = texts.slice(place, 1)
        left = [form for form in common if _reads(form, text)]
        if not left and _forms_of_one(text):
            trimmed = pc.utf8_trim_whitespace(column)
            return pc.index(trimmed, texts[0]).as_py(), pc.index(trimmed, texts[place]).as_py()
        common = left
    return None


def _forms_of_one(text: Any) -> list[str | None]:
    """Return the forms in which one text is a date; ISO 8601 is None."""
    return [form for form in (None, *DATES) if _reads(form, text)]


def _reads(form: str | None, texts: Any) -> bool:
    return _fits(lambda: to_days(texts) if form is None else read_dates(texts, _of(form)))


def _with_digits(column: Any) -> Any:
    """Return the texts of a column that have a digit, without repeats."""
    texts = pc.unique(pc.utf8_trim_whitespace(column.drop_null()))
    return texts.filter(pc.match_substring_regex(texts, "[0-9]"))


@cache
def _of(date_format: str) -> CsvDialect:
    return CsvDialect(date_format=date_format)


def _fits(convert: Callable[[], Any]) -> bool:
    try:
        convert()
    except BadValue:
        return False
    return True
