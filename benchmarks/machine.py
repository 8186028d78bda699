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
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def product_us() -> float:
    """Median of five, microseconds, GMP: x <- x * y mod n^2 for an odd n of 2048 bits."""
    import gmpy2

    draw = random.Random(1)  # a timing needs no secret
    n = gmpy2.mpz(draw.getrandbits(KEY_BITS) | 1 << (KEY_BITS - 1) | 1)
    square = n * n
    x, y = (gmpy2.mpz(draw.getrandbits(2 * KEY_BITS)) % square for _ in range(2))
    times = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(PRODUCTS // 5):
            x = x * y % square
        times.append((time.perf_counter() - started) / (PRODUCTS // 5) * 1e6)
    return round(statistics.median(times), 3)
