"""Jobs whose parties are killed."""

from __future__ import annotations

import sys

from rich.console import Console

from blindfit.algorithms.errors import BlindfitError
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running import launcher
from blindfit.coordinator.running.driving import drive
from tests.command import forked_parties
from tests.world.holders import Holders
from tests.world.split_labels import Split


def run(house: Split | Holders, job: str) -> None:
    """Run each party as a process, forked from one that has imported all; each ends itself where an
    order asks for it.
    """
    loaded = load_job(house.root / job, ["timeouts.step_s=15", "timeouts.reconnect_s=4"])
    command = [sys.executable, "-m", "tests.vertical.victim", str(house.root)]
    with (
        forked_parties(),
        launcher.launch(loaded, house.root / "out", command) as launched,
    ):
        try:
            drive(loaded, launched, Console(quiet=True))
        except BlindfitError as error:
            raise launched.find_lost_process(error) from None
