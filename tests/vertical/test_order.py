"""The order of common rows, and the workers with which a key node matches ids."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.protocols import align
from blindfit.parties.vertical import alignment


def test_rows_of_equal_draws_keep_their_order() -> None:
    """All parties must have the same order, with any NumPy."""
    draws = np.arange(1000) % 3
    randomness: Any = SimpleNamespace(orders_by_count=False, draws=lambda _purpose, _names: draws)
    aligned: Any = SimpleNamespace(positions=np.arange(1000), mask_enc=object())
    nothing: Any = None
    order = alignment.order_of(nothing, aligned, randomness, (0.2, 0.1))
    assert order.tolist() == [place for draw in range(3) for place in range(1000) if place % 3 == draw]


@pytest.mark.parametrize(("cores", "workers"), [(None, 1), (3, 3)])
async def test_a_key_node_has_a_worker_for_each_core_that_it_knows(
    cores: int | None, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(*_seats: Any, **options: Any) -> int:
        count: int = options["workers"].count
        return count

    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(align, "run_key_node", run)
    session: Any = SimpleNamespace(channel=None)
    seats: Any = SimpleNamespace(chain=("a", "b"), me="k")
    assert await alignment.match_ids(session, seats) == workers
