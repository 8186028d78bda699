"""Nobody else can distinguish two worlds under settings that are drawn at random."""

from __future__ import annotations

import pytest

from tests.interference.neighbours import PAIRS, Pair, Probe
from tests.interference.settings import CHOICES, choices_of, drawn, found_under, pair_of
from tests.interference.systems import SYSTEMS

QUICK = (
    ("walr-a-label", 0),
    ("walr-holders-a-feature", 0),
    ("walr-split-a-share", 0),
    ("walr-hidden-a-label", 0),
    ("walr-shares-a-share", 1),
    ("label-dp-a-price", 0),
    ("dp-lr-a-label", 0),
    ("taylor-a-label", 0),
    ("taylor-label-dp-a-feature", 0),
    ("taylor-linear-a-price", 1),
    ("taylor-linkage-missing-name", 0),
    ("falcon-a-label", 0),
    ("falcon-untested-outlier", 0),
    ("predict-a-feature", 0),
    ("evaluate-a-label", 0),
)
"""Ids of pairs and seeds, which together cover every protocol; Falcon has one malicious and one semi-honest."""
SEEDS = 8


@pytest.mark.parametrize(("name", "seed"), QUICK)
def test_others_see_the_same_under_random_settings(name: str, seed: int, probe: Probe) -> None:
    """The parties refuse none of these jobs, so there is something to compare."""
    fresh = Probe(probe.authority)
    assert found_under(pair_of(name), seed, fresh) == []
    assert fresh.errors == []


@pytest.mark.soak
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_others_see_the_same_under_many_settings(pair: Pair, probe: Probe) -> None:
    fresh = Probe(probe.authority)
    assert [line for seed in range(SEEDS) for line in found_under(pair, seed, fresh)] == []


def test_every_system_is_drawn() -> None:
    assert {drawn(pair_of(name), seed).case.system for name, seed in QUICK} == {
        make().system for make in SYSTEMS.values()
    }
    assert {id(choices_of(system)) for system in SYSTEMS} == {id(choices) for choices in CHOICES.values()}
