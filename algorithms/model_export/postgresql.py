"""Convert the columns of a PostgreSQL table as a scorer of the model does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from blindfit.algorithms.columns.spelling import UNSEEN
from blindfit.algorithms.model_export.formula import Input
from blindfit.algorithms.model_export.sql_names import WHITE_SPACE, levels_of_numbers, levels_of_truths, quote

REFUSED = "'Infinity'::float8"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$"
LARGEST, SMALLEST = "1.797693134862315807e308", "2.5e-324"  # of what is rounded to a finite double that is not 0
NUMERIC = "('smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision')"
#: A date, and what may follow: hour, minute, second, fraction, sign of the zone, its hours, minutes and seconds.
MOMENT = (
    r"^([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(?:[T ]([01][0-9]|2[0-3])(?::([0-5][0-9])(?::([0-5][0-9])"
    r"(?:\.([0-9]{1,9}))?)?)?(?:Z|([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?(?::([0-5][0-9]))?)?)?$"
)


class PostgreSQL:
    ignores_case = False
    needs = "For PostgreSQL 13 or newer with a database in UTF8, and DateStyle ISO."

    def number(self, value: float) -> str:
        return f"({value!r}::float8)" if value < 0 else f"{value!r}::float8"

    def text(self, value: str) -> str:
        """Return a literal that every setting of standard_conforming_strings reads alike."""
        return f"E'{value.replace(chr(92), chr(92) * 2).replace(chr(39), chr(39) * 2)}'"

    def convert(self, source: Input, name: str) -> Sequence[Mapping[str, str]]:
        column, kind = f"t.{quote(source.name)}", source.column.kind
        written = f"CAST({column} AS text)"
        if kind == "category":
            seen = f"regexp_replace({written}, {self.text(_UNSEEN)}, '', 'g')"
            first = {f"{name} type": f"CAST(pg_typeof({column}) AS text)"}
            return [
                first | {f"{name} text": self._trim(f"normalize({seen}, NFC)")},
                {name: self._level(source, name)},
            ]
        if kind == "date":
            return [{f"{name} text": self._trim(written)}, *self._date(name)]
        return [{f"{name} text": f"lower({self._trim(written)})"}, {name: self._number(name)}]

    def _trim(self, text: str) -> str:
        return f"btrim({text}, {self.text(WHITE_SPACE)})"

    def _number(self, name: str) -> str:
        text = f"t.{quote(f'{name} text')}"
        return (
            f"CASE WHEN {text} IS NULL OR {text} IN ('', 'nan', '+nan', '-nan') THEN NULL "
            f"WHEN {text} = 'true' THEN 1::float8 WHEN {text} = 'false' THEN 0::float8 "
            f"WHEN {text} ~ {self.text(NUMBER)} THEN {self._double(text)} ELSE {REFUSED} END"
        )

    def _double(self, text: str) -> str:
        """Return a double, without the error of a number that is too large or too small."""
        number = f"abs(CAST({text} AS numeric))"
        return (
            f"CASE WHEN {text} ~ 'e[+]?0*[1-9][0-9]{{3,}}$' THEN {REFUSED} "
            f"WHEN {text} ~ 'e-0*[1-9][0-9]{{3,}}$' THEN 0::float8 WHEN {number} > {LARGEST} THEN {REFUSED} "
            f"WHEN {number} < {SMALLEST} THEN 0::float8 ELSE CAST({text} AS float8) END"
        )

    def _level(self, source: Input, name: str) -> str:
        text, kind = f"t.{quote(f'{name} text')}", f"t.{quote(f'{name} type')}"
        is_number = f"{kind} IN {NUMERIC} AND lower({text}) ~ {self.text(NUMBER)}"
        numbers = "".join(
            f" WHEN {is_number} AND CAST({text} AS numeric) = {number} THEN {self.text(level)}"
            for number, level in levels_of_numbers(source.column).items()
        )
        truths = "".join(
            f" WHEN {kind} = 'boolean' AND {text} = '{word}' THEN {self.text(level)}"
            for word, level in levels_of_truths(source.column).items()
        )
        missing = f"{text} = '' OR ({kind} IN {NUMERIC} AND {text} = 'NaN')"
        return f"CASE WHEN {missing} THEN NULL{numbers}{truths} ELSE {text} END"

    def _date(self, name: str) -> list[dict[str, str]]:
        text, parts = f"t.{quote(f'{name} text')}", f"t.{quote(f'{name} parts')}"
        year, month, day, hour, minute, second, _, _, ahead, minutes, seconds = (
            f"COALESCE(CAST(({parts})[{place}] AS bigint), 0)" if place not in (7, 8) else "" for place in range(1, 12)
        )
        leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
        days = f"CASE WHEN {month} = 2 THEN CASE WHEN {leap} THEN 29 ELSE 28 END WHEN {month} IN (4, 6, 9, 11) THEN 30"
        is_no_day = f"{parts} IS NULL OR {year} = 0 OR {day} > {days} ELSE 31 END"
        date = f"(make_date({year}::int, {month}::int, {day}::int) - DATE '1970-01-01')"
        fraction = f"CAST(rpad(left(COALESCE(({parts})[7], ''), 6), 6, '0') AS bigint)"
        offset = f"CASE ({parts})[8] WHEN '-' THEN -1 ELSE 1 END * ({ahead} * 3600 + {minutes} * 60 + {seconds})"
        clock = f"{hour} * 3600 + {minute} * 60 + {second} - {offset}"
        moment = f"{date} * 86400000000 + ({clock}) * 1000000 + {fraction}"
        return [
            {f"{name} parts": f"regexp_match({text}, {self.text(MOMENT)})"},
            {
                name: f"CASE WHEN {text} IS NULL OR {text} = '' THEN NULL WHEN {is_no_day} THEN {REFUSED} "
                f"ELSE CAST({moment} AS float8) / 86400000000::float8 END"
            },
        ]


_UNSEEN = re.sub(r"\\x\{(\w+)\}", lambda found: f"\\U{max(1, int(found[1], 16)):08X}", UNSEEN)
