"""Parts that all demos share: options, data if the folder has none, and one job between processes on this machine."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console

console = Console(width=min(Console().width, 110))
GAIN_KEPT = "gain kept: 0% is as good as the first row, 100% as good as the last row"


def begin(here: Path, about: str, a_file_of_its_data: str, *, data_of: Path | None = None) -> argparse.Namespace:
    """Read the options, make the data of the folder `here` if it has none, and remove the state of its parties.

    Every demo starts with an empty ledger. Never remove the ledger of a real party.

    Args:
        data_of: folder of another example, if the demo takes its data.
    """
    data_of = data_of or here
    parser = argparse.ArgumentParser(prog=f"python -m examples.{here.name}.demo", description=about)
    runs = Path("runs") / here.name
    parser.add_argument("--out", type=Path, default=runs, help="reports (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="option of the job")
    options = parser.parse_args()
    if not (data_of / "data" / a_file_of_its_data).exists():
        subprocess.run([sys.executable, data_of / "prepare.py"], check=True)
    forget(here)
    return options


def forget(here: Path) -> None:
    """Remove the state of the parties in `here`."""
    shutil.rmtree(here / "state", ignore_errors=True)


def run_job(here: Path, out: Path, overrides: list[str], *, quietly: bool = False) -> None:
    """Run the job by the command that a person would type. End the demo if the job fails."""
    job = os.path.relpath(here / "job.toml")
    command = [sys.executable, "-m", "blindfit", "run", job, "--out", str(out)]
    for override in overrides:
        command += ["--set", override]
    shown = " ".join(["blindfit", *command[3:]])
    console.print(f"[dim]$ {shown}[/]", highlight=False)
    finished = subprocess.run(command, check=False, stdout=subprocess.DEVNULL if quietly else None)
    if finished.returncode:
        sys.exit(finished.returncode)
