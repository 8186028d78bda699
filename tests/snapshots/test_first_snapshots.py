"""The first snapshot of a dataset: its operator makes it, and never a job."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import BlindfitError, CannotTakePart, ConfigError, DataError, PolicyRefused
from blindfit.coordinator.running.snapshots import find_unpublished
from blindfit.parties.node import PartyNode
from blindfit.parties.snapshots.populations import schedule_waits
from tests.certificates import quick_connections
from tests.hints.following import refused_value
from tests.interference.systems import SYSTEMS
from tests.interference.world import files_of
from tests.quick_keys import quick_keys
from tests.snapshots.bank import BUDGET, ROWS, Bank
from tests.world import World
from tests.world.vertical import bank_and_shops

RELEASES = {"walr": "meter", "label-dp": "meter", "walr-split": "east", "dp-lr": "clinic", "taylor-label-dp": "bank"}
NOT_PUBLISHED = "rows is not published: the party's operator runs `blindfit snapshot PARTY.TOML rows`"


@contextlib.asynccontextmanager
async def up(world: World, *, first_snapshots: bool = True) -> AsyncIterator[dict[str, PartyNode]]:
    with quick_connections(world.path("ca")), quick_keys():
        async with world.up(world.load(), first_snapshots=first_snapshots) as nodes:
            yield nodes


async def ended(world: World, nodes: dict[str, PartyNode]) -> BlindfitError | None:
    """Run the case's job, and return its result."""
    try:
        await world.session(world.load(), nodes).run()
    except BlindfitError as error:
        return error
    return None


# --- jobs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RELEASES)
async def test_a_job_on_what_nobody_published_is_refused_and_makes_nothing(name: str, tmp_path: Path) -> None:
    """This holds for each kind of party, until the operator publishes, without a restart."""
    world, owner = files_of(SYSTEMS[name](), tmp_path), RELEASES[name]
    async with up(world, first_snapshots=False) as nodes:
        for party in SYSTEMS[name]().datasets:
            if party != owner:
                world.publish(party)
        refused = await ended(world, nodes)
        assert isinstance(refused, PolicyRefused)
        assert (refused.party, refused.field, refused.reason) == (owner, "dataset", NOT_PUBLISHED)
        assert nodes[owner].party.snapshots.all_of("rows") == []
        world.publish(owner)
        assert await ended(world, nodes) is None
        assert [made.row.number for made in nodes[owner].party.snapshots.all_of("rows")] == [1]


async def test_a_further_dataset_of_a_job_is_not_published_by_it_either(tmp_path: Path) -> None:
    case = SYSTEMS["label-dp"]().with_job(label_dp__evaluate_on="study")
    world = files_of(case, tmp_path)
    world.set("datasets.study", STUDY, "shop")
    rows = [f"q{i},{i % 7},{i % 3},{i % 5}" for i in range(30)]
    (tmp_path / "study.csv").write_text("\n".join(["id,label,x0,x1", *rows]) + "\n")
    async with up(world, first_snapshots=False) as nodes:
        for party in case.datasets:
            world.publish(party)
        refused = await ended(world, nodes)
        assert isinstance(refused, PolicyRefused)
        assert refused.reason == NOT_PUBLISHED.replace("rows", "study")
        world.publish("shop", "study")
        assert await ended(world, nodes) is None


STUDY = {"url": "csv:study.csv", "id": "id", "features": "rest", "label": "label", "label_kind": "number"}


async def test_what_is_described_anew_and_published_waits_for_a_restart(tmp_path: Path) -> None:
    """The operator edits the file while the party is running: a job neither reads the old rows nor publishes them
    again.
    """
    world = files_of(SYSTEMS["dp-lr"](), tmp_path)
    async with up(world) as nodes:
        assert await ended(world, nodes) is None
        world.set("datasets.rows.features", ["x0"], "clinic")
        assert await ended(world, nodes) is None  # until then the party reads its earlier snapshot
        world.publish("clinic")
        with capture_logs() as logs:
            assert isinstance(await ended(world, nodes), CannotTakePart)
        assert any("than this process has read" in str(log.get("reason")) for log in logs)
    async with up(world) as nodes:
        assert await ended(world, nodes) is None
        made = nodes["clinic"].party.snapshots.all_of("rows")
        assert [snapshot.row.number for snapshot in made] == [1, 2]
        assert made[-1].source().feature_names == ("x0",)


