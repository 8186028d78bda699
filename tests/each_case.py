"""Many small cases as one test: pytest's own work for a test takes 2 ms or more, longer than most of the cases."""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]
# These end a case and not the run. Outcomes of pytest are not Exceptions, so neither is a group of them.
TOLD = (Exception, pytest.fail.Exception, pytest.skip.Exception, BaseExceptionGroup)


def each_case(
    names: str | Sequence[str], values: Iterable[Any], *, ids: Callable[[Any], Any] | Iterable[str] | None = None
) -> Callable[[Test], Test]:
    """Run all cases in one test, and name the failing ones in the error; written as pytest.mark.parametrize is.

    Each case has its own `tmp_path`; other fixtures are the same for all, so no case may change them.
    """
    fields = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [_values(case, alone=len(fields) == 1) for case in values]
    named = ids if ids is None or callable(ids) else list(ids)

    def over_all(test: Test) -> Test:
        if not cases or inspect.iscoroutinefunction(test):
            raise TypeError(f"{test.__name__} would check nothing")

        @functools.wraps(test)
        def all_cases(**fixtures: Any) -> None:
            failed = []
            for number, case in enumerate(cases):
                own = {"tmp_path": fixtures["tmp_path"] / str(number)} if "tmp_path" in fixtures else {}
                for path in own.values():
                    path.mkdir()
                try:
                    test(**fixtures | own | dict(zip(fields, case, strict=True)))
                except TOLD as error:
                    label = _labels(cases, named)[number]
                    error.add_note(f"in the case {label}")
                    failed.append((label, error))
                    if _hung(error):
                        break
            if failed:
                which = "; ".join(label for label, _ in failed)
                told = f"{len(failed)} of {len(cases)} cases failed: {which}"
                raise BaseExceptionGroup(told, [error for _, error in failed])

        whole = inspect.signature(test)
        left = [parameter for name, parameter in whole.parameters.items() if name not in fields]
        if len(left) + len(fields) != len(whole.parameters):
            raise TypeError(f"{test.__name__} does not take all of {', '.join(fields)}")
        all_cases.__dict__["__signature__"] = whole.replace(parameters=left)
        return all_cases

    return over_all


def _hung(error: BaseException) -> bool:
    """Return True if pytest-timeout ended it, which happens once in a test."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_hung, error.exceptions))
    return str(error).startswith("Timeout")


def _values(case: Any, *, alone: bool) -> tuple[Any, ...]:
    """Return the values of pytest.param; `ids` name a case better than its own id."""
    if hasattr(case, "marks"):
        if case.marks:
            raise TypeError("a case has no marks of its own")
        return tuple(case.values)
    return (case,) if alone else tuple(case)


def _labels(cases: Sequence[tuple[Any, ...]], ids: Callable[[Any], Any] | list[str] | None) -> list[str]:
    if ids is None:
        return [", ".join(map(reprlib.repr, case)) for case in cases]
    if callable(ids):
        return ["-".join(str(ids(value)) for value in case) for case in cases]
    return ids
