"""A process of a job in shares is killed at any step: it is named, nobody is charged, and the same job ends well."""

from __future__ import annotations

from pathlib import Path

import pytest

from blindfit.algorithms.errors import BlindfitError
from tests.vertical.victim import OBEYED, ORDER, Order
from tests.walr_shares.killed import run
from tests.world.split_labels import Split


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
    house = Split(tmp_path)
    Order(label).give(house.root)
    with pytest.raises(BlindfitError, match=named):
        run(house, job)
    assert (house.root / OBEYED).exists()
    assert house.charges() == [0, 0]
    (house.root / ORDER).unlink()
    run(house, job)
    assert house.charges() == [1, 1]
