"""The answer "enough rows match" leaks: repeated with other numbers, it reveals how many match.

Repeated with tables that lack one record, it reveals whether that record matches. Neither a data party nor the
coordinator may learn this.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from blindfit.algorithms.errors import BlindfitError, CannotTakePart, DataError, PolicyRefused
from blindfit.algorithms.protocols import link
from blindfit.coordinator.cli.main import app
from blindfit.parties.data.source import Source
from blindfit.parties.store.account import Disclosure
from blindfit.parties.training import randomness
from blindfit.parties.vertical import alignment, linkages
from blindfit.parties.vertical.alignment import Alignment
from blindfit.parties.vertical.checkpoints import Checkpoints
from tests.each_case import each_case
from tests.hints.following import refused
from tests.quick_keys import quick_keys
from tests.world import World
from tests.world.vertical import bank_and_shops

# the persons 0 to 116 are in both tables, and 117 to 149 only in the bank's
ROWS, MATCHES = 150, 117
# The jobs reveal so little about labels that no count of it ends them.
ALL_ROWS = ("taylor.epochs=1", "taylor.batch_rows=96", "taylor.validation_fraction=0", "taylor.jitter=2")
DATA_PARTIES = ("bank", "shop-a")


LINKED = "[policy.taylor]\nmin_linked = {}"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[World]:
    """The data parties accept any number of matches."""
    project = bank_and_shops(tmp_path, rows=ROWS)
    table = rows_of(project, "shop-a")
    names = [name if int(name[1:]) < MATCHES else f"nobody else {name}" for name in table["name"].to_pylist()]
    write_rows(project, "shop-a", table.set_column(table.column_names.index("name"), "name", pa.array(names)))
    for name in DATA_PARTIES:
        project.edit(f"{name}.toml", LINKED.format(30), f"min_common = 1\n{LINKED.format(1)}")
    with quick_keys():
        yield project


def rows_of(project: World, name: str) -> pa.Table:
    return pyarrow.csv.read_csv(project.root / f"{name}.csv")


def write_rows(project: World, name: str, table: pa.Table) -> None:
    pyarrow.csv.write_csv(table, project.root / f"{name}.csv")


def enough(project: World, least: int, *overrides: str, job: str = "linkage.toml") -> bool:
    """Return True if the coordinator sees the job end well; False if a party cannot take part."""
    try:
        project.run(*ALL_ROWS, f"align.min_common={least}", *overrides, job=job)
    except CannotTakePart:
        return False
    return True


def bisected(project: World) -> int:
    """Return the number of matches, found by which jobs end well."""
    least, most = 0, ROWS
    while least < most:
        tried = (least + most + 1) // 2
        least, most = (tried, most) if enough(project, tried) else (least, tried - 1)
    return least


def linked(project: World, name: str) -> list[Disclosure]:
    with project.store(name) as store:
        entries = store.reader().disclosures(subject="membership")
    return [entry for entry in entries if entry.event.startswith(linkages.EVENT)]


def start_again(project: World, *names: str) -> None:
    """Start the linkages again, as the operators of both or these parties may do with a reason."""
    for name in names or DATA_PARTIES:
        file, reason = str(project.path(f"{name}.toml")), ("--reason", "a new contract")
        done = CliRunner().invoke(app, ["ledger", file, "--reset-account", "rows", *reason])
        assert done.exit_code == 0, done.output


# --- how many match ----------------------------------------------------------------------------------------


def test_where_any_number_may_follow_another_the_matches_are_counted(
    project: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linkages, "_check", lambda *_: None)
    assert bisected(project) == MATCHES


@pytest.mark.parametrize("first", [MATCHES, MATCHES + 1])
def test_people_are_linked_at_one_number(project: World, first: int) -> None:
    """The rule holds after a first linkage that failed or ended well, and after either party publishes."""
    answer = enough(project, first)
    assert answer == (first <= MATCHES)
    numbers = f"at min_common = {first}, .*: set align.min_common = {first}$"
    said = f"align: the people of rows were first linked with .* {numbers}"
    for number in (first - 1, first + 1, 1):
        with pytest.raises(PolicyRefused, match=said):
            enough(project, number)
    project.publish("bank")
    with pytest.raises(PolicyRefused, match=f"(bank|shop-a) refuses the job: {said}"):
        enough(project, 75)
    assert enough(project, first) == answer
    for name in DATA_PARTIES:
        project.publish(name)
    with refused(
        "the people of {} were first linked with {} at min_common = {}, and other numbers would reveal how many rows "
        "match: set align.min_common = {}"
    ) as told:
        enough(project, 75)
    assert told.set("align.min_common") == f"align.min_common={first}"
    assert enough(project, first) == answer


@pytest.mark.parametrize("forgets", DATA_PARTIES)
def test_a_linkage_that_one_party_refuses_costs_the_other_nothing(forgets: str, project: World) -> None:
    assert enough(project, MATCHES)
    start_again(project, forgets)
    counted = questions_counted(project)
    with pytest.raises(PolicyRefused, match="were first linked with"):
        enough(project, 75)
    assert questions_counted(project) == counted


def questions_counted(project: World) -> dict[str, list[str]]:
    """Return the questions that each data party has counted."""
    found = {}
    for name in DATA_PARTIES:
        with project.store(name) as store:
            found[name] = [entry.question for entry in store.reader().disclosures(subject="membership")]
    return found


def test_an_account_that_started_again_counts_a_question_of_before(project: World) -> None:
    assert enough(project, MATCHES)
    start_again(project)
    assert enough(project, MATCHES)
    with pytest.raises(PolicyRefused, match=f"first linked with .* at min_common = {MATCHES}, "):
        enough(project, 75)


def test_a_draw_of_who_is_held_out_is_no_linkage(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both reveal who is in the other's table, and each has its own limit."""
    monkeypatch.setattr(linkages, "MOST_MEMBERSHIP", 1)
    project.job("taylor", file="by-id.toml", parties=("bank", "shop-a", "notary"), align={"min_common": 50})
    assert enough(project, 50, job="by-id.toml")
    with project.store("bank") as store:
        events = [entry.event for entry in store.reader().disclosures(subject="membership")]
        assert events == [randomness.EVENT, linkages.FOUND]
    assert enough(project, MATCHES)


