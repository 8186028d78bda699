"""Gradients compared with the effect of a small step on the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

STEP = 1e-6


def assert_gradients_are_of(
    loss: Callable[[], float],
    parameters: Sequence[np.ndarray],
    gradients: Sequence[np.ndarray],
    draw: np.random.Generator,
) -> None:
    """Compare the gradients with central differences, along a random direction of each parameter.

    Args:
        parameters: in double precision; moved in place, and restored except for rounding.
    """
    for parameter, gradient in zip(parameters, gradients, strict=True):
        direction = draw.normal(size=parameter.shape)
        parameter += STEP * direction
        above = loss()
        parameter -= 2 * STEP * direction
        slope = (above - loss()) / (2 * STEP)
        parameter += STEP * direction
        assert slope == pytest.approx((gradient * direction).sum(), rel=1e-5, abs=1e-8)
