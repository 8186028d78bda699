"""`check` of running parties answers as `submit` does, and the parties keep nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refusals.case import Change
from tests.refusals.up import answers
from tests.refusals.worlds import setting, settings, uploads, walr
from tests.world import World


def unknown_dataset(world: World) -> None:
    world.set("parties.meter.dataset", "clicks", "job")


@pytest.mark.parametrize(
    ("change", "sets", "said"),
    [
        (setting("policy.accept_seed", False, "meter"), ["seed=3"], "seed: the parties draw splits"),
        (setting("policy.systems", ["evaluate"], "meter"), [], "protocol: walr is not a system"),
        (setting("policy.max_epsilon", 0.5, "meter"), [], "more than its max_epsilon = 0.5"),
        (setting("populations", {"people": {"epsilon": 0.5, "delta": 1e-5}}, "meter"), [], "would be passed"),
        (unknown_dataset, [], "dataset: it has no dataset named clicks"),
        (
            settings(("peers.bank.role", "active", "meter"), ("datasets.rows.active_parties", ["bank"], "meter")),
            [],
            "dataset: there is no dataset rows for shop",
        ),
        (setting("datasets.rows.features", None, "shop"), [], "shop cannot take part; its operator knows why"),
        (uploads(20), [], "20 uploads of this party had no answer"),
    ],
)
def test_both_answer_alike(change: Change, sets: list[str], said: str, tmp_path: Path) -> None:
    world = walr(tmp_path)
    change(world)
    by_check, by_submit = answers(world, *sets)
    assert by_check == by_submit
    assert said in by_check


def test_what_is_not_published(tmp_path: Path) -> None:
    by_check, by_submit = answers(walr(tmp_path), first_snapshots=False)
    assert by_check == by_submit
    assert "rows is not published" in by_check


def test_a_job_that_is_accepted(tmp_path: Path) -> None:
    assert answers(walr(tmp_path)) == ("", "")