def test_it_is_written_before_a_filter_leaves(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that loses its process at the worst moment has not forgotten."""

    def lost(*_: Any) -> None:
        raise DataError("the machine is gone")

    with monkeypatch.context() as patch:
        patch.setattr(link, "step_1_filters", lost)
        assert not enough(project, 75)
    assert [len(linked(project, name)) for name in DATA_PARTIES] == [1, 1]
    with pytest.raises(PolicyRefused, match=r"were first linked with .* at min_common = 75"):
        enough(project, 76)


def test_other_records_under_the_same_snapshot_are_an_answer_more_and_no_entry(
    project: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The count holds only against parties that follow the protocol, and every page states this."""
    read = Source.records

    def without(person: int) -> Any:
        def records(source: Source, fields: Any) -> Any:
            found = read(source, fields)
            if any(name.startswith("nobody else") for name in found["name"]):
                return found  # the other party's
            return {"name": ["invented" if name == f"p{person}" else name for name in found["name"]]}

        return records

    answers = []
    for person in (3, 130, 40, 149):
        monkeypatch.setattr(Source, "records", without(person))
        answers.append(enough(project, MATCHES))
    assert answers == [person >= MATCHES for person in (3, 130, 40, 149)]
    assert [len(linked(project, name)) for name in DATA_PARTIES] == [1, 1]


# --- who matches -------------------------------------------------------------------------------------------


def asked_of(project: World, person: int) -> bool:
    """Return whether this person matches, by a table without that person; exactly as many match as the job requires."""
    whole = rows_of(project, "bank")
    write_rows(project, "bank", whole.filter(pa.compute.not_equal(whole["id"], f"p{person}")))
    project.publish("bank")
    try:
        return not enough(project, MATCHES)
    finally:
        write_rows(project, "bank", whole)


PERSONS = (3, 130, 40, 149, 116, 117)


def test_where_linkages_are_not_counted_every_person_can_be_asked_about(
    project: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linkages, "_check", lambda *_: None)
    assert [person for person in PERSONS if asked_of(project, person)] == [3, 40, 116]


def test_of_the_same_people_so_many_bits_are_told_and_no_more(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds after either party publishes. Ids reveal who is in both tables anyway."""
    monkeypatch.setattr(linkages, "MOST_MEMBERSHIP", 3)
    said = "refuses the job: align: 3 linkages of the people of rows with (bank|shop-a) were begun"
    assert [asked_of(project, person) for person in PERSONS[:3]] == [True, False, True]
    for options in ([], ["align.threshold=0.5"], ["align.fold=false"]):
        project.publish("bank")
        with pytest.raises(PolicyRefused, match=said):
            enough(project, MATCHES, *options)
    project.publish("shop-a")
    with refused(
        "{} linkages of the people of {} with {} were begun, and each reveals whether enough rows match: align by ids, "
        "or have its operator start the account again "
        "(`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)"
    ):
        enough(project, MATCHES)
    assert enough(project, 50, job="job.toml")
    start_again(project)
    assert enough(project, MATCHES)


@each_case("option", ["align.threshold=0.9", "align.fold=false", 'align.fields=["name:text:20"]'])
def test_another_way_to_link_is_another_question(project: World, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.setattr(linkages, "MOST_MEMBERSHIP", 1)
    assert enough(project, MATCHES)
    with pytest.raises(PolicyRefused, match="1 linkages of the people of rows"):
        enough(project, MATCHES, option)


# --- what goes on ------------------------------------------------------------------------------------------


def test_the_same_question_is_free(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linkages, "MOST_MEMBERSHIP", 1)
    assert enough(project, MATCHES)
    assert enough(project, MATCHES)
    assert enough(project, MATCHES, "taylor.epochs=2")
    assert [len(linked(project, name)) for name in DATA_PARTIES] == [1, 1]


def test_a_training_that_stopped_goes_on(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resumed training links nothing; since it began its parties may have linked, so that another job is the
    latest.
    """
    keep, begun = Checkpoints.keep, set()

    def lost(self: Checkpoints, *kept: Any) -> None:
        keep(self, *kept)
        begun.add(self.session)
        if "shop-a" in str(self.directory):
            raise DataError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "keep", lost)
        assert not enough(project, MATCHES, "taylor.epochs=2")
    (stopped,) = begun
    project.publish("bank")
    monkeypatch.setattr(linkages, "MOST_MEMBERSHIP", 1)
    assert enough(project, MATCHES, "taylor.epochs=2", f"taylor.resume={stopped}")


# --- what a policy lets pass -------------------------------------------------------------------------------


def invented(project: World, person: str) -> None:
    """Write a table for the bank that has one person and inventions."""
    table = rows_of(project, "bank")
    ids = [person, *(f"nobody {i}" for i in range(1, ROWS))]
    write_rows(project, "bank", table.set_column(0, "id", pa.array(ids)))
    project.publish("bank")


def test_where_one_common_row_is_enough_ids_are_asked_about(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    project.edit("shop-b.toml", LINKED.format(30), "min_common = 1")
    align, common = alignment.align_by_id, list[int]()

    async def told(*asked: Any) -> Alignment:
        aligned = await align(*asked)
        common.append(len(aligned.positions))
        return aligned

    monkeypatch.setattr(alignment, "align_by_id", told)
    for person, is_there in (("p3", True), ("p300", False)):
        invented(project, person)
        common.clear()
        with pytest.raises(BlindfitError):  # in both cases: one row is not enough to train on
            project.run("align.min_common=1")
        assert set(common) == ({1} if is_there else set())


@pytest.mark.parametrize("careful", ["bank", "shop-a", "shop-b"])
def test_by_default_no_job_asks_about_so_few(project: World, careful: str) -> None:
    """One careful party is enough."""
    if careful in DATA_PARTIES:
        project.edit(f"{careful}.toml", f"min_common = 1\n{LINKED.format(1)}\n", "")
    if careful != "shop-b":
        project.edit("shop-b.toml", LINKED.format(30), "min_common = 1")
    for person in ("p3", "p300"):
        invented(project, person)
        with pytest.raises(PolicyRefused) as refused:
            project.run("align.min_common=19")
        assert refused.value.message == (
            f"{careful} refuses the job: align.min_common: 19 is less than its policy.min_common = 20: set "
            "align.min_common = 20, or more"
        )


@pytest.mark.parametrize("careful", DATA_PARTIES)
def test_by_default_no_linkage_asks_about_so_few(project: World, careful: str) -> None:
    project.edit(f"{careful}.toml", f"min_common = 1\n{LINKED.format(1)}\n", "")
    with pytest.raises(PolicyRefused, match=f"{careful} refuses the job: align.min_common: 99 is less than its polic"):
        enough(project, 99)
    assert enough(project, 100)