# --- a party's start ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RELEASES)
async def test_a_start_publishes_what_never_was_and_says_so(name: str, tmp_path: Path) -> None:
    world, owner = files_of(SYSTEMS[name](), tmp_path), RELEASES[name]
    with capture_logs() as logs:
        async with up(world) as nodes:
            assert await ended(world, nodes) is None
    told = [log for log in logs if log["event"] == "dataset is published"]
    assert sorted((log["dataset"], log["snapshot"]) for log in told) == [("rows", 1)] * len(SYSTEMS[name]().datasets)
    with capture_logs() as logs:
        async with up(world) as nodes:
            assert [made.row.number for made in nodes[owner].party.snapshots.all_of("rows")] == [1]
    assert [log for log in logs if log["event"] == "dataset is published"] == []


@pytest.mark.parametrize("name", RELEASES)
async def test_a_party_is_up_without_a_dataset_whose_rows_are_wrong(name: str, tmp_path: Path) -> None:
    """Only its operator learns what is wrong; others learn as much as about any dataset that is not published."""
    world, owner = files_of(SYSTEMS[name](), tmp_path), RELEASES[name]
    lines = (tmp_path / f"{owner}.csv").read_text().splitlines()
    (tmp_path / f"{owner}.csv").write_text("\n".join([*lines, lines[-1]]) + "\n")
    with capture_logs() as logs:
        async with up(world) as nodes:
            refused = await ended(world, nodes)
            (tmp_path / f"{owner}.csv").write_text("\n".join(lines) + "\n")
            world.publish(owner)
            assert await ended(world, nodes) is None
    assert isinstance(refused, PolicyRefused)
    assert (refused.party, refused.reason) == (owner, NOT_PUBLISHED)
    refused_value("{} is not published: the party's operator runs `blindfit snapshot PARTY.TOML {}`", refused.reason)
    (told,) = [log for log in logs if log["event"] == "dataset is not published"]
    assert (told["log_level"], told["dataset"]) == ("error", "rows")
    assert "the id is that of row" in told["reason"]


# --- populations --------------------------------------------------------------------------------------------


def made_by(bank: Bank) -> list[str]:
    """Return the datasets that a start publishes."""
    bank.snapshots.make_first()
    return sorted({row.dataset for row in bank.kept.reader().snapshots()})


def test_a_start_leaves_out_a_column_that_cannot_be_read(tmp_path: Path) -> None:
    """A job that needs the column is refused; the others run."""
    bank = Bank(tmp_path)
    bank.write(ROWS.replace("44,", "1e999,11"))
    assert made_by(bank) == ["loans"]
    with pytest.raises(DataError, match=r"column age: .*snapshot 1 has no column age"):
        bank.snapshots.require_current("loans").source()


