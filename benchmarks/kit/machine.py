"""Machine of a measurement: the processor, and the time of one product mod n^2, in the same run.

A figure that is divided by the time of a product takes that time itself, in turn with what it divides (products.py).
"""

from __future__ import annotations

import os
import platform
import random
import statistics
from pathlib import Path
from typing import Any

import gmpy2

from benchmarks.kit.in_turn import in_turn
from benchmarks.kit.products import Products, in_microseconds

KEY_BITS = 2048
ROUNDS = 9


def describe() -> dict[str, Any]:
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **product_times(),
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def product_times() -> dict[str, Any]:
    """Return the median times of a product mod n^2 for an odd n of KEY_BITS, in processor time, both units in turn."""
    products = Products("product", random_modulus())
    times = in_turn(products.runs, ROUNDS)
    return in_microseconds({unit: statistics.median(taken) for unit, taken in products.seconds(times).items()})


def random_modulus() -> int:
    """Return n^2 for an n that is not the modulus of a key."""
    n = gmpy2.mpz(random.Random(1).getrandbits(KEY_BITS) | 1 << (KEY_BITS - 1) | 1)
    square: int = n * n
    return square
