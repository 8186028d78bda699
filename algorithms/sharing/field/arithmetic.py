"""Products of elements, on the fastest kernel that this machine has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from blindfit.algorithms.sharing.field.elements import Elements, Kernel

Change = Callable[[Elements], Elements]
Combine = Callable[[Elements, Elements], Elements]


@cache
def kernel() -> Kernel:
    """Return the fastest kernel that this machine has."""
    from blindfit.algorithms.sharing.field.machine_code import machine_code
    from blindfit.algorithms.sharing.field.numpy_kernel import NumpyKernel

    return machine_code() or NumpyKernel()


def multiply(a: Elements, b: Elements) -> Elements:
    """Return a_i b_i, after numpy's broadcasting."""
    if b.size == 1 and a.ndim >= b.ndim:  # such as the MAC key: a matrix of one column
        return kernel().times_vector(np.ascontiguousarray(a).reshape(-1, 1), b.reshape(1)).reshape(a.shape)
    a, b = np.broadcast_arrays(a, b)
    return kernel().products(np.ascontiguousarray(a), np.ascontiguousarray(b))


def times(matrix: Elements, right: Elements) -> Elements:
    """Return matrix @ right, for a vector or a few columns."""
    if right.ndim == 1:
        return kernel().times_vector(matrix, np.ascontiguousarray(right))
    columns = [kernel().times_vector(matrix, np.ascontiguousarray(column)) for column in right.T]
    return np.stack(columns, axis=1) if columns else np.zeros((len(matrix), 0), dtype=np.uint64)


def transposed_times(matrix: Elements, vector: Elements) -> Elements:
    """Return matrix.T @ vector, without a transposed copy."""
    return kernel().transposed_times_vector(matrix, np.ascontiguousarray(vector))
