"""A time is divided by that of a product: by the unit that did the work, taken in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import pytest

from benchmarks.kit.in_turn import Times, median_ratio
from benchmarks.kit.products import GMP, VECTOR_UNIT, Products, in_microseconds
from benchmarks.paillier import operations as paillier_operations
from benchmarks.paillier.operations import Operation, measure
from blindfit.algorithms.paillier.kernel import Kernel

N = (1 << 512) - 569
OURS_S, GMP_S, VECTOR_S = 1e-3, 4e-6, 1e-6


@pytest.mark.parametrize(
    ("by_vector_unit", "over_bound"), [(0, 2.5), (100, 10.0), (60, 1e-3 / (40 * 4e-6 + 60 * 1e-6))]
)
def test_a_bound_is_of_the_unit_that_did_the_work(
    by_vector_unit: int, over_bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred products in a millisecond: of 1 µs each that is ten times the bound, of 4 µs each only 2.5 times."""
    kernel = Kernel(N)
    kernel.__dict__["unit"] = unit = SimpleNamespace(multiplied=0)

    def work() -> None:
        kernel.counts.products += 100
        unit.multiplied += by_vector_unit

    def one_round(runs: Mapping[str, Callable[[], object]], rounds: int) -> Times:
        runs["ours"]()
        count = Products("product", N).count
        sizes = {f"{size} by {unit}": s for size in ("product", "half product") for unit, s in PRODUCT_S.items()}
        return Times({"ours": [OURS_S], **{name: [seconds * count] for name, seconds in sizes.items()}})

    monkeypatch.setattr(paillier_operations, "in_turn", one_round)
    figures = measure(Operation("work", "piece", 1, work), kernel, 1)
    assert figures["over_bound"] == pytest.approx(over_bound)
    assert figures["by_vector_unit"] == by_vector_unit / 100
    assert (figures["product_us"], figures["vector_product_us"]) == (4.0, 1.0)


PRODUCT_S = {GMP: GMP_S, VECTOR_UNIT: VECTOR_S}


def test_a_processor_without_a_vector_unit_has_one_time() -> None:
    products = Products("product", N)
    seconds = products.seconds(Times({"product by GMP": [2e-6 * products.count, 6e-6 * products.count]}))
    assert seconds == {GMP: pytest.approx([2e-6, 6e-6])}
    assert in_microseconds({GMP: 2e-6}) == {"product_us": 2.0, "vector_product_us": None}


def test_a_ratio_is_taken_round_by_round() -> None:
    """The machine was three times as slow in the second round, for both."""
    assert median_ratio([2.0, 6.0, 2.0], [1.0, 3.0, 1.0]) == 2.0
