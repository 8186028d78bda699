"""One opened number for many secret numbers: 0 if all lie in range."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.sharing.computing import Party
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.ranges import out_of_range, unit_bits, units_below
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.sharing.waves import CHOICES
from tests.sharing.computing import compute
from tests.sharing.parties import dealt_to, reconstructed, shared

UNITS = 6


def opened_of(values: list[int], *, seed: int = 1, n_parties: int = 2) -> int:
    dealer, parties = dealt_to(n_parties, seed=seed)
    secrets = shared(np.array(values), dealer, parties)

    async def test(party: Party, place: int) -> Share:
        return await out_of_range(party, "range", secrets[place], UNITS, Seed(b"c" * 32))

    found, _ = compute(dealer, parties, test)
    return int(reconstructed(found, dealer)[0])


@pytest.mark.parametrize("n_parties", [2, 3])
def test_every_number_in_range_gives_zero(n_parties: int) -> None:
    assert opened_of(list(range(-UNITS, UNITS + 1)), n_parties=n_parties) == 0


@pytest.mark.parametrize("outside", [UNITS + 1, -UNITS - 1, 40, -(2**17), 2**40])
def test_one_number_outside_is_noticed_among_many(outside: int) -> None:
    assert opened_of([0] * 50 + [outside] + [3] * 50) != 0


def test_what_is_opened_of_numbers_outside_does_not_say_which() -> None:
    """The same numbers give another result under another dealing: a dealt factor hides it."""
    assert len({opened_of([9, 1, 1], seed=seed) for seed in range(1, 9)}) == 8


@pytest.mark.parametrize("name", CHOICES)
def test_a_score_past_the_bound_is_in_a_unit_that_is_noticed(name: str) -> None:
    waves = CHOICES[name]
    unit = 2 ** unit_bits(waves)
    assert units_below(waves) >= 5
    assert (units_below(waves) + 1) * unit <= waves.bound < (units_below(waves) + 2) * unit
    # A division gives the whole number below or the one above; for |z| = bound both have more units than may be.
    assert int(waves.bound // unit) > units_below(waves)
