"""Write the files of parties and jobs, and their tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def toml_of(content: Mapping[str, Any], place: str = "") -> str:
    """Return TOML with one line for each option, as people write it: tests edit such lines."""
    tables = {key: value for key, value in content.items() if isinstance(value, Mapping)}
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in content.items() if key not in tables]
    text = f"[{place}]\n{''.join(lines)}" if place and (lines or not tables) else "".join(lines)
    return text + "".join(toml_of(table, f"{place}.{key}" if place else key) for key, table in tables.items())


def write_csv(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns, each a list or an array. Texts have no quotes: tests edit such lines."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True))
