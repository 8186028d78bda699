"""What a pre-flight finds, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.markup import escape
from rich.table import Table

from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.texts import printable
from blindfit.coordinator.terminal.wording import duration, quantity

Level = Literal["ok", "note", "warning", "refuses"]
HIGH_EPSILON = 4
SLOW_LINK_BYTES_PER_S = 100e6 / 8


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    about: str
    text: str

    @property
    def refuses(self) -> bool:
        return self.level == "refuses"


def catch_error(about: str, checks: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings, and the error that ended them as the last one."""
    try:
        yield from checks()
    except BlindfitError as error:
        yield Finding("refuses", about, str(error))


def judge_epsilon(epsilon: float) -> Iterator[Finding]:
    if epsilon > HIGH_EPSILON:
        text = f"{epsilon:g} promises little, as e^epsilon is large: set privacy.epsilon = 1, or less"
        yield Finding("warning", "privacy.epsilon", text)


def large_delta(delta: float, rows: int) -> Iterator[Finding]:
    """Differential privacy may then tell all of one row, and keep its promise."""
    if delta * rows >= 1:
        less = 10.0 ** -math.ceil(math.log10(rows + 1))
        yield Finding(
            "warning",
            "privacy.delta",
            f"{delta:g} is not below one in the number of rows: set privacy.delta = {less:g}",
        )


def on_the_wire(n_bytes: float) -> str:
    return f"about {n_bytes / 1e6:,.1f} MB to send: {duration(n_bytes / SLOW_LINK_BYTES_PER_S)} at 100 Mbit/s"


_MARKS = {
    "ok": "[green]ok[/]",
    "note": "[cyan]note[/]",
    "warning": "[yellow]warning[/]",
    "refuses": "[bold red]refuses[/]",
}


def table_of(findings: Iterable[Finding]) -> Table:
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        about, text = escape(printable(finding.about)), escape(printable(finding.text))  # of a file or a peer
        table.add_row(_MARKS[finding.level], f"[bold]{about}[/]", text)
    return table


def verdict_of(findings: Sequence[Finding]) -> str:
    """Return the last line of a pre-flight: whether a run would be refused, and how many warnings there are."""
    refusals, warnings = (sum(finding.level == level for finding in findings) for level in ("refuses", "warning"))
    refused = (
        f"{quantity(refusals, 'line')} above would refuse this job" if refusals else "nothing here refuses this job"
    )
    return refused + (f"; {quantity(warnings, 'warning')}" if warnings else "")
