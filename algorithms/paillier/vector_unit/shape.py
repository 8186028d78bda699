"""Sizes that the machine code and its caller share."""

from __future__ import annotations

LIMB_BITS = 52
WINDOW_BITS = 5  # of an exponent, at a time
TABLE_SIZE = 1 << WINDOW_BITS
HALVES = 11  # of the workspace, before the table of a power
