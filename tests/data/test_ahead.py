"""Batches that are made ahead equal batches that are made on demand."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from blindfit.parties.data.ahead import THREADS, each_ahead
from tests.each_case import each_case


@each_case("count", [0, 1, 2, 3, 50])
def test_all_come_in_order(count: int) -> None:
    assert list(each_ahead(lambda i: i * i, range(count))) == [i * i for i in range(count)]


def test_few_are_taken_before_their_time() -> None:
    taken = []

    def items() -> Iterator[int]:
        for i in range(20):
            taken.append(i)
            yield i

    for place, _ in enumerate(each_ahead(lambda i: i, items())):
        assert len(taken) <= place + 1 + THREADS


def test_the_next_is_made_while_the_caller_has_this_one() -> None:
    made = [threading.Event() for _ in range(3)]
    results = each_ahead(lambda i: made[i].set(), range(3))
    next(results)
    assert all(event.wait(60) for event in made)
    assert list(results) == [None, None]


def test_an_error_comes_in_its_turn() -> None:
    def fails(i: int) -> int:
        if i >= 2:
            raise ValueError(f"item {i}")
        return i

    results = each_ahead(fails, range(9))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="item 2"):
        next(results)
    assert list(results) == []


def test_an_error_of_the_items_is_raised() -> None:
    def items() -> Iterator[int]:
        yield from (0, 1, 2)
        raise OSError("the file ends here")

    with pytest.raises(OSError, match="ends here"):
        list(each_ahead(lambda i: i, items()))


def test_who_stops_early_leaves_no_thread() -> None:
    results = each_ahead(lambda i: i, range(1000))
    next(results)
    results.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]
