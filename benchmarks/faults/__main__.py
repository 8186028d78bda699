"""Kill each party of each system at random moments and start it again: is the job resumed, or is its end clean?

    python -m benchmarks.faults [--moments N] [--seed N] [--systems NAME,NAME] [--json FILE] [--quick]

The jobs are those of the examples, rehearsed, so nothing is charged. Each runs once without a fault, to measure its
time. Then a random party is killed at a random moment of this time, and started again. An outcome is right if

- the job is resumed and ends with a report,
- the job was over, or the party had done its part, or
- the job ends, names the party that was killed, and prints what to do next.

`--quick` strikes each system once.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.kit import machine
from blindfit.algorithms.errors import BlindfitError
from blindfit.coordinator.job.job import Job, load_job
from blindfit.coordinator.jobs.run import run_here
from blindfit.coordinator.running.faults import Fault
from blindfit.coordinator.running.rehearsal import Rehearsal
from blindfit.coordinator.running.study import find_cause

EXAMPLES = Path(__file__).parents[2] / "examples"
SYSTEMS: Mapping[str, tuple[str, str]] = {  # what makes the data, and the job
    "walr": ("walr/prepare.py", "walr/job.toml"),
    "label-dp": ("label_dp/prepare.py", "label_dp/job.toml"),
    "dp-lr": ("dp_lr/prepare.py", "dp_lr/job.toml"),
    "taylor": ("taylor/prepare.py", "taylor/job.toml"),
    "falcon": ("taylor/prepare.py", "falcon/job.toml"),
}
MOMENTS = 5
RESUMED, OVER, CLEAN, WRONG = "resumed", "done without the party", "a clean end", "WRONG"


@dataclass(frozen=True)
class Struck:
    """The end of a job.

    Attributes:
        doing: action of the party at that moment.
        outcome: RESUMED, OVER, CLEAN or WRONG.
        after_epoch: epoch after which the job continued; None if it did not.
        error: reason why the job ended.
    """

    system: str
    fault: str
    doing: str
    outcome: str
    after_epoch: int | None
    error: str
    hint: str
    seconds: float


def study(system: str, job: Job[Any], out: Path, seconds: float, draw: random.Random) -> Struck:
    """Kill a party of a rehearsed job at a random moment, and start it again.

    Args:
        seconds: time of the job without a fault.
    """
    party = draw.choice(list(job.parties))
    fault = Fault.parse(f"restart {party} after {draw.uniform(0.0, seconds) + 0.001:.3f}s")
    error, began = None, time.monotonic()
    try:
        run_here(job, out, Console(file=io.StringIO()), talk="quiet", rehearsal=Rehearsal(), faults=[fault])
    except BlindfitError as caught:
        error = caught
    found = json.loads((out / "faults.json").read_text())
    return Struck(
        system,
        fault.text,
        _doing(found["timeline"], party),
        judge(found, party, error),
        _find_epoch(found["timeline"]),
        "" if error is None else error.message,
        "" if error is None else error.hint,
        time.monotonic() - began,
    )


def judge(found: Mapping[str, Any], party: str, error: BlindfitError | None) -> str:
    """Return the outcome of a job whose party was killed.

    Args:
        found: content of faults.json.
        error: reason why the job ended; None if it is done.
    """
    if error is None:
        return RESUMED if len(found["sessions"]) > 1 else OVER
    is_named = find_cause(error) == party
    stopped_in_check = "stopped during a check of its shares" in error.message  # after a restart, of falcon
    return CLEAN if stopped_in_check or (is_named and error.hint) else WRONG


def _doing(timeline: Sequence[Mapping[str, Any]], party: str) -> str:
    beginning = "at that moment: "
    said = [e["text"] for e in timeline if e["party"] == party and e["text"].startswith(beginning)]
    return said[0].removeprefix(beginning) if said else ""


def _find_epoch(timeline: Sequence[Mapping[str, Any]]) -> int | None:
    found = [re.fullmatch(r"goes on (?:after epoch (\d+)|from its first epoch)", entry["text"]) for entry in timeline]
    said = [match for match in found if match is not None]
    return int(said[0][1] or 0) if said else None


def time_of(job: Job[Any], out: Path) -> float:
    """Return how long the job takes without a fault, in seconds, from its proposal to its end."""
    written = run_here(job, out, Console(file=io.StringIO()), talk="quiet", rehearsal=Rehearsal())
    return float(written.content["seconds"]["job"])


def _study_all(systems: Sequence[str], moments: int, seed: int, console: Console) -> list[Struck]:
    found = []
    with tempfile.TemporaryDirectory(prefix="blindfit-faults-") as folder:
        for system in systems:
            prepare, path = SYSTEMS[system]
            subprocess.run([sys.executable, EXAMPLES / prepare], check=True, stdout=subprocess.DEVNULL)
            job, draw = load_job(EXAMPLES / path), random.Random(f"{seed} {system}")
            seconds = time_of(job, Path(folder, system))
            console.print(f"{system}: {seconds:.1f} s without a fault", highlight=False)
            for number in range(moments):
                struck = study(system, job, Path(folder, f"{system}-{number}"), seconds, draw)
                console.print(f"  {struck.fault}: {struck.outcome}", highlight=False)
                found.append(struck)
    return found


def table_of(found: Sequence[Struck]) -> Table:
    table = Table("System", "Fault", "The party did", "Outcome", "Went on after", "Error")
    for one in found:
        epoch = "" if one.after_epoch is None else f"epoch {one.after_epoch}"
        table.add_row(one.system, one.fault, one.doing, one.outcome, epoch, one.error)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=MOMENTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    console = Console(width=200)
    found = _study_all(asked.systems.split(","), 1 if asked.quick else asked.moments, asked.seed, console)
    console.print(table_of(found))
    wrong = sum(one.outcome == WRONG for one in found)
    console.print(f"{len(found) - wrong} of {len(found)} as promised", highlight=False)
    if asked.json:
        content = {"machine": machine.describe(), "seed": asked.seed, "struck": [asdict(one) for one in found]}
        asked.json.write_text(json.dumps(content, indent=2) + "\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
