"""Form of a csv file: its separator, its encoding, and the form of its numbers and dates."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

from blindfit.algorithms.errors import ConfigError

Encoding = Literal["utf-8", "utf-16", "latin-1", "cp1252"]
Decimal = Literal[".", ","]
Thousands = Literal["", ".", ",", " ", "'"]

#: Characters that people and programs write in the place of a thousands separator.
ALIKE = {" ": " \u00a0\u202f", "'": "'\u2019"}

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}

_DAY, _YEAR = "day", "year"
_FIELDS = {  # directive -> (group, pattern where a character stands between two numbers, pattern of a fixed width)
    "d": (_DAY, "[0-9]{1,2}", "[0-9]{2}"),
    "m": ("month", "[0-9]{1,2}", "[0-9]{2}"),
    "b": ("name", "[A-Za-z]{3}", "[A-Za-z]{3}"),
    "B": ("name", "[A-Za-z]{3,9}", "[A-Za-z]{3,9}"),
    "Y": (_YEAR, "[0-9]{4}", "[0-9]{4}"),
    "y": ("short", "[0-9]{2}", "[0-9]{2}"),
    "H": ("hour", "[0-9]{1,2}", "[0-9]{2}"),
    "I": ("half", "[0-9]{1,2}", "[0-9]{2}"),
    "p": ("noon", "[AaPp][Mm]", "[AaPp][Mm]"),
    "M": ("minute", "[0-9]{2}", "[0-9]{2}"),
    "S": ("second", "[0-9]{2}", "[0-9]{2}"),
    "f": ("fraction", "[0-9]{1,6}", "[0-9]{6}"),
}
_KNOWN = ", ".join(f"%{letter}" for letter in _FIELDS)
_AS = 'write it such as "%d.%m.%Y"'


@dataclass(frozen=True)
class CsvDialect:
    """Form of a csv file. The default is a plain file: UTF-8, commas, 1234.5 and 2024-05-31.

    Attributes:
        separator: character between two fields.
        decimal: character before the fraction of a number.
        thousands: character between groups of three digits; empty if there is no such character.
        encoding: encoding of the file; a byte order mark is not part of the first name.
        date_format: form of the columns in `dates`, in the directives of strptime; None for ISO 8601.

    Raises:
        ConfigError: an option has no meaning, or two options contradict each other.
    """

    separator: str = ","
    decimal: Decimal = "."
    thousands: Thousands = ""
    encoding: Encoding = "utf-8"
    date_format: str | None = None

    def __post_init__(self) -> None:
        if len(self.separator) != 1 or not _may_separate(self.separator):
            raise ConfigError(
                f"separator {self.separator!a} is not one character that can stand between fields",
                hint=r'take "," or ";" or "|" or "\t"',
            )
        if self.decimal == self.thousands:
            raise ConfigError(
                f'decimal and thousands are both "{self.decimal}"',
                hint="name the one that stands before the fraction as decimal, and remove or correct thousands",
            )
        if self.date_format is not None:
            _ = self.date_pattern

    @property
    def converts_numbers(self) -> bool:
        """Return whether numbers are written in another form than 1234.5."""
        return (self.decimal, self.thousands) != (".", "")

    @cached_property
    def grouping(self) -> str:
        """Pattern of the characters that separate thousands; empty if numbers have no such character."""
        return f"[{re.escape(ALIKE.get(self.thousands, self.thousands))}]" if self.thousands else ""

    @cached_property
    def number_pattern(self) -> str:
        """Pattern of the texts that are numbers; RE2 and Python's `re` read it alike."""
        whole = rf"(?:[1-9][0-9]{{0,2}}(?:{self.grouping}[0-9]{{3}})+|[0-9]+)" if self.thousands else "[0-9]+"
        point = re.escape(self.decimal)
        return rf"^[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?$"

    @cached_property
    def date_pattern(self) -> str:
        """Pattern of the texts that are dates in `date_format`, with a group for each part.

        Raises:
            ConfigError: the format has no day.
        """
        return _pattern_of(self.date_format or "")

    @property
    def example_number(self) -> str:
        """The number 1234.5 in this form."""
        return f"1{self.thousands}234{self.decimal}5"

    def options(self) -> dict[str, str]:
        """Return the options that differ from those of a plain file, by name."""
        return {
            one.name: value for one in fields(self) if (value := getattr(self, one.name)) not in (one.default, None)
        }

    def in_words(self) -> str:
        """Return a description of the form, such as `utf-8, semicolons between fields, numbers as 1.234,5, dates as
        ...`.
        """
        separator = SEPARATORS.get(self.separator, ascii(self.separator))
        dates = f"dates as {self.date_format or '2024-05-31'}"
        return f"{self.encoding}, {separator} between fields, numbers as {self.example_number}, {dates}"


def _may_separate(character: str) -> bool:
    return character.isascii() and not character.isalnum() and character not in '"\r\n\0.+-'


def _pattern_of(date_format: str) -> str:
    parts = re.findall(r"%(.?)|([^%]+)", date_format, re.DOTALL)
    pattern, found = "", list[str]()
    for place, (letter, text) in enumerate(parts):
        if text or letter == "%":
            pattern += re.escape(text or "%")
            continue
        if letter not in _FIELDS:
            raise ConfigError(f"date_format: %{letter} is not supported", hint=f"it may hold {_KNOWN} and %%")
        group, loose, fixed = _FIELDS[letter]
        near = [one for one in (place - 1, place + 1) if 0 <= one < len(parts)]
        touches = any(parts[one][0] in _FIELDS and parts[one][0] not in ("", "p", "b", "B") for one in near)
        pattern += f"(?P<{group}>{fixed if touches else loose})"
        found.append(group)
    _check_fields(date_format, found)
    return f"^{pattern}$"


def _check_fields(date_format: str, found: list[str]) -> None:
    if len(set(found)) < len(found):
        raise ConfigError(f"date_format {date_format!a} has one part of a date twice", hint=_AS)
    wanted = (("a day: %d", {_DAY}), ("a month: %m", {"month", "name"}), ("a year: %Y", {_YEAR, "short"}))
    for what, groups in wanted:
        if len(groups & set(found)) != 1:
            raise ConfigError(f"date_format {date_format!a} needs {what}", hint=_AS)
    clock = set(found) - {_DAY, "month", "name", _YEAR, "short"}
    hours = ({"hour"}, {"half", "noon"})
    if clock and clock & {"hour", "half", "noon"} not in hours:
        raise ConfigError(
            f"date_format {date_format!a} has minutes without a clear hour",
            hint="write %H, or %I with %p, before minutes",
        )
    if ({"second", "fraction"} & clock and "minute" not in clock) or ("fraction" in clock and "second" not in clock):
        raise ConfigError(
            f"date_format {date_format!a} leaves out minutes or seconds", hint="write %H:%M, %H:%M:%S or %H:%M:%S.%f"
        )


PLAIN = CsvDialect()
OPTIONS = tuple(one.name for one in fields(CsvDialect))
