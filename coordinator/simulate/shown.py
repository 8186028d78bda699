"""Write the results of a simulation as tables: for the terminal, for a program, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.text import Text

from blindfit.coordinator.simulate.recommendation import DIGITS, NAMES
from blindfit.coordinator.simulate.results import FIGURES, TIMES, Results, Row, Spread
from blindfit.coordinator.terminal.whole_table import WholeTable
from blindfit.coordinator.terminal.wording import count, duration, size

NOTHING = "\N{EN DASH}"
BITS = {"labels": "labels", "scores": "each row", "columns": "columns"}


def figures_shown(results: Results) -> list[str]:
    """Return the figures that any row or baseline has."""
    tables = [*(row.quality for row in results.rows), *results.baselines.values()]
    return [name for name in FIGURES if any(name in table for table in tables)]


def heads(results: Results) -> list[str]:
    """Return the headings of `cells`."""
    return [
        "system",
        "epsilon",
        *(NAMES[name] for name in figures_shown(results)),
        "bits revealed",
        "time",
        "sent",
        "messages",
        "memory",
        f"at {TIMES} x rows",
    ]


def cells(results: Results) -> Iterator[list[str]]:
    """Yield texts for the baselines, then for each system and setting that has a result."""
    shown = figures_shown(results)
    for name, table in results.baselines.items():
        yield [
            name,
            NOTHING,
            *(_text(table.get(f)) for f in shown),
            *[NOTHING] * (len(heads(results)) - 2 - len(shown)),
        ]
    for row in results.done:
        yield [
            row.system,
            NOTHING if row.epsilon is None else f"{row.epsilon:g}",
            *(_text(row.quality.get(name)) for name in shown),
            describe_bits(row),
            NOTHING if row.seconds is None else duration(row.seconds.mean),
            NOTHING if row.bytes_sent is None else size(row.bytes_sent),
            NOTHING if row.messages_sent is None else count(row.messages_sent),
            f"{max(row.peak_memory_mib.values(), default=0.0):,.0f} MiB",
            NOTHING if row.forecast_s is None else _forecast(row, row.forecast_s),
        ]


def _forecast(row: Row, seconds: float) -> str:
    return duration(seconds) if row.is_counted else f"at most {duration(seconds)}"


def failures(results: Results) -> list[tuple[str, str]]:
    """Return the name of each setting without a result, or without some of its runs, and the reason."""
    return [(row.name, _why(row)) for row in results.rows if row.why]


def _why(row: Row) -> str:
    why = f"{row.why}; {row.hint}" if row.hint else row.why
    return f"{row.failed} of {row.runs + row.failed} repeats ended without a result: {why}" if row.runs else why


def limits_passed(results: Results) -> list[tuple[str, str]]:
    """Return the name of each setting that passed a limit, and the limit."""
    return [(row.name, warning) for row in results.done for warning in row.warnings]


def describe_bits(row: Row) -> str:
    """Return what the run adds to the disclosure accounts; a dash if it adds nothing."""
    said = [f"{BITS[name]} {_bits(bits)}" for name, bits in row.bits.items() if bits]
    return ", ".join(said) or NOTHING


def _bits(bits: float) -> str:
    return f"{bits:,.0f}" if bits >= 10 else f"{bits:.1f}"


def terminal_table(results: Results) -> WholeTable:
    table = WholeTable(box=SIMPLE_HEAD)
    for place, head in enumerate(heads(results)):
        table.add_column(head, justify="left" if place == 0 else "right")
    for line in cells(results):
        table.add_row(*map(Text, line))
    return table


def document(results: Results) -> dict[str, Any]:
    return {
        "repeats": results.repeats,
        "baselines": {name: {f: asdict(spread) for f, spread in t.items()} for name, t in results.baselines.items()},
        "rows": [asdict(row) for row in results.rows],
    }


def records(results: Results) -> list[dict[str, Any]]:
    """Return one flat table for each baseline and setting; all have the same names."""
    shown = figures_shown(results)
    found = []
    for name, table in results.baselines.items():
        found.append({"system": name, **_flat_figures(table, shown), **dict.fromkeys(_flat_costs(Row(name, None)))})
    for row in results.rows:
        found.append({"system": row.system, **_flat_figures(row.quality, shown), **_flat_costs(row)})
    return found


def _flat_figures(table: Mapping[str, Spread], shown: Sequence[str]) -> dict[str, float | None]:
    flat: dict[str, float | None] = {}
    for name in shown:
        spread = table.get(name)
        flat[name] = None if spread is None else spread.mean
        flat[f"{name}_std"] = None if spread is None else spread.std
    return flat


def _flat_costs(row: Row) -> dict[str, Any]:
    return {
        "epsilon": row.epsilon,
        "delta": row.delta,
        "runs": row.runs,
        "failed": row.failed,
        "rows": row.rows,
        "bits_labels": row.bits.get("labels"),
        "bits_row_score": row.bits.get("scores"),
        "bits_columns": row.bits.get("columns"),
        "seconds": None if row.seconds is None else row.seconds.mean,
        "seconds_std": None if row.seconds is None else row.seconds.std,
        "bytes_sent": row.bytes_sent,
        "messages_sent": row.messages_sent,
        "peak_memory_mib": max(row.peak_memory_mib.values(), default=None),
        f"seconds_at_{TIMES}_times_the_rows": row.forecast_s,
        "protects": row.protects,
        "laid_out": row.laid_out,
        "why_no_result": row.why,
    }


def to_csv(results: Results) -> bytes:
    lines = records(results)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]) if lines else ["system"])
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def _text(spread: Spread | None) -> str:
    return NOTHING if spread is None else spread.text(DIGITS).replace(" ", "")
