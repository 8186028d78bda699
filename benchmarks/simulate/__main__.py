"""Measure `blindfit simulate` with all systems on a synthetic table: time by part, and how well the forecast holds.

    python -m benchmarks.simulate [--rows 5000] [--columns 20] [--parties 3] [--json FILE] [--quick]

The table has standard normal columns and a label of 0 and 1 that follows a logistic model. All systems run once, at
epsilon 1, with the defaults of `blindfit init`. The forecast is checked on the same machine: a table with a tenth of
the rows forecasts the time of the whole one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import blindfit
from benchmarks.kit import machine

TENTH = 10
QUICK_ROWS = 2000


@dataclass(frozen=True)
class Part:
    """Seconds of one part of a simulation; `forecast_s` from a table with a tenth of the rows."""

    name: str
    seconds: float
    forecast_s: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--parties", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="few rows: to see that it runs")
    options = parser.parse_args()
    rows = QUICK_ROWS if options.quick else options.rows
    small = {row.system: row for row in simulate(rows // TENTH, options.columns, options.parties)[0]}
    study, total_s = simulate(rows, options.columns, options.parties)
    parts = [
        Part(row.system, row.seconds.mean, small[row.system].forecast_s if row.system in small else None)
        for row in study
        if row.seconds
    ]
    parts.append(Part("reading, cutting, baselines, scoring, page", total_s - sum(part.seconds for part in parts)))
    parts.append(Part("all", total_s))
    show(rows, options.columns, parts)
    if options.json:
        asked = {"rows": rows, "columns": options.columns, "parties": options.parties}
        result: dict[str, Any] = {"machine": machine.describe(), **asked, "parts": [asdict(part) for part in parts]}
        options.json.write_text(json.dumps({**result, "study": dict(study.document)}, indent=2) + "\n")


def simulate(rows: int, columns: int, parties: int) -> tuple[blindfit.Simulation, float]:
    """Return the simulation of a table of this size, and its seconds."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        study = blindfit.simulate(
            table_of(rows, columns), label="label", parties=parties, out=Path(folder) / "out", progress=False
        )
        return study, time.monotonic() - began


def table_of(rows: int, columns: int) -> pd.DataFrame:
    draw = np.random.default_rng(1)
    features = draw.normal(size=(rows, columns))
    scores = features @ (draw.normal(size=columns) / np.sqrt(columns / 6))
    label = (draw.random(rows) < 1 / (1 + np.exp(-scores))).astype(int)
    return pd.DataFrame({**{f"x{place}": column for place, column in enumerate(features.T)}, "label": label})


def show(rows: int, columns: int, parts: list[Part]) -> None:
    table = Table("part", "seconds", f"forecast from a tenth of {rows:,} rows", "forecast / measured", box=None)
    for part in parts:
        forecast = "" if part.forecast_s is None else f"{part.forecast_s:.1f}"
        ratio = "" if part.forecast_s is None else f"{part.forecast_s / part.seconds:.2f}"
        table.add_row(part.name, f"{part.seconds:.1f}", forecast, ratio)
    console = Console()
    console.print(f"{rows:,} rows, {columns} columns", highlight=False)
    console.print(table)


if __name__ == "__main__":
    main()
