"""Arithmetic modulo the prime p = 2^61 - 1 on whole arrays, on one narrow kernel.

An element is a uint64 in [0, p). As p is a Mersenne number, 2^61 = 1 and a reduction is a shift and an addition; sums
need nothing else. Products are the kernel's: elementwise, a matrix by a vector, and its transpose by a vector. Two
kernels compute the same: numpy's, which every machine has, and machine code for products of 64 bits, made at run time
where llvmlite is installed (machine_code.py).
"""

from __future__ import annotations

from blindfit.algorithms.sharing.field.arithmetic import Change, Combine, kernel, multiply, times, transposed_times
from blindfit.algorithms.sharing.field.elements import (
    BITS,
    Elements,
    Integers,
    Kernel,
    P,
    add,
    add_to,
    contiguous,
    cumulate,
    elements,
    integers,
    negative,
    subtract,
    sum_over_first,
    times_power_of_two,
    total,
)

__all__ = [
    "BITS",
    "Change",
    "Combine",
    "Elements",
    "Integers",
    "Kernel",
    "P",
    "add",
    "add_to",
    "contiguous",
    "cumulate",
    "elements",
    "integers",
    "kernel",
    "multiply",
    "negative",
    "subtract",
    "sum_over_first",
    "times",
    "times_power_of_two",
    "total",
    "transposed_times",
]
