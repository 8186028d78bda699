"""Both kernels agree with Python's integers, at the extremes too: chance does not find what carries farthest."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.field import Elements, Kernel, P
from blindfit.algorithms.sharing.field import machine_code as field_code
from blindfit.algorithms.sharing.field.machine_code import TERMS, machine_code
from blindfit.algorithms.sharing.field.numpy_kernel import MOST_TERMS, NumpyKernel

EXTREMES = [0, 1, 2, 2**29, 2**32 - 1, 2**32, 2**60, P // 2, P // 2 + 1, P - 2, P - 1]
SHAPES = [(1, 1), (3, 0), (0, 3), (2, TERMS), (2, 64), (TERMS + 1, 65), (64, 2), (1, 2 * MOST_TERMS + 1)]

HAS_LLVMLITE = platform.machine() in ("x86_64", "AMD64")  # pyproject.toml requires it on these machines

elements = st.sampled_from(EXTREMES) | st.integers(0, P - 1)
vectors = st.lists(elements, max_size=20)


def array(values: list[int]) -> Elements:
    return np.array(values, dtype=np.uint64)


@pytest.fixture(params=["numpy", "machine code"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    if request.param == "numpy":
        return NumpyKernel()
    if not HAS_LLVMLITE:
        pytest.skip("llvmlite is installed on x86-64 alone")
    code = machine_code()
    assert code is not None, "llvmlite is among what the tests install"
    return code


def test_products_of_extremes(kernel: Kernel) -> None:
    a, b = (side.ravel() for side in np.meshgrid(array(EXTREMES), array(EXTREMES)))
    assert kernel.products(a, b).tolist() == [x * y % P for x, y in zip(a.tolist(), b.tolist(), strict=True)]


def test_products_of_many(kernel: Kernel) -> None:
    a, b = np.random.default_rng(1).integers(0, P, (2, 3, 20_000), dtype=np.uint64)
    expected = [x * y % P for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]
    assert kernel.products(a, b).shape == a.shape
    assert kernel.products(a, b).ravel().tolist() == expected


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("largest", [True, False])
def test_a_matrix_by_a_vector(kernel: Kernel, shape: tuple[int, int], largest: bool) -> None:
    rng = np.random.default_rng(2)
    least = P - 1 if largest else 0
    matrix = rng.integers(least, P, shape, dtype=np.uint64)
    right, left = (rng.integers(least, P, size, dtype=np.uint64) for size in (shape[1], shape[0]))
    rows = [sum(x * y for x, y in zip(row, right.tolist(), strict=True)) % P for row in matrix.tolist()]
    columns = [sum(x * y for x, y in zip(col, left.tolist(), strict=True)) % P for col in matrix.T.tolist()]
    assert kernel.times_vector(matrix, right).tolist() == rows
    assert kernel.transposed_times_vector(matrix, left).tolist() == columns


def test_this_machine_has_the_fast_kernel() -> None:
    assert isinstance(field.kernel(), NumpyKernel) != HAS_LLVMLITE


def test_code_that_computes_something_else_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("products", "times_vector", "transposed_times_vector"):
        wrong = NumpyKernel()
        monkeypatch.setattr(wrong, name, lambda a, _b: a[..., 0] if a.ndim > 1 else a)
        assert not field_code.is_right(wrong)
    assert field_code.is_right(NumpyKernel())


@pytest.mark.parametrize("number", [P - 1, P - 2, P // 2, 2**32, 2**29 - 1, 1, 0])
def test_code_that_is_wrong_for_one_number_is_not_used(number: int) -> None:
    class WrongForOne(NumpyKernel):
        def products(self, a: Elements, b: Elements) -> Elements:
            return super().products(a, b) ^ (a == number).astype(np.uint64)

    assert not field_code.is_right(WrongForOne())


# --- what needs no kernel --------------------------------------------------------------------------------------


@given(vectors, st.integers(0, 200))
def test_a_power_of_two_turns_the_bits_round(values: list[int], bits: int) -> None:
    assert field.times_power_of_two(array(values), bits).tolist() == [value * 2**bits % P for value in values]


@given(st.lists(st.tuples(elements, elements), max_size=20))
def test_sums_and_differences(pairs: list[tuple[int, int]]) -> None:
    a, b = array([x for x, _ in pairs]), array([y for _, y in pairs])
    assert field.add(a, b).tolist() == [(x + y) % P for x, y in pairs]
    assert field.subtract(a, b).tolist() == [(x - y) % P for x, y in pairs]
    assert field.negative(a).tolist() == [-x % P for x, _ in pairs]
    assert field.total([a, b, a]).tolist() == [(2 * x + y) % P for x, y in pairs]
    both = np.stack([a, b, a])
    assert field.sum_over_first(both).tolist() == [(2 * x + y) % P for x, y in pairs]
    assert field.sum_over_first(a.reshape(-1, 1)).tolist() == [sum(x for x, _ in pairs) % P]


@given(st.lists(st.integers(-(P // 2), P // 2), max_size=20))
def test_integers_come_back(values: list[int]) -> None:
    assert field.integers(field.elements(np.array(values, dtype=np.int64))).tolist() == values


def test_elements_are_made_from_integers_alone() -> None:
    for wrong in (np.array([1.0]), np.array([True]), np.array(["1"])):
        with pytest.raises(RangeError, match="from integers"):
            field.elements(wrong)
    assert field.elements(np.array([2**64 - 1, P, 3], dtype=np.uint64)).tolist() == [7, 0, 3]
    assert field.elements([]).tolist() == []


@settings(deadline=None)
@given(vectors)
def test_broadcasting_is_numpys(values: list[int]) -> None:
    column = array([3, P - 1])[:, None]
    product = field.multiply(column, array(values)[None, :])
    assert product.tolist() == [[factor * value % P for value in values] for factor in (3, P - 1)]


def test_a_matrix_by_columns() -> None:
    a, b = np.random.default_rng(3).integers(0, P, (2, 4, 4), dtype=np.uint64)
    expected = [[sum(int(a[i, k]) * int(b[k, j]) for k in range(4)) % P for j in range(4)] for i in range(4)]
    assert field.times(a, b).tolist() == expected
    assert field.times(a, b[:, :0]).shape == (4, 0)
