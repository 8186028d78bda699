"""Tasks in processes of this machine give the same results as in this one, even if a process is lost."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import BudgetExhausted, ComputeFailed, PeerTimeout
from blindfit.algorithms.workers import THIS_PROCESS, Workers, even_slices
from blindfit.parties.work.compute import ComputeSettings, open_workers
from tests.work import tasks


@pytest.fixture
def loky() -> Iterator[Workers]:
    with open_workers(ComputeSettings(workers=2, task_timeout_s=60)) as workers:
        yield workers


@given(st.integers(0, 200), st.integers(1, 50))
def test_slices_cover_everything_once_and_evenly(n: int, parts: int) -> None:
    slices = even_slices(n, parts)
    assert [i for s in slices for i in range(n)[s]] == list(range(n))
    sizes = [s.stop - s.start for s in slices]
    assert len(sizes) == min(n, parts)
    assert n == 0 or (min(sizes) >= 1 and max(sizes) - min(sizes) <= 1)


def test_products_are_those_of_one_process_bit_for_bit(loky: Workers) -> None:
    given_out = tasks.product_tasks(9)
    here = THIS_PROCESS.map(tasks.products, given_out)
    assert loky.map(tasks.products, given_out) == here
    kernel, a, b = given_out[3]
    values = [int(x) * int(y) % tasks.N**2 for x, y in zip(kernel.integers(a), kernel.integers(b), strict=True)]
    assert here[3] == values


def test_results_have_the_order_of_the_tasks(loky: Workers) -> None:
    given_out = [(np.full(1000, i), 0.3 if i == 0 else 0.0, i) for i in range(6)]
    assert loky.map(tasks.slow_sum, given_out) == tasks.slow_sums(6)


def test_tasks_run_in_as_many_other_processes_as_asked_for(loky: Workers, tmp_path: Path) -> None:
    processes = set(loky.map(tasks.meet, [(tmp_path, 2)] * 6))
    assert len(processes) == loky.count == 2
    assert os.getpid() not in processes


def test_serial_is_this_process() -> None:
    with open_workers(ComputeSettings(backend="serial")) as workers:
        assert workers.count == 1
        assert workers.map(tasks.process, [()] * 3) == [os.getpid()] * 3


def test_the_default_is_every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joblib, "cpu_count", lambda: 7)
    with open_workers(ComputeSettings()) as workers:
        assert workers.count == 7


def test_no_tasks_give_no_results(loky: Workers) -> None:
    assert loky.map(tasks.process, []) == []


# --- processes that die -------------------------------------------------------------------------------


def test_a_killed_worker_is_survived(loky: Workers, tmp_path: Path) -> None:
    assert loky.map(tasks.die_once, [(tmp_path / "died", i) for i in range(8)]) == list(range(8))
    assert (tmp_path / "died").exists()


def test_what_was_done_before_a_worker_died_is_not_done_again(loky: Workers, tmp_path: Path) -> None:
    assert loky.map(tasks.last_dies_once, [(tmp_path, i, 5) for i in range(6)]) == list(range(6))
    runs = sorted(path.name.split("-")[0] for path in tmp_path.glob("*-*"))
    assert runs == ["0", "1", "2", "3", "4", "5", "5"]


def test_a_task_that_always_kills_its_worker_fails(loky: Workers) -> None:
    with pytest.raises(ComputeFailed) as failed:
        loky.map(tasks.die, [("canary",), ("canary",)])
    assert failed.value.message == "[compute] loky: 2 of 2 tasks were not done: worker processes died, 3 times in a row"
    assert failed.value.hint
    assert loky.map(tasks.process, [()])  # the next map has workers again


def test_a_task_that_takes_too_long_fails(loky: Workers, tmp_path: Path) -> None:
    loky.map(tasks.meet, [(tmp_path, 2)] * 2)  # processes stay, so that their start is in no deadline
    with open_workers(ComputeSettings(workers=2, task_timeout_s=5)) as workers:
        with pytest.raises(ComputeFailed) as failed:
            workers.map(tasks.process, [(0.0,), (60.0,), (0.0,)])
    assert failed.value.message == "[compute] loky: 1 of 3 tasks were not done: waited 5 s for the next result"
    assert loky.map(tasks.process, [()])


# --- errors of the tasks ------------------------------------------------------------------------------


def test_an_error_of_a_task_passes_as_it_is(loky: Workers) -> None:
    with pytest.raises(KeyError, match="0"):
        loky.map(tasks.fail_with_key_error, [(0,)])


def test_our_own_errors_come_back_whole(loky: Workers) -> None:
    with pytest.raises(BudgetExhausted) as exhausted:
        loky.map(tasks.exhaust, [(0,), (1,)])
    expected = BudgetExhausted(population="people", spent=1.0, budget=2.0, requested=1.5)
    assert str(exhausted.value) == str(expected)
    assert vars(exhausted.value) == vars(expected)
    with pytest.raises(PeerTimeout) as timeout:
        loky.map(tasks.wait_in_vain, [(0,)])
    assert (timeout.value.peer, timeout.value.timeout_s) == ("meter", 3.0)


# --- side by side -------------------------------------------------------------------------------------


def test_two_sessions_do_not_lose_each_others_tasks(loky: Workers) -> None:
    """joblib has one pool a process, and a failing task ends all of it."""
    start = threading.Barrier(2)

    def fails() -> int:
        start.wait()
        failures = 0
        for _ in range(5):
            with pytest.raises(KeyError):
                loky.map(tasks.fail_with_key_error, [(i,) for i in range(4)])
            failures += 1
        return failures

    def works() -> list[list[tuple[int, int]]]:
        start.wait()
        return [loky.map(tasks.slow_sum, tasks.slow_tasks(6, 0.02)) for _ in range(5)]

    with ThreadPoolExecutor(2) as threads:
        failing, working = threads.submit(fails), threads.submit(works)
        assert failing.result() == 5
        assert working.result() == [tasks.slow_sums(6)] * 5


def test_large_arrays_are_not_written_to_temporary_files(loky: Workers) -> None:
    large = np.zeros(500_000)
    assert loky.map(tasks.kind_of, [(large,)] * 2) == ["ndarray"] * 2
    with joblib.Parallel(2, backend="loky") as unlike_ours:
        assert unlike_ours([joblib.delayed(tasks.kind_of)(large)] * 2) == ["memmap"] * 2
