"""Write the report of a session, as the commands do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.systems import view


def write_report(session: JobSession, out: Path, parties_here: list[str]) -> Any:
    return view(session.job.protocol).write(session, out, parties_here)
