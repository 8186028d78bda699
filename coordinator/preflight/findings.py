"""The findings of a pre-flight, and their display."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.markup import escape
from rich.table import Table

from blindfit.algorithms.errors import BlindfitError
from blindfit.algorithms.texts import printable
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.job.network import Line, bits_in_words
from blindfit.coordinator.terminal.wording import duration, quantity

Level = Literal["ok", "note", "warning", "refuses"]
HIGH_EPSILON = 4
SLOW_LINK = Line(latency_s=0.04, bits_per_s=100e6)  # from one organisation to another


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of `check`.

    Attributes:
        level: "ok", "note", "warning" or "refuses".
        about: option, party or topic that the finding is about.
        text: finding in words, with the next step if there is one.

    Example:
        >>> finding = blindfit.check("job.toml", privacy={"epsilon": 20.0})[0]
        >>> finding.level in ("ok", "note", "warning", "refuses")
        True
    """

    level: Level
    about: str
    text: str

    @property
    def refuses(self) -> bool:
        """True if `run` would refuse the job for this reason."""
        return self.level == "refuses"


def catch_error(about: str, checks: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings, and last the error that ended them."""
    try:
        yield from checks()
    except BlindfitError as error:
        yield Finding("refuses", about, str(error))


def judge_epsilon(epsilon: float) -> Iterator[Finding]:
    if epsilon > HIGH_EPSILON:
        text = f"{epsilon:g} promises little, as e^epsilon is large: set privacy.epsilon = 1, or less"
        yield Finding("warning", "privacy.epsilon", text)


def large_delta(delta: float, rows: int) -> Iterator[Finding]:
    """Yield a warning about a large delta. Such a promise may hold although all of one row is revealed."""
    if delta * rows >= 1:
        less = 10.0 ** -math.ceil(math.log10(rows + 1))
        yield Finding(
            "warning",
            "privacy.delta",
            f"{delta:g} is not below one in the number of rows: set privacy.delta = {less:g}",
        )


def line_of(job: Job[Any]) -> Line:
    """Return the link for forecasts: the job's [network], with a slow link's values if it has none."""
    own = Line() if job.network is None else job.network.line()
    bits_per_s = own.bits_per_s or SLOW_LINK.bits_per_s
    return Line(own.latency_s or SLOW_LINK.latency_s, own.jitter_s, bits_per_s)


def on_the_wire(n_bytes: float, job: Job[Any]) -> str:
    bits_per_s = line_of(job).bits_per_s or math.inf
    return f"about {n_bytes / 1e6:,.1f} MB to send: {duration(n_bytes * 8 / bits_per_s)} at {bits_in_words(bits_per_s)}"


_MARKS = {
    "ok": "[green]ok[/]",
    "note": "[cyan]note[/]",
    "warning": "[yellow]warning[/]",
    "refuses": "[bold red]refuses[/]",
}


def table_of(findings: Iterable[Finding]) -> Table:
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        about, text = escape(printable(finding.about)), escape(printable(finding.text))  # texts of a file or a peer
        table.add_row(_MARKS[finding.level], f"[bold]{about}[/]", text)
    return table


def verdict_of(findings: Sequence[Finding]) -> str:
    """Return the last line of a pre-flight: whether a run would be refused, and the number of warnings."""
    refusals, warnings = (sum(finding.level == level for finding in findings) for level in ("refuses", "warning"))
    refused = (
        f"{quantity(refusals, 'line')} above would refuse this job" if refusals else "nothing here refuses this job"
    )
    return refused + (f"; {quantity(warnings, 'warning')}" if warnings else "")
