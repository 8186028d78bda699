"""A release is drawn once: the same request of the same rows gets the same answer, for as long as the process lives.

Asking again must not help whoever averages answers, and must not spend: so a second `fit` on the same rows with the
same options gives the first one's model. Another draw is asked for by name, and is a release of its own.

The digests of requests end with their process, so they need no `DigestFormat`: no later version compares them.
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

MOST_REMEMBERED = 1024  # the oldest is forgotten: asked for again, it is drawn and spent again
_released: OrderedDict[bytes, tuple[int, Any]] = OrderedDict()
_draws = itertools.count()
_lock = threading.Lock()


def draw_once(draw: Callable[[], T], event: ReleaseEvent, *request: Any) -> T:
    """Return what `draw` gave when this request was made first.

    Args:
        event: what open budgets are charged, before it is drawn. One that was opened after the draw is charged too,
            as it counts all that is seen of the rows within it.
        request: all that determines the release but its noise: arrays, numbers, texts, dataclasses of these.
    """
    key = _digest(request)
    with _lock:  # held while drawing: two threads that ask the same must not draw twice
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
    """Return the same for what means the same: a number is its value, be it 1, 1.0 or NumPy's."""
    if is_dataclass(part) and not isinstance(part, type):
        values = [(field.name, _plain(getattr(part, field.name))) for field in fields(part)]
        return (type(part).__qualname__, values)
    if isinstance(part, list | tuple):
        return tuple(map(_plain, part))
    if isinstance(part, Real | np.bool_):
        with suppress(OverflowError):
            return float(part) if float(part) == part else part
    return part
