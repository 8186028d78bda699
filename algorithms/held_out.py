"""The fractions of rows that a job may hold out: few, so that nobody chooses who is held out.

Source: MATH 10.
"""

from __future__ import annotations

FRACTIONS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5)


def smallest_fraction(rows: int, of: int) -> float | None:
    """Return the smallest allowed fraction that holds out so many of all rows; None where none does."""
    return next((fraction for fraction in FRACTIONS if round(of * fraction) >= rows), None)


def hold_out_more(option: str, rows: int, of: int) -> str:
    """Return which values of an option hold out so many of all rows, or none."""
    fraction = smallest_fraction(rows, of)
    return (
        f"use more rows, or set {option} = 0"
        if fraction is None
        else f"set {option} = {fraction:g}, or more, or {option} = 0"
    )
