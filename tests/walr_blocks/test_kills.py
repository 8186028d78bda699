"""A process of a job of several parties with columns is killed at any step: it is named, and the same job ends well,
paid once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from blindfit.algorithms.errors import BlindfitError
from tests.vertical.victim import OBEYED, ORDER, Order
from tests.walr_shares.killed import run
from tests.world.holders import Holders


@pytest.mark.parametrize(
    ("label", "named", "spent"),
    [
        pytest.param("send BlockGrid", "shop", 0, marks=pytest.mark.soak),
        ("send WeightRows", "bank|chain", 0),
        ("send BlockFit", "meter", 1),
    ],
)
def test_the_lost_party_is_named_and_the_release_is_paid_for_once(
    tmp_path: Path, label: str, named: str, spent: int
) -> None:
    house = Holders(tmp_path)
    Order(label).give(house.root)
    with pytest.raises(BlindfitError, match=named):
        run(house, "job.toml")
    assert (house.root / OBEYED).exists()
    assert house.spent() == spent
    (house.root / ORDER).unlink()
    run(house, "job.toml")
    assert house.spent() == 1
