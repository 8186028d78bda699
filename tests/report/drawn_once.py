"""Plots of the same figures are drawn once for all tests: they take half the time of a made-up page."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from typing import Any
from unittest import mock

COORDINATOR = "blindfit.coordinator"
PLOTS = {  # plots by the function that calls them
    f"{COORDINATOR}.report.curves": (
        *("class_histogram", "calibration_plot", "roc_plot", "precision_recall_plot", "lift_plot"),
    ),
    f"{COORDINATOR}.report.plots": ("weights_plot",),
    f"{COORDINATOR}.walr.page": ("weights_plot", "objective_plot"),
    f"{COORDINATOR}.taylor.page": ("loss_plot",),
    f"{COORDINATOR}.label_dp.page": ("weights_plot", "plot_fit", "laws_plot"),
    f"{COORDINATOR}.dp_lr.plots": ("weights_plot",),
    f"{COORDINATOR}.dp_lr.page": ("loss_plot",),
}


@contextmanager
def every_plot_drawn_once() -> Iterator[None]:
    with ExitStack() as stack:
        for module, names in PLOTS.items():
            for name in names:
                stack.enter_context(mock.patch(f"{module}.{name}", _remembering(module, name)))
        yield


@cache
def _remembering(module: str, name: str) -> Callable[..., Any]:
    draw, drawn = getattr(import_module(module), name), dict[bytes, Any]()

    def once(*figures: Any, **named: Any) -> Any:
        asked = pickle.dumps((figures, named))
        if asked not in drawn:
            drawn[asked] = draw(*figures, **named)
        return drawn[asked]

    return once
