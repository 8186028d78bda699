"""The benchmark of restarts, on small jobs: each is resumed, or has a clean end."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.faults.__main__ import RESUMED, WRONG, judge, study, table_of, time_of
from blindfit.algorithms.errors import PeerTimeout
from tests.command import forked_parties
from tests.faults.trainings import falcon, taylor
from tests.world import World
from tests.world.measured import shop_and_meter

MAKERS: dict[str, Callable[[Path], World]] = {"taylor": taylor, "falcon": falcon, "walr": shop_and_meter}


@pytest.mark.parametrize("system", list(MAKERS))
def test_a_party_that_is_started_again_at_a_random_moment(tmp_path: Path, system: str) -> None:
    job = MAKERS[system](tmp_path).load()
    with forked_parties():
        seconds = time_of(job, tmp_path / "first")
        struck = study(system, job, tmp_path / "out", seconds, random.Random(system))
    assert struck.outcome != WRONG, struck
    assert (struck.outcome == RESUMED) == (struck.after_epoch is not None), struck
    assert table_of([struck]).row_count == 1


def test_a_job_that_blames_another_party_is_wrong() -> None:
    ended = PeerTimeout(peer="shop", step="Keys", timeout_s=1.0)
    ended.hint = "look at shop"
    found = {"sessions": ["a"]}
    assert judge(found, "bank", ended) == WRONG
    assert judge(found, "shop", ended) != WRONG
