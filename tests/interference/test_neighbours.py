"""Nobody else can distinguish two worlds that differ in one private unit, except by what the protocol's
table declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from blindfit.parties.data import source
from blindfit.parties.data.row_batch import RowBatch
from tests.interference import world
from tests.interference.neighbours import (
    COORDINATOR,
    FIRST_USES,
    NORM,
    PAIRS,
    Pair,
    Probe,
    a_feature,
    set_up,
    told_apart,
)
from tests.interference.settings import built_with
from tests.interference.systems import SYSTEMS
from tests.interference.views import differences, not_random
from tests.postgres import PostgresServer

ALL = (*PAIRS, *FIRST_USES)
CELLS = [pytest.param(pair, observer, id=f"{pair.id}-{observer}") for pair in ALL for observer in pair.observers]


@pytest.mark.parametrize(("pair", "observer"), CELLS)
def test_others_see_the_same(pair: Pair, observer: str, probe: Probe) -> None:
    assert told_apart(pair, observer, probe) == []


ON_A_SERVER_TOO = (
    "walr-a-label",
    "dp-lr-between-jobs",
    "taylor-label-dp-resumed",
    "taylor-resumed-published-anew",
    "dp-lr-never-published",
)
ON_A_SERVER = [replace(pair, source="postgresql") for pair in ALL if pair.id in ON_A_SERVER_TOO]


@pytest.mark.postgresql
@pytest.mark.parametrize("pair", ON_A_SERVER, ids=repr)
def test_others_see_the_same_where_the_data_are_in_postgresql(
    pair: Pair, probe: Probe, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "SERVERS", [postgres])
    assert [line for observer in pair.observers for line in told_apart(pair, observer, probe)] == []
    assert bool(probe.worlds(pair)[1].errors[-1]) == pair.refused


@pytest.mark.parametrize("pair", ALL, ids=repr)
def test_two_worlds_of_a_pair_are_two(pair: Pair, probe: Probe) -> None:
    """The worlds differ, and their job runs unless the pair expects a refusal: else the comparison would
    show little.
    """
    one, other = pair.build(pair.case, probe)
    differing = {
        party
        for mine, its in zip((one.case.data, *one.then), (other.case.data, *other.then), strict=True)
        for party in mine
        if mine[party] != its[party]
    }
    assert differing == {pair.private}
    assert pair.refused == all(any(ran.errors) for ran in probe.worlds(pair))


def test_every_system_has_a_pair() -> None:
    assert len({pair.id for pair in ALL}) == len(ALL)
    assert {pair.system for pair in PAIRS} == SYSTEMS.keys()


# --- the harness itself: the same world twice ---------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_random_ids_are_drawn_anew(name: str, probe: Probe) -> None:
    """A hash of the data would be equal in both runs."""
    assert not_random(probe.run(set_up(name)).record, probe.again(set_up(name)).record) == []


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_same_world_looks_the_same(name: str, probe: Probe) -> None:
    """The comparison separates chance from data, and every party and the coordinator are recorded."""
    case = set_up(name)
    ran, again = probe.run(case), probe.again(case)
    assert ran.errors == ("",)
    assert ran.record.charged == bool(case.covered)
    for observer in (*case.roles, COORDINATOR):
        found = differences(ran.record, again.record, observer, declared=case.declares, covered=bool(case.covered))
        assert found == []
    heard = {receiver for _, receiver, _ in ran.record.streams}
    assert heard == ({*case.roles, COORDINATOR} if len(case.roles) > 1 else {COORDINATOR})


def test_refusals_are_heard(probe: Probe) -> None:
    """The coordinator hears the refusal of a proposal; the party that made a request hears its refusal."""
    proposed = probe.run(SYSTEMS["walr"]().with_policy("shop", max_epsilon=0.1)).record
    (line,) = proposed.streams["shop", COORDINATOR, "Propose"]
    assert line.what == "error POLICY_REFUSED"
    assert [field.name for field in line.fields] == ["error.field", "error.party", "error.reason"]
    asked = probe.run(SYSTEMS["walr"]().with_policy("meter", min_rows=1000)).record
    assert [line.what for line in asked.streams["meter", "shop", "Measurement"]] == [
        "DatasetDescription",
        "error TOO_FEW_ROWS",
    ]


@pytest.mark.parametrize(("system", "is_told"), [("taylor", True), ("taylor-label-dp", False)])
def test_a_hold_out_loss_is_told_where_no_budget_pays_and_nowhere_else(
    probe: Probe, system: str, is_told: bool
) -> None:
    """The training was cut off and goes on: the coordinator has not waited for an end."""
    (pair,) = (pair for pair in PAIRS if pair.id == f"{system}-resumed")
    streams = probe.worlds(pair)[0].record.streams.values()
    told = {field.name for lines in streams for line in lines for field in line.fields}
    assert ("progress/hold-out loss" in told) == is_told


# --- rows in many batches, of which the next are made while one is looked at ---------------------------------


def by_sevens(pair: Pair) -> Pair:
    return replace(pair, build=built_with(pair.build, {}, batch_rows=7))


IN_BATCHES = ("walr-a-label", "walr-a-feature", "walr-holders-a-feature", "label-dp-a-feature", "dp-lr-a-label")


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.id in IN_BATCHES], ids=repr)
def test_others_see_the_same_where_batches_are_made_ahead(pair: Pair, probe: Probe) -> None:
    read = by_sevens(pair)
    assert [line for observer in read.observers for line in told_apart(read, observer, probe)] == []


def test_batches_that_come_as_soon_as_they_are_made_are_noticed(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch with a large value takes longer here, so the order of the rows would reveal who has one."""

    def as_made(make: Callable[[Any], RowBatch], items: Iterable[Any]) -> Iterator[RowBatch]:
        return iter(sorted(map(make, items), key=lambda batch: float(batch.features[:, :1].max(initial=0.0))))

    monkeypatch.setattr(source, "each_ahead", as_made)
    pair = by_sevens(Pair("walr", "a-feature", "shop", a_feature("shop", 99.0), NORM))
    assert any("WeightRows.ids" in line for line in told_apart(pair, "meter", Probe(probe.authority)))
