"""Nobody else can tell two worlds apart under settings that are drawn at random."""

from __future__ import annotations

import pytest

from tests.interference.neighbours import PAIRS, Probe
from tests.interference.settings import CHOICES, choices_of, drawn, found_under
from tests.interference.systems import SYSTEMS

QUICK = (1, 2, 3, 4, 6, 10, 11, 28, 29, 32, 48, 80)
"""Which together are of every protocol; of Falcon, which costs most, one malicious and one semi-honest."""
ALL, AT_A_TIME = 1000, 50


@pytest.mark.parametrize("number", QUICK)
def test_others_see_the_same_under_random_settings(number: int, probe: Probe) -> None:
    """Of these no job is refused: there is something to tell apart."""
    fresh = Probe(probe.authority)
    assert found_under(number, fresh) == []
    assert fresh.errors == []


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, ALL, AT_A_TIME))
def test_others_see_the_same_under_a_thousand_settings(first: int, probe: Probe) -> None:
    numbers = range(first, first + AT_A_TIME)
    assert [line for number in numbers for line in found_under(number, Probe(probe.authority))] == []


def test_every_system_is_drawn() -> None:
    assert {drawn(number).system for number in range(ALL)} == {pair.system for pair in PAIRS}
    assert {drawn(number).case.system for number in QUICK} == {make().system for make in SYSTEMS.values()}
    assert {id(choices_of(system)) for system in SYSTEMS} == {id(choices) for choices in CHOICES.values()}
