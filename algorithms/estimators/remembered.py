"""A release is drawn once: the same request for the same rows gets the same answer while the process lives.

A repeated request must not help a person who averages answers, and must not spend. So a second `fit` to the same rows
with the same options gives the first model again. Another name asks for another draw, which is another release.

Digests of requests exist only while their process lives, so no later version compares them. They need no
`DigestFormat`.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np

from blindfit.algorithms.estimators import privacy_budget
from blindfit.algorithms.privacy.events import ReleaseEvent

T = TypeVar("T")

MOST_REMEMBERED = 1024  # beyond it the oldest release is forgotten; a request for it draws and spends again
_released: OrderedDict[bytes, tuple[int, Any]] = OrderedDict()
_draws = itertools.count()
_lock = threading.Lock()


def draw_once(draw: Callable[[], T], event: ReleaseEvent, *request: Any) -> T:
    """Return the result of `draw` for this request; the first request draws it.

    Args:
        event: release that every open budget is charged for before the draw. A budget that was opened after the draw
            is charged too, because it counts every release that is used inside its block.
        request: everything except noise that determines the release: arrays, numbers, texts, dataclasses of these.

    Raises:
        BudgetExhausted, UnsupportedEvent, PrivacyError: an open budget cannot be charged.
    """
    key = _digest(request)
    with _lock:  # held during the draw: two threads with the same request must not draw twice
        number = _released[key][0] if key in _released else next(_draws)
        privacy_budget.charge(event, number)
        if key not in _released:
            _released[key] = number, draw()
        _released.move_to_end(key)
        while len(_released) > MOST_REMEMBERED:
            _released.popitem(last=False)
        return cast(T, _released[key][1])


def _digest(request: tuple[Any, ...]) -> bytes:
    state = hashlib.sha256()
    for part in request:
        if isinstance(part, np.ndarray):
            content = np.ascontiguousarray(part)
            header, octets = f"array {content.dtype.str} {content.shape}", content.tobytes()
        else:
            header, octets = "value", repr(_plain(part)).encode()
        for field in (header.encode(), octets):
            state.update(len(field).to_bytes(8, "big") + field)
    return state.digest()


def _plain(part: Any) -> Any:
    """Return equal objects for parts that mean the same: a number becomes its value, for 1, 1.0 or a NumPy number."""
    if is_dataclass(part) and not isinstance(part, type):
        values = [(field.name, _plain(getattr(part, field.name))) for field in fields(part)]
        return (type(part).__qualname__, values)
    if isinstance(part, list | tuple):
        return tuple(map(_plain, part))
    if isinstance(part, Real | np.bool_):
        with suppress(OverflowError):
            return float(part) if float(part) == part else part
    return part
