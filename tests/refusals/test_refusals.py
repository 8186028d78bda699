"""If `run` refuses a job, `check` refuses it in the same words, for the same party, at the same place in the code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.quick_keys import quick_keys
from tests.refusals.both import assert_equal, refusals_of_check
from tests.refusals.case import Case
from tests.refusals.cases import CASES
from tests.refusals.page import PAGE, render
from tests.refusals.sites import sites
from tests.refusals.table import REASONS, reason_of
from tests.refusals.worlds import fill, trained, trained_alone, trained_in_shares, trained_under_label_dp
from tests.world import World
from tests.world.loans import speed_is_not_measured

__all__ = ["speed_is_not_measured"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_refuse_in_the_same_words(case: Case, tmp_path: Path, speed_is_not_measured: None) -> None:
    world = case.world(tmp_path)
    case.change(world)
    with case.within():
        assert_equal(world, case.party, case.at, tuple(case.sets), is_same_place=case.is_same_place)


def test_no_place_is_missing_in_the_table() -> None:
    missing = [site for site in sites().values() if reason_of(site) == "?"]
    assert not missing, "give each a case, or one of the reasons:\n" + "\n".join(missing)


def test_the_table_has_no_place_that_is_gone() -> None:
    listed = [*(at for places in REASONS.values() for at in places), *(case.at for case in CASES)]
    assert [at for at in listed if not any(site.startswith(at) for site in sites().values())] == []


def test_the_counts_of_the_page_are_those_of_the_table() -> None:
    assert PAGE.read_text("utf-8") == render(), "run `python -m tests.refusals`"


@pytest.mark.parametrize("world_of", [trained, trained_in_shares, trained_under_label_dp, trained_alone])
def test_the_same_training_again_is_free_in_both(
    world_of: Callable[[Path], World], tmp_path: Path, speed_is_not_measured: None
) -> None:
    """No limit has room for another training. Nobody gave a seed: the parties remember what they drew."""
    world = world_of(tmp_path)
    fill(world)
    assert refusals_of_check(world)[0] == []
    with quick_keys():
        world.run()
