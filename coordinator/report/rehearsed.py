"""The stamp and the warnings in the report of a rehearsal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from blindfit.algorithms.rehearsal import FIELD, STAMP, WARNINGS
from blindfit.coordinator.running.launcher import limits_in_log
from blindfit.coordinator.running.session import JobSession


def describe_rehearsal(session: JobSession, out: Path, parties_here: Sequence[str]) -> dict[str, Any]:
    """Return the stamp, and the limits that the job passes with a warning; nothing for a real job."""
    if session.job.stage is None:
        return {}
    warnings = [f"{name}: {sentence}" for name in parties_here for sentence in limits_in_log(out, name)]
    return {FIELD: STAMP, **({WARNINGS: warnings} if warnings else {})}


def rehearsal_lines(content: Mapping[str, Any]) -> Iterator[Text]:
    """Yield the warnings and the stamp of a report, for the terminal."""
    for warning in content.get(WARNINGS, ()):
        yield Text.assemble(("! ", "bold yellow"), warning)
    if stamp := content.get(FIELD):
        yield Text(stamp, style="bold yellow")