def test_a_party_leaves_a_second_population_to_its_operator(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    with capture_logs() as logs:
        assert made_by(bank) == ["loans"]
    (told,) = [log["event"] for log in logs if log["log_level"] == "warning"]
    assert told.startswith("other waits for `blindfit snapshot`: the party also has the population people, and people")
    bank.snapshots.publish("other")
    assert made_by(bank) == ["loans", "other"]


@pytest.mark.parametrize("wrong", ["", "loans", "other"])
@pytest.mark.parametrize("same", [True, False])
def test_whether_a_dataset_waits_follows_from_no_row(wrong: str, same: bool, tmp_path: Path) -> None:
    """The rows may be known under the other population or not, and be right or wrong in either dataset."""
    bank = Bank(tmp_path)
    loans = (tmp_path / "loans.csv").read_text()
    if same:
        (tmp_path / "other.csv").write_text(loans)
    if wrong:
        (tmp_path / f"{wrong}.csv").write_text("id,label,age,income\n,1,1,1\n")
    assert made_by(bank) == ([] if wrong == "loans" else ["loans"])
    assert bank.snapshots.waits_for_operator("loans") == ""
    assert bank.snapshots.waits_for_operator("other") != ""


LONG_AGO = "UPDATE snapshots SET made = '2020-01-01T00:00:00+00:00'"


def test_datasets_of_one_population_or_of_none_are_published_by_the_party(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    bank.set("datasets.other.population", "people")
    bank.set("populations.visitors", None)
    assert made_by(bank) == ["loans", "other"]
    bank.set("datasets.other.population", None)
    assert bank.snapshots.waits_for_operator("other") == ""


def test_a_population_that_was_renamed_waits_for_the_operator(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    bank.snapshots.publish("loans")
    bank.set("datasets.loans.population", "clients")
    bank.set("populations.clients", BUDGET)
    bank.set("populations.people", None)
    assert "the population people" in bank.snapshots.waits_for_operator("loans")


@pytest.mark.parametrize("same", [True, False])
def test_a_schedule_does_not_tell_whether_rows_are_known(same: bool, tmp_path: Path) -> None:
    """A snapshot that was due and is missing would reveal it.

    So no snapshot is made until the operator has declared whose people they are; then one is made for any rows.
    """
    bank = Bank(tmp_path)
    bank.set("datasets.other.snapshot_every_h", 24)
    bank.snapshots.publish("loans")
    bank.snapshots.publish("other")
    if same:
        (tmp_path / "other.csv").write_text((tmp_path / "loans.csv").read_text())
    bank.kept._db.execute(LONG_AGO)
    assert not bank.snapshots.overdue("other")
    with capture_logs() as logs:
        bank.snapshots.tell_of_changes()
    assert schedule_waits(bank.settings("bank"), "other") in [log["event"] for log in logs]
    assert schedule_waits(bank.settings("bank"), "other") in bank.snapshots.cautions(bank.snapshots.current("other"))
    made = bank.snapshots.publish("other", other_people=True)
    assert schedule_waits(bank.settings("bank"), "other") not in bank.snapshots.cautions(made)
    bank.kept._db.execute(LONG_AGO)
    assert bank.snapshots.overdue("other")
    bank.snapshots.make_overdue("other")
    assert [made.row.number for made in bank.snapshots.all_of("other")] == [1, 2, 3]


@pytest.mark.parametrize("same", [True, False])
def test_only_its_operator_publishes_a_public_dataset_next_to_people_with_a_budget(same: bool, tmp_path: Path) -> None:
    """The dataset is refused if these people are in it, and others would see whether it is published."""
    bank = Bank(tmp_path)
    bank.set("datasets.other.population", None)
    bank.set("populations.visitors", None)
    bank.set("datasets.other.public", True)
    bank.set("datasets.other.snapshot_every_h", 24)
    strangers = bank.path("other.csv").read_text()
    if same:
        bank.path("other.csv").write_text((tmp_path / "loans.csv").read_text())
    assert made_by(bank) == ["loans"]
    assert "waits for `blindfit snapshot`" in bank.snapshots.waits_for_operator("other")
    with pytest.raises(ConfigError, match="public = true, but its ids") if same else contextlib.nullcontext():
        bank.snapshots.publish("other")
    if same:
        bank.path("other.csv").write_text(strangers)
        bank.snapshots.publish("other")
        bank.path("other.csv").write_text((tmp_path / "loans.csv").read_text())
    bank.kept._db.execute(LONG_AGO)
    assert not bank.snapshots.overdue("other")
    told = " ".join(bank.snapshots.cautions(bank.snapshots.current("other")))
    assert "the schedule of other does not run: only `blindfit snapshot` and `blindfit run` publish it" in told


def test_run_publishes_a_public_dataset_or_gives_its_owner_the_refusal(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    bank.set("datasets.other.population", None)
    bank.set("populations.visitors", None)
    bank.set("datasets.other.public", True)
    bank.snapshots.publish("loans")
    assert list(find_unpublished(bank.settings("bank"), tmp_path, ["other"])) == [("other", "")]


def test_run_gives_the_owner_of_rows_that_scores_would_reveal_the_refusal_before_anything_runs(tmp_path: Path) -> None:
    world = bank_and_shops(tmp_path, rows=120)
    world.set("datasets.rows.models_per_row", None, "shop-b")
    done = world.blindfit("run", "job.toml", "--out", "out")
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert "datasets.rows: a party that gets scores could compute its features: it has 3 columns" in told
    assert 'datasets.rows.models_per_row = 0 to give no scores, or datasets.rows.models_per_row = "unlimited"' in told
    assert not list(world.root.glob("out/*/log*"))
    with world.store("bank") as store:
        assert not store.reader().sessions()


async def test_a_party_that_has_started_leaves_such_rows_unpublished_and_no_job_publishes_them(tmp_path: Path) -> None:
    world = files_of(SYSTEMS["taylor"](), tmp_path)
    world.set("datasets.rows.models_per_row", None, "shop-a")
    with capture_logs() as logs:
        async with up(world) as nodes:
            refused = await ended(world, nodes)
            assert nodes["shop-a"].party.snapshots.all_of("rows") == []
    assert isinstance(refused, PolicyRefused)
    assert (refused.party, refused.reason) == ("shop-a", NOT_PUBLISHED)
    assert any("could compute its features" in str(log.get("reason")) for log in logs)
