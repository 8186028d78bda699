"""What `run` refuses, `check` refuses: in the same words, of the same party, by the same place in the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refusals.both import assert_equal
from tests.refusals.cases import CASES, Case
from tests.world.loans import speed_is_not_measured

__all__ = ["speed_is_not_measured"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_refuse_in_the_same_words(case: Case, tmp_path: Path, speed_is_not_measured: None) -> None:
    world = case.world(tmp_path)
    case.change(world)
    assert_equal(world, case.party, case.at, tuple(case.sets))
