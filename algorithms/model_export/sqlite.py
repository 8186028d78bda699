"""Convert the columns of an SQLite table as a scorer of the model does."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from blindfit.algorithms.model_export.formula import Input
from blindfit.algorithms.model_export.sql_names import WHITE_SPACE, levels_of_numbers, levels_of_truths, quote

REFUSED = "9e999"
LARGEST_WHOLE, FACTOR_BITS = 2**53, 62
LIMITS = (sys.float_info.max, 1e100, 2e100, 1e150, 1e300, 2e300)  # of values, where a neighbour does as well
HOUR = "({0} GLOB '[01][0-9]' OR {0} GLOB '2[0-3]')"


class SQLite:
    ignores_case = True
    needs = "For SQLite 3.35 or newer with its mathematical functions."

    def number(self, value: float) -> str:
        """Return whole numbers whose quotient is the double: SQLite rounds some decimals to a neighbour of it."""
        numerator, denominator = abs(value).as_integer_ratio()
        if denominator == 1 and (numerator < LARGEST_WHOLE or abs(value) in LIMITS):
            return f"({value!r})" if value < 0 else repr(value)
        power = (numerator & -numerator).bit_length() - denominator.bit_length()
        odd = f"{'-' if value < 0 else ''}{numerator >> max(0, power)}"
        factors = [2**FACTOR_BITS] * (abs(power) // FACTOR_BITS) + [2 ** (abs(power) % FACTOR_BITS)]
        operator = "*" if power > 0 else "/"
        return f"(CAST({odd} AS REAL){''.join(f' {operator} {factor}' for factor in factors if factor > 1)})"

    def text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def convert(self, source: Input, name: str) -> Sequence[Mapping[str, str]]:
        column, kind = f"t.{quote(source.name)}", source.column.kind
        first = {f"{name} type": f"typeof({column})", f"{name} given": column}
        if kind == "category":
            return [first | {f"{name} text": self._trim(column)}, {name: self._level(source, name)}]
        if kind == "date":
            return [first | {f"{name} text": self._trim(column)}, *_date(name)]
        return [first | {f"{name} text": f"lower({self._trim(column)})"}, *_number(name)]

    def _trim(self, column: str) -> str:
        spaces = f"char({', '.join(str(ord(c)) for c in WHITE_SPACE)})"
        return f"CASE WHEN typeof({column}) = 'text' THEN trim({column}, {spaces}) END"

    def _level(self, source: Input, name: str) -> str:
        text, given, column = f"t.{quote(f'{name} text')}", f"t.{quote(f'{name} given')}", source.column
        known = self._list(sorted(column.known)) if column.known else "('')"
        numbers = {f"{number}": level for number, level in levels_of_numbers(column).items()}
        truths = {{"true": "1", "false": "0"}[word]: level for word, level in levels_of_truths(column).items()}
        whens = "".join(f" WHEN {n} THEN {self.text(level)}" for n, level in (truths | numbers).items())
        of_number = f"CASE {given}{whens} ELSE CAST({given} AS TEXT) END" if whens else f"CAST({given} AS TEXT)"
        return (
            f"CASE t.{quote(f'{name} type')} WHEN 'null' THEN NULL WHEN 'text' THEN CASE WHEN {text} = '' THEN NULL "
            f"WHEN {text} IN {known} THEN {text} WHEN {text} GLOB '*[^ -~]*' THEN '' ELSE {text} END "
            f"WHEN 'blob' THEN '' ELSE {of_number} END"
        )

    def _list(self, texts: Iterable[str]) -> str:
        return f"({', '.join(map(self.text, texts))})"


def _number(name: str) -> list[dict[str, str]]:
    """Read a text as NUMBER of sql_names.py: SQLite has no regular expressions, and takes '12 apples' for 12."""
    text, unsigned, power = (f"t.{quote(f'{name} {what}')}" for what in ("text", "unsigned", "power"))
    mantissa, kind, given = (f"t.{quote(f'{name} {what}')}" for what in ("mantissa", "type", "given"))
    e = f"instr({unsigned}, 'e')"
    is_mantissa = f"{mantissa} GLOB '*[0-9]*' AND {mantissa} NOT GLOB '*[^0-9.]*' AND {mantissa} NOT GLOB '*.*.*'"
    is_power = f"{power} IS NULL OR ({power} <> '' AND {power} NOT GLOB '*[^0-9]*')"
    in_text = (
        f"CASE WHEN {text} IN ('', 'nan', '+nan', '-nan') THEN NULL WHEN {text} = 'true' THEN 1.0 "
        f"WHEN {text} = 'false' THEN 0.0 WHEN {is_mantissa} AND ({is_power}) THEN CAST({text} AS REAL) "
        f"ELSE {REFUSED} END"
    )
    return [
        {f"{name} unsigned": f"CASE WHEN substr({text}, 1, 1) IN ('+', '-') THEN substr({text}, 2) ELSE {text} END"},
        {
            f"{name} mantissa": f"CASE WHEN {e} > 0 THEN substr({unsigned}, 1, {e} - 1) ELSE {unsigned} END",
            f"{name} power": f"CASE WHEN {e} = 0 THEN NULL WHEN substr({unsigned}, {e} + 1, 1) IN ('+', '-') "
            f"THEN substr({unsigned}, {e} + 2) ELSE substr({unsigned}, {e} + 1) END",
        },
        {
            name: f"CASE {kind} WHEN 'null' THEN NULL WHEN 'text' THEN {in_text} WHEN 'blob' THEN {REFUSED} "
            f"ELSE CAST({given} AS REAL) END"
        },
    ]


def _date(name: str) -> list[dict[str, str]]:
    """Read a text in ISO 8601, as values.MOMENT is read."""
    text, day, rest = (f"t.{quote(f'{name} {what}')}" for what in ("text", "day", "rest"))
    time, zone, kind = (f"t.{quote(f'{name} {what}')}" for what in ("time", "zone", "type"))
    width = (
        f"CASE WHEN {rest} GLOB '*Z' THEN 1 WHEN {rest} GLOB '*[-+][0-9][0-9]:[0-9][0-9]' THEN 6 "
        f"WHEN {rest} GLOB '*[-+][0-9][0-9][0-9][0-9]' THEN 5 WHEN {rest} GLOB '*[-+][0-9][0-9]' THEN 3 ELSE 0 END"
    )
    four, two = "[0-9]" * 4, "[0-9]" * 2
    is_day = f"{day} GLOB '{four}-{two}-{two}' AND {day} >= '0001-01-01' AND date({day}, '+0 days') = {day}"
    sixty = ":[0-5][0-9]"
    is_time = (
        f"{HOUR.format(f'substr({time}, 1, 2)')} AND (length({time}) = 2 OR substr({time}, 3) GLOB '{sixty}' "
        f"OR substr({time}, 3) GLOB '{sixty}{sixty}' OR (length({time}) BETWEEN 10 AND 18 "
        f"AND substr({time}, 3, 7) GLOB '{sixty}{sixty}.' AND substr({time}, 10) NOT GLOB '*[^0-9]*'))"
    )
    of_zone = f"replace(substr({zone}, 4), ':', '')"
    is_zone = (
        f"({zone} IN ('', 'Z') OR ({HOUR.format(f'substr({zone}, 2, 2)')} "
        f"AND ({of_zone} = '' OR {of_zone} GLOB '[0-5][0-9]')))"
    )
    is_rest = f"({rest} = '' OR (substr({rest}, 1, 1) IN ('T', ' ') AND {is_time} AND {is_zone}))"
    seconds = (
        f"CAST(substr({time}, 1, 2) AS INTEGER) * 3600 + CAST(substr({time}, 4, 2) AS INTEGER) * 60 "
        f"+ CAST(substr({time}, 7, 2) AS INTEGER)"
    )
    offset = (
        f"CASE substr({zone}, 1, 1) WHEN '+' THEN 60000000 WHEN '-' THEN -60000000 ELSE 0 END "
        f"* (CAST(substr({zone}, 2, 2) AS INTEGER) * 60 + CAST({of_zone} AS INTEGER))"
    )
    moment = (
        f"CAST(julianday({day}) - 2440587.5 AS INTEGER) * 86400000000 + ({seconds}) * 1000000 "
        f"+ CAST(substr(substr({time}, 10) || '000000', 1, 6) AS INTEGER) - {offset}"
    )
    return [
        {f"{name} day": f"substr({text}, 1, 10)", f"{name} rest": f"substr({text}, 11)"},
        {
            f"{name} time": f"substr({rest}, 2, length({rest}) - 1 - ({width}))",
            f"{name} zone": f"CASE WHEN ({width}) = 0 THEN '' ELSE substr({rest}, -({width})) END",
        },
        {
            name: f"CASE WHEN {kind} = 'null' OR {text} = '' THEN NULL WHEN {is_day} AND {is_rest} "
            f"THEN CAST({moment} AS REAL) / 86400000000.0 ELSE {REFUSED} END"
        },
    ]
