"""A process that is charged for a release and dies before it remembers any label; forked by tests."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from blindfit.algorithms.privacy.label_mechanisms import MechanismSettings, fitting
from blindfit.algorithms.privacy.ledger import Budget
from blindfit.parties.measurement import release_labels
from blindfit.parties.store.database import Writes
from tests.measurement.house import House
from tests.release_labels.house import GRID, LAPLACE, Counter, make_labels

RP = MechanismSettings("rp-with-prior", GRID, 1.0)
BUDGET = Budget(3.5, 1e-6)
STEPS: dict[str, tuple[MechanismSettings, Any, str]] = {
    "estimates": (RP, fitting, "estimate_prior"),
    "draws": (LAPLACE, release_labels, "freeze"),
    "remembers": (LAPLACE, Writes, "end_label_release"),
}


def dies(directory: Path, where: str) -> None:
    """Kill the process before it does this step."""

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    _release(directory, where, die)


def hangs(directory: Path, where: str) -> None:
    """Wait until somebody kills the process; a file shows that it waits."""

    def hang(*_: Any) -> None:
        (directory / "hangs").touch()
        time.sleep(600)

    _release(directory, where, hang)


def _release(directory: Path, where: str, instead: Any) -> None:
    settings, *place = STEPS[where]
    setattr(*place, instead)
    Counter(House(directory, {"prices": make_labels(directory)}, BUDGET)).ask(settings=settings)
