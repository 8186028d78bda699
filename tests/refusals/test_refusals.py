"""What `run` refuses, `check` refuses: in the same words, of the same party, by the same place in the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from blindfit.coordinator.jobs.check import check
from tests.quick_keys import quick_keys
from tests.refusals.both import assert_equal, refusal_of_run
from tests.refusals.case import Case
from tests.refusals.cases import CASES
from tests.refusals.page import PAGE, render
from tests.refusals.sites import sites
from tests.refusals.table import REASONS, reason_of
from tests.refusals.worlds import taylor
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


def test_a_training_that_may_be_free_is_warned_of_in_the_words_of_run(
    tmp_path: Path, speed_is_not_measured: None
) -> None:
    """The post allows one model of its rows; the same training again would be free, and another one is refused."""
    world = taylor(tmp_path)
    world.set("taylor", {"epochs": 1}, "job")
    world.set("datasets.loans.models_per_row", 1, "post")
    with quick_keys():
        world.run()
    run = refusal_of_run(world, "taylor.l2=0.5")
    warnings = [finding for finding in check(world.load("taylor.l2=0.5")) if finding.level == "warning"]
    assert [finding for finding in warnings if run.said in finding.text]
