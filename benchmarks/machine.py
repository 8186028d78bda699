"""What a figure was measured on: the processor, and the time of one product mod n^2, in the same run."""

from __future__ import annotations

import os
import platform
import random
import statistics
import time
from pathlib import Path
from typing import Any

KEY_BITS = 2048
PRODUCTS = 20_000


def describe() -> dict[str, Any]:
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "product_us": product_us(),
        "vector_product_us": vector_product_us(),
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def product_us() -> float:
    """Median of five, microseconds, GMP: x <- x * y mod n^2 for an odd n of 2048 bits."""
    square, (x, y) = _modulus_and_numbers(2)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(PRODUCTS // 5):
            x = x * y % square
        times.append((time.perf_counter() - started) / (PRODUCTS // 5) * 1e6)
    return round(statistics.median(times), 3)


def vector_product_us() -> float | None:
    """The same by the processor's vector unit, eight at a time; None where it has none."""
    import numpy as np

    from blindfit.algorithms.paillier.ifma import vector_unit

    square, numbers = _modulus_and_numbers(64)
    unit = vector_unit(int(square))
    if unit is None:
        return None
    rows, factors = unit.rows(numbers), PRODUCTS // 5 // len(numbers)
    indices = np.arange(len(numbers) * (factors + 1)).reshape(len(numbers), -1) % len(numbers)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        unit.grouped_products(rows, indices)
        times.append((time.perf_counter() - started) / (len(numbers) * factors) * 1e6)
    return round(statistics.median(times), 3)


def _modulus_and_numbers(count: int) -> tuple[Any, list[Any]]:
    import gmpy2

    draw = random.Random(1)  # a timing needs no secret
    n = gmpy2.mpz(draw.getrandbits(KEY_BITS) | 1 << (KEY_BITS - 1) | 1)
    return n * n, [gmpy2.mpz(draw.getrandbits(2 * KEY_BITS)) % (n * n) for _ in range(count)]
