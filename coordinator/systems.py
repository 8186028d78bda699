"""The table of systems, as a coordinator shows them.

A system's view is imported when a job of its system is met.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from blindfit.algorithms.errors import DataError

if TYPE_CHECKING:
    from blindfit.coordinator.report.kind import Kind
    from blindfit.coordinator.view import View


def _walr() -> View[Any]:
    from blindfit.coordinator.walr.view import VIEW

    return VIEW


def _label_dp() -> View[Any]:
    from blindfit.coordinator.label_dp.view import VIEW

    return VIEW


def _dp_lr() -> View[Any]:
    from blindfit.coordinator.dp_lr.view import VIEW

    return VIEW


def _taylor() -> View[Any]:
    from blindfit.coordinator.taylor.view import VIEW

    return VIEW


def _falcon() -> View[Any]:
    from blindfit.coordinator.falcon.view import VIEW

    return VIEW


def _predict() -> View[Any]:
    from blindfit.coordinator.predict.view import VIEW

    return VIEW


def _evaluate() -> View[Any]:
    from blindfit.coordinator.evaluate.view import VIEW

    return VIEW


VIEWS: dict[str, Callable[[], View[Any]]] = {
    "walr": _walr,
    "label-dp": _label_dp,
    "dp-lr": _dp_lr,
    "taylor": _taylor,
    "falcon": _falcon,
    "predict": _predict,
    "evaluate": _evaluate,
}


@cache
def view(system: str) -> View[Any]:
    """Return the view of a system, by a name of VIEWS."""
    return VIEWS[system]()


def kind_of(system: str) -> Kind[Any]:
    """Return what a report of this system adds to all others.

    Raises:
        DataError: the system has no report.
    """
    kind = view(system).report if system in VIEWS else None
    if kind is None:
        raise DataError(f"a {system!r} job has no report")
    return kind
