"""Rows that counted are fitted in their places."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.statistics.linear.scaling import PIECE_ROWS
from blindfit.parties.walr.fit import move_up


@pytest.mark.parametrize("n_rows", [1, PIECE_ROWS, 3 * PIECE_ROWS + 5])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", [np.int16, np.int32])
def test_the_kept_rows_in_their_order_and_no_other_array(n_rows: int, share: float, kind: type) -> None:
    rng = np.random.default_rng(n_rows)
    rows = rng.integers(-99, 99, (n_rows, 4)).astype(kind)
    kept = rng.random(n_rows) < share
    wanted = rows[kept]
    found = move_up(rows, kept)
    assert np.array_equal(found, wanted)
    assert found.dtype == kind
    assert found.base is rows
    assert found.flags.c_contiguous
