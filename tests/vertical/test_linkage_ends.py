"""In the real job, the key node's comparison of filters takes minutes of a core, and ends with its session."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.alignment import matching
from blindfit.algorithms.errors import BlindfitError
from tests.world.vertical import bank_and_shops

LONGEST_S = 20  # even if nobody ends it


@pytest.mark.parametrize("timeout", ["step_s", "session_s"])  # a data party gives up waiting; the comparison takes long
def test_a_comparison_ends_with_its_session_and_takes_no_thread_of_others(
    timeout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise cancelled linkages would take all threads of the key node."""
    comparing: set[str] = set()

    def slow(first: Any, _second: Any, _floor: float, on_progress: matching.Progress) -> Iterator[matching.Pairs]:
        comparing.add(threading.current_thread().name)
        for _ in range(100 * LONGEST_S):
            on_progress(0, len(first.counts))
            time.sleep(0.01)
        return iter(())

    monkeypatch.setattr(matching, "_tiles", slow)
    project = bank_and_shops(tmp_path)
    for seconds in (2, 8, 32):  # the shortest that leaves a busy machine time for all that comes before
        with pytest.raises(BlindfitError):
            project.run(f"timeouts.{timeout}={seconds}", job="linkage.toml")
        if comparing:
            break
    assert [name.rsplit("_", 1)[0] for name in comparing] == ["long work"]
    deadline = time.monotonic() + LONGEST_S / 4
    while time.monotonic() < deadline and any(thread.name in comparing for thread in threading.enumerate()):
        time.sleep(0.05)
    assert not [thread.name for thread in threading.enumerate() if thread.name in comparing]
