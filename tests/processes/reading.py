"""Output of a finished command."""

from __future__ import annotations

import subprocess


def error_line(finished: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of the error; a hint may follow it, and nothing else."""
    lines = finished.stderr.splitlines()
    assert lines, f"no error was printed; exit code {finished.returncode}, output {finished.stdout[-500:]}"
    assert lines[0].startswith("error: "), finished.stderr
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: ")), finished.stderr
    return lines[0]
