"""A closed database: threads that are inside finish first, and a later use is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from blindfit.algorithms.errors import LedgerUnavailable
from blindfit.parties.store.database import Reads, Store

WITHIN: dict[str, Callable[[Store], AbstractContextManager[Reads]]] = {
    "view": lambda store: store.view(),
    "transaction": lambda store: store.transaction(),
}
USES: dict[str, Callable[[Store], object]] = {
    "reader": lambda store: store.reader().sessions(),
    "view": lambda store: store.view().__enter__(),
    "transaction": lambda store: store.transaction().__enter__(),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "party.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def other() -> Iterator[ThreadPoolExecutor]:
    """One more thread."""
    with ThreadPoolExecutor(1) as thread:
        yield thread


@pytest.mark.parametrize("within", WITHIN)
def test_close_waits_for_a_thread_that_is_inside(store: Store, other: ThreadPoolExecutor, within: str) -> None:
    is_inside, may_go_on = threading.Event(), threading.Event()

    def read() -> list[object]:
        with WITHIN[within](store) as reads:
            is_inside.set()
            may_go_on.wait()
            return list(reads.sessions())

    reading = other.submit(read)
    closing = threading.Thread(target=store.close)
    try:
        assert is_inside.wait(60)
        closing.start()
        wait_until_closed(store)
        assert closing.is_alive(), "close has not waited"
    finally:
        may_go_on.set()
    assert reading.result(60) == []
    closing.join(60)
    assert not closing.is_alive()


def wait_until_closed(store: Store) -> None:
    for _ in range(60_000):
        try:
            store.reader().sessions()
        except LedgerUnavailable:
            return
        time.sleep(0.001)
    raise AssertionError("the store takes readers after its close")


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("has_read", [True, False])
def test_a_thread_that_comes_later_is_refused(
    store: Store, other: ThreadPoolExecutor, use: str, *, has_read: bool
) -> None:
    if has_read:
        other.submit(USES["reader"], store).result(60)
    store.close()
    with pytest.raises(LedgerUnavailable, match="is closed, because the party stops"):
        other.submit(USES[use], store).result(60)


def test_a_second_close_changes_nothing(store: Store) -> None:
    store.reader().sessions()
    store.close()
    store.close()
