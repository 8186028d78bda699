"""Names and texts that both dialects of SQL write alike, and levels that are numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from blindfit.algorithms.columns.record import TableColumn

WHITE_SPACE = "".join(c for c in map(chr, range(0x3001)) if c.isspace())
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def quote(name: str) -> str:
    """Return the name of a column or table in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def levels_of_numbers(column: TableColumn) -> Mapping[Decimal, str]:
    """Return the level that a number stands for, as a scorer finds it: 1 and 1.0 are the level 1."""
    found: dict[Decimal, list[str]] = {}
    for level in sorted(column.known):
        if NUMBER.fullmatch(level):
            found.setdefault(Decimal(level), []).append(level)
    chosen = {}
    for number, levels in found.items():
        usual = [level for level in levels if level == _usual(number)]
        if usual or len(levels) == 1:
            chosen[number] = (usual or levels)[0]
    return chosen


def levels_of_truths(column: TableColumn) -> Mapping[str, str]:
    """Return the level that true and false stand for each: the only one that is this word in any case."""
    found = {}
    for word in ("true", "false"):
        levels = [level for level in sorted(column.known) if level.lower() == word]
        if word in levels or len(levels) == 1:
            found[word] = word if word in levels else levels[0]
    return found


def _usual(number: Decimal) -> str:
    return str(int(number)) if number == int(number) else repr(float(number))
