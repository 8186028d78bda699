"""A running party publishes by its schedule, and goes on if a dataset cannot be published."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from blindfit.parties import node as module
from blindfit.parties.node import PartyNode
from tests.certificates import demo_authority
from tests.published import published
from tests.snapshots.bank import UNKNOWN
from tests.wire.meter import metering, settings_of


@pytest.fixture
def overdue(tmp_path: Path) -> PartyNode:
    """A measurement server whose only snapshot is years old."""
    settings = settings_of(demo_authority(tmp_path), tmp_path)
    daily = settings.datasets["labels"].model_copy(update={"snapshot_every_h": 24.0})
    node = PartyNode(settings.model_copy(update={"datasets": {"labels": daily}}), tmp_path)
    published(node.party.snapshots, "labels")
    node.party.store._db.execute("UPDATE snapshots SET made = '2020-01-01T00:00:00+00:00'")
    return node


@contextlib.asynccontextmanager
async def by_schedule(node: PartyNode, until: Callable[[], bool]) -> AsyncIterator[None]:
    schedule = asyncio.create_task(node._publish_by_schedule())
    async with asyncio.timeout(60):
        while not until():
            await asyncio.sleep(0.005)
    try:
        yield
        assert not schedule.done()
    finally:
        schedule.cancel()


async def test_what_is_overdue_is_published(overdue: PartyNode) -> None:
    snapshots = overdue.party.snapshots
    async with by_schedule(overdue, lambda: published(snapshots, "labels").row.number == 2):
        assert not snapshots.overdue("labels")


async def test_a_dataset_that_is_damaged_meanwhile_is_told_and_tried_again(
    overdue: PartyNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SCHEDULE_S", 0.0)
    (tmp_path / "labels.csv").write_text("id,label\na,7\n")
    with capture_logs() as logs:
        async with by_schedule(overdue, lambda: len(logs) >= 2):
            assert published(overdue.party.snapshots, "labels").row.number == 1
    told = {(log["event"], log["dataset"], log["log_level"]) for log in logs}
    assert told == {("dataset is not published", "labels", "error")}
    assert all("column label: the label is neither 0 nor 1" in log["reason"] for log in logs)


async def test_a_bug_in_one_dataset_is_told_without_a_value_and_the_others_are_published(
    overdue: PartyNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SCHEDULE_S", 0.0)
    labels = overdue.settings.datasets["labels"]
    overdue.settings.datasets.clear()
    overdue.settings.datasets.update({"broken": labels, "labels": labels})
    publish = overdue.party.snapshots.publish

    def publishing(dataset: str, **how: bool) -> object:
        if dataset == "broken":
            raise ValueError("the value of row 3 is 17")  # a foreign library's error may read like this
        return publish(dataset, **how)

    monkeypatch.setattr(overdue.party.snapshots, "publish", publishing)
    monkeypatch.setattr(overdue.party.snapshots, "overdue", lambda _: True)
    with capture_logs() as logs:
        async with by_schedule(overdue, lambda: published(overdue.party.snapshots, "labels").row.number > 1):
            pass
    told = next(log for log in logs if log.get("dataset") == "broken")
    assert (told["event"], told["error"]) == ("dataset is not published", "ValueError")
    assert "test_schedule.py" in told["where"]
    assert "17" not in str({name: value for name, value in told.items() if name != "where"})


async def test_a_start_removes_what_a_killed_publisher_left(tmp_path: Path) -> None:
    authority = demo_authority(tmp_path)
    snapshots = tmp_path / settings_of(authority, tmp_path).data_dir / "snapshots"
    async with metering(authority, tmp_path):  # the first start publishes
        (snapshots / f".building-{UNKNOWN}" / "rows").mkdir(parents=True)
    async with metering(authority, tmp_path):
        assert not (snapshots / f".building-{UNKNOWN}").exists()
