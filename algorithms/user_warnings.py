"""Warnings that name the line of the program that uses this package, however deep below that line they arise."""

from __future__ import annotations

import sys
import warnings

from blindfit.algorithms.errors import BlindfitWarning

PACKAGE = __name__.partition(".")[0]


def warn_user(warning: BlindfitWarning) -> None:
    """Issue a warning at the nearest line that is not this package's own."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
