from __future__ import annotations

import numpy as np
import pytest

from blindfit.parties.work.memory import on_own_pages


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (1, 1), (700, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_copy_on_its_own_pages_is_that_of_the_heap(shape: tuple[int, int], dtype: type[np.floating]) -> None:
    values = np.random.default_rng(3).normal(size=shape)
    copied = on_own_pages(values, dtype)
    assert (copied.dtype, copied.shape) == (dtype, shape)
    np.testing.assert_array_equal(copied, values.astype(dtype))
    copied[:1] = 0  # it may be written to, and nobody else uses it
    assert not values.size or values[0].any()
