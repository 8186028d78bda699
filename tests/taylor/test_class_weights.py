"""Weights of classes: however rare a class is, no job ends because of it, which would reveal how rare it is."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from structlog.testing import capture_logs

from blindfit.algorithms.statistics.vertical.class_weights import CLASS_WEIGHT_BITS, LARGEST_CLASS_WEIGHT
from blindfit.parties.vertical.prepared import class_factors
from tests.each_case import each_case

ROWS = 1000
ONE = 2**CLASS_WEIGHT_BITS


@each_case(
    ("positives", "expected", "is_told"),
    [
        (500, (1.0, 1.0), False),
        (250, (2.0, 2 / 3), False),
        (8, (62.5, 0.5 / 0.992), False),
        (4, (LARGEST_CLASS_WEIGHT, 0.5 / 0.996), True),
        (0, (None, 0.5), True),
        (ROWS, (0.5, None), True),
    ],
)
def test_a_weight_is_clipped_and_its_owner_told(
    positives: int, expected: tuple[float | None, float | None], is_told: bool
) -> None:
    y = np.where(np.arange(ROWS) < positives, 1.0, -1.0)
    prepared = SimpleNamespace(
        labels=SimpleNamespace(y=y),
        rows=SimpleNamespace(there=np.ones(ROWS, np.bool_)),
        plan=SimpleNamespace(train=np.arange(ROWS)),
    )
    with capture_logs() as logs:
        factors = class_factors(prepared)  # type: ignore[arg-type]
    for of_class, weight in zip((y > 0, y < 0), expected, strict=True):
        assert set(factors[of_class].tolist()) == (set() if weight is None else {round(weight * ONE)})
    assert bool(logs) == is_told
