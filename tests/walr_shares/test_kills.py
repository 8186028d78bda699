"""A process of a job in shares is killed at any step: it is named, nobody is charged, and the same job ends well."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from rich.console import Console

from blindfit.algorithms.errors import BlindfitError
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running import launcher
from blindfit.coordinator.running.driving import drive
from tests.command import Forked
from tests.vertical.victim import OBEYED, ORDER, Order
from tests.walr_blocks.house import House as HouseOfHolders
from tests.walr_split.house import House


def run(house: House | HouseOfHolders, job: str) -> None:
    """Every party a process, forked from one that has imported all; each ends itself where an order says so."""
    loaded = load_job(house.root / job, ["timeouts.step_s=15", "timeouts.reconnect_s=4"])
    command = [sys.executable, "-m", "tests.vertical.victim", str(house.root)]
    forks = SimpleNamespace(**{**vars(subprocess), "Popen": Forked})
    with (
        mock.patch.object(launcher, "subprocess", forks),
        launcher.launch(loaded, house.root, house.root / "out", command) as launched,
    ):
        try:
            drive(loaded, launched, Console(quiet=True))
        except BlindfitError as error:
            raise launched.lost_process(error) from None


@pytest.mark.parametrize(
    ("job", "label", "named"),
    [
        ("shares.toml", "send Correction", "dealer"),
        pytest.param("shares.toml", "receive Correction", "east", marks=pytest.mark.soak),
        pytest.param("shares.toml", "receive Challenge", "shop", marks=pytest.mark.soak),
        ("shares.toml", "send OpenedShares", "east|west"),
        ("job.toml", "send Counted", "east|west"),
    ],
)
def test_the_lost_party_is_named_and_nobody_is_charged(tmp_path: Path, job: str, label: str, named: str) -> None:
    house = House(tmp_path)
    Order(label).give(house.root)
    with pytest.raises(BlindfitError, match=named):
        run(house, job)
    assert (house.root / OBEYED).exists()
    assert house.charges() == [0, 0]
    (house.root / ORDER).unlink()
    run(house, job)
    assert house.charges() == [1, 1]
