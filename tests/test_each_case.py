"""The many cases of a test: all run, each failure is named, and a test that would check nothing is refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.each_case import each_case


@each_case(("left", "right", "total"), [(1, 2, 3), (2, 2, 4)], ids=["odd", "even"])
@each_case("more", [0, 10])
def test_a_test_may_have_fixtures_and_two_lists(
    left: int, right: int, total: int, more: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert left + right + more == total + more
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "of one case").touch()
    assert tmp_path_factory.getbasetemp() in tmp_path.parents


def test_what_fails_is_named_and_the_rest_is_done() -> None:
    done = []

    @each_case("number", range(6))
    def small(number: int) -> None:
        done.append(number)
        if number == 1:
            pytest.skip("skipped")
        if number == 2:
            with pytest.raises(ValueError, match="never"):
                pass
        assert number != 4

    with pytest.raises(BaseExceptionGroup, match=r"^3 of 6 cases failed: 1; 2; 4$") as failed:
        small()
    assert done == list(range(6))
    assert [type(error) for error in failed.value.exceptions] == [
        pytest.skip.Exception,
        pytest.fail.Exception,
        AssertionError,
    ]
    assert failed.value.exceptions[2].__notes__ == ["in the case 4"]


def test_two_lists_name_the_cases_of_both() -> None:
    @each_case("outer", ["a", "b"], ids=str.upper)
    @each_case("inner", ["c", "d"], ids=["first", "second"])
    def small(outer: str, inner: str) -> None:
        assert outer + inner != "bd"
        if outer + inner == "ac":
            pytest.fail("an outcome of pytest's")

    with pytest.raises(BaseExceptionGroup, match=r"^2 of 2 cases failed: A; B$") as failed:
        small()
    assert [str(error).split(": ")[1].split(" ")[0] for error in failed.value.exceptions] == ["first", "second"]


def test_a_test_that_hung_goes_no_further() -> None:
    done = []

    @each_case("left", [1, 2])
    @each_case("right", [1, 2])
    def slow(left: int, right: int) -> None:
        done.append((left, right))
        pytest.fail("Timeout (>120.0s) from pytest-timeout.")

    with pytest.raises(BaseExceptionGroup, match="1 of 2") as failed:
        slow()
    assert isinstance(failed.value.exceptions[0], BaseExceptionGroup)
    assert done == [(1, 1)]


def test_fixtures_are_asked_for_and_values_are_not() -> None:
    @each_case("value", [1])
    def small(value: int, tmp_path: Path) -> None: ...

    assert list(inspect.signature(small).parameters) == ["tmp_path"]


def test_what_would_check_nothing_is_refused() -> None:
    async def later(value: int) -> None: ...

    def small(value: int) -> None: ...

    refused: list[tuple[Callable[..., Any], str, list[int]]]
    refused = [(small, "value", []), (later, "value", [1]), (small, "other", [1])]
    for test, name, values in refused:
        with pytest.raises(TypeError, match=test.__name__):
            each_case(name, values)(test)
    with pytest.raises(TypeError, match="marks"):
        each_case("value", [pytest.param(1, marks=pytest.mark.soak)])
