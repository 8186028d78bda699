"""A party's rows, converted from the Falcon code's file to a file that a dataset reads.

theirs  numbers without a header; the label last; rows at the same place in all files belong to the same person
ours    id,x1,x2,...,y   with r1, r2, ... as ids
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.files.private_files import open_private
from blindfit.parties.files.regular import other_kind

ID, LABEL = "id", "y"


@dataclass(frozen=True)
class Shape:
    rows: int
    features: int


def missing(source: Path) -> str:
    """Return the reason why a file cannot be read here; an empty text if it can."""
    try:
        other = other_kind(source)
    except OSError as error:
        return str(error.strerror)
    return f"this is {other}" if other else "" if os.access(source, os.R_OK) else "Permission denied"


def convert(source: Path, target: Path, *, has_label: bool, has_classes: bool) -> Shape:
    """Write a new file.

    Args:
        has_classes: True if labels are 0 and 1; False if they are any numbers.

    Raises:
        DataError: a value is wrong; names the file, the row and the column, and never the value.
    """
    with source.open(encoding="utf-8-sig", newline="") as read, open_private(target, "xb") as raw:
        written = io.TextIOWrapper(raw, "utf-8", newline="")
        out, shape = csv.writer(written, lineterminator="\n"), Shape(0, 0)
        for row, numbers in _rows(source, read):
            shape = Shape(row, len(numbers) - has_label)
            if row == 1:
                _check_width(source, shape)
                out.writerow([ID, *(f"x{n + 1}" for n in range(shape.features)), *([LABEL] if has_label else [])])
            if has_classes and numbers[-1] not in (0.0, 1.0):
                raise DataError(f"{source}: row {row}, column {len(numbers)}: the label is neither 0 nor 1")
            label = [str(int(numbers[-1])) if has_classes else repr(numbers[-1])] if has_label else []
            out.writerow([f"r{row}", *map(repr, numbers[: shape.features]), *label])
        written.detach()
    if not shape.rows:
        raise DataError(f"{source} has no rows")
    return shape


def _check_width(source: Path, shape: Shape) -> None:
    if shape.features < 1:
        raise DataError(f"{source}: row 1 has a label and no feature; a party needs at least one feature")


def _rows(source: Path, read: io.TextIOWrapper) -> Iterator[tuple[int, list[float]]]:
    """Yield each row with its number, from 1. All rows have the length of the first row."""
    row = width = 0
    try:
        for fields in filter(None, csv.reader(read)):
            row, width = row + 1, width or len(fields)
            if len(fields) != width:
                raise DataError(f"{source}: row {row} has {quantity(len(fields), 'number')}, but row 1 has {width}")
            yield row, [_number(source, row, n + 1, text) for n, text in enumerate(fields)]
    except UnicodeDecodeError:
        raise DataError(f"{source} is not UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{source}: after row {row}: {error}") from None


def _number(source: Path, row: int, column: int, text: str) -> float:
    try:
        number = float(text) if "_" not in text else math.nan  # Python reads 1_000
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        hint = "the Falcon code's files have no header" if row == 1 else ""
        raise DataError(f"{source}: row {row}, column {column} is not a finite number", hint=hint)
    return number
