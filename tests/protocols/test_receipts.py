"""Receipts between the parties of a training: requests that the payer may make."""

from __future__ import annotations

import pytest

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.protocols.receipts import MOST_NAME, ReceiptAsked, step_2_check


@pytest.mark.parametrize("population", ["", "x" * (MOST_NAME + 1)])
def test_step_2_a_population_without_a_name_or_with_too_long_a_one(population: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        step_2_check(ReceiptAsked(population), sender="bank")
    assert str(caught.value) == "bank sent a malformed message: population: is not a name"


def test_step_2_the_longest_name() -> None:
    assert step_2_check(ReceiptAsked("x" * MOST_NAME), sender="bank") == "x" * MOST_NAME
