"""Trace of what code does with arrays: every operation of numpy with the shapes of its inputs and outputs, and every
line that runs.

Two inputs that the code must not distinguish must leave the same trace."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

from blindfit.parties.measurement import label_index
from blindfit.parties.measurement.mapped import MappedArray

Trace = list[tuple[object, ...]]
trace: Trace = []


class Traced(np.ndarray):
    """Traced array: every result computed from one is traced too."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if out is not None:
            options["out"] = tuple(map(plain, out))
        result = getattr(ufunc, method)(*map(plain, inputs), **options)
        trace.append((ufunc.__name__, method, *map(shape_of, inputs), shape_of(result)))
        return out[0] if out is not None else traced(result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        result = function(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})
        trace.append((function.__name__, *map(shape_of, args), shape_of(result)))
        return traced(result)

    def __getitem__(self, key: Any) -> Any:
        result = plain(self)[plain(key)]
        trace.append(("get", self.shape, shape_of(key), shape_of(result)))
        return traced(result)

    def __setitem__(self, key: Any, value: Any) -> None:
        plain(self)[plain(key)] = plain(value)
        trace.append(("set", self.shape, shape_of(key), shape_of(value)))


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value.view(np.ndarray) if isinstance(value, Traced) else value


def traced(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(traced, value))
    return value.view(Traced) if isinstance(value, np.ndarray) and value.ndim else value


def shape_of(value: Any) -> object:
    if isinstance(value, list | tuple):
        return tuple(map(shape_of, value))
    return (value.shape, value.dtype.str) if isinstance(value, np.ndarray) else type(value).__name__


def trace_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace from now on every array that is mapped from a file or computed from hashed ids."""

    class TracedMap(MappedArray):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.array = self.array.view(Traced)

        def release(self) -> None:
            super().release()
            trace.append(("release", self.array.shape))

    hash_texts = label_index.hash_texts
    monkeypatch.setattr(label_index, "MappedArray", TracedMap)
    monkeypatch.setattr(label_index, "hash_texts", lambda *arguments: traced(hash_texts(*arguments)))


@contextmanager
def traced_lines(*folders: str) -> Iterator[Trace]:
    """Yield all that happens within, in order; lines are those of files whose path contains one of these texts."""
    before = sys.gettrace()

    def on_line(frame: FrameType, event: str, _: object) -> Any:
        trace.append((event, frame.f_code.co_name, frame.f_lineno))
        return on_line

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        watched = any(folder in frame.f_code.co_filename for folder in folders)
        return on_line(frame, event, argument) if watched else None

    found: Trace = []
    trace.clear()
    sys.settrace(on_call)
    try:
        yield found
    finally:
        sys.settrace(before)
        found[:] = trace
        trace.clear()
