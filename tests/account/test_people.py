"""People are the same in every snapshot, and two populations of a party may not share them without permission."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.files.secret import PartySecret
from blindfit.parties.snapshots import people
from blindfit.parties.snapshots.people import PeopleKey
from tests.world import World

KEY = PeopleKey.of(PartySecret(b"k" * 32))
OTHER = PeopleKey.of(PartySecret(b"o" * 32))


def digests(*ids: str, key: PeopleKey = KEY) -> list[int]:
    return [int(digest) for digest in key.digests(pa.array(ids, pa.string()))]


@pytest.mark.parametrize("copied", ["AB 12", "ab12", " a b12", "00AB12", "\uff21\uff22" + "12", "Ab\t12"])
def test_what_a_copy_of_a_table_often_changes_does_not_matter(copied: str) -> None:
    assert digests(copied) == digests("ab12")


def test_different_people_and_different_parties_have_different_digests() -> None:
    many = [f"p{number}" for number in range(10_000)]
    assert len(set(digests(*many))) == len(many)
    assert digests("ab12", key=OTHER) != digests("ab12")
    assert digests("x" * 300) != digests("x" * 299)


def test_ids_of_one_table_that_look_alike_are_two_people() -> None:
    """Otherwise they would have one account and one jitter, which would reveal whether their labels are equal."""
    table = ["a1", "A1", " a 1", "b2"]
    found = KEY.digests_of([pa.array(table[:1], pa.string()), pa.array(table[1:], pa.string())])
    assert len(set(found.tolist())) == len(table)
    assert digests("a1")[0] in found[:3]  # one of them is the person that was known before
    assert found[3] == digests("b2")[0]
    again = KEY.digests_of([pa.array(table[::-1], pa.string())])
    assert again.tolist() == found[::-1].tolist()
    alone = KEY.digests_of([pa.array(["A1"], pa.string())])
    assert alone.tolist() == digests("a1")


def test_a_number_of_a_person_depends_on_person_value_and_purpose_alone() -> None:
    ids, labels = (
        pa.array([f"p{number}" for number in range(2000)], pa.string()),
        (np.arange(2000) % 2).astype(np.float64),
    )
    jitter = PeopleKey.of(PartySecret(b"k" * 32), "jitter", "people", "bought", "logistic", "0.25")
    drawn = jitter.uniforms(KEY.digests(ids), labels)
    order = np.random.default_rng(1).permutation(2000)
    again = jitter.uniforms(KEY.digests(ids.take(pa.array(order))), labels[order])
    assert (again == drawn[order]).all()
    assert (jitter.uniforms(KEY.digests(ids), 1 - labels) != drawn).all()
    size = PeopleKey.of(PartySecret(b"k" * 32), "jitter", "people", "bought", "logistic", "0.5")
    assert (size.uniforms(KEY.digests(ids), labels) != drawn).all()
    assert ((drawn > 0) & (drawn < 1)).all()
    assert abs(drawn.mean() - 0.5) < 6 / np.sqrt(12 * 2000)


def test_places_are_those_of_the_first_publication() -> None:
    known = np.array([5, 3, 9], np.uint64)
    assert people.places(known, np.array([9, 5, 5], np.uint64)).tolist() == [2, 0, 0]
    with pytest.raises(DataError, match="does not know"):
        people.places(known, np.array([4], np.uint64))


# --- two populations -------------------------------------------------------------------------------------------

IDS = np.array([f"Q{number:04}" for number in range(300)])
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def clinic(root: Path, copied: np.ndarray) -> World:
    """Make a measurement server with people, and a second table for another population."""
    other: dict[str, Any] = {"url": "csv:copied.csv", "id": "id", "label": "label", "population": "others"}
    other["active_parties"] = ["shop"]
    world = World(root).active("shop", {"id": IDS, "x": np.arange(300.0)})
    world.server(
        "clinic",
        {"id": IDS, "label": np.arange(300) % 2},
        datasets={"copied": other},
        populations={"people": BUDGET, "others": BUDGET},
    )
    world.write_table("copied", {"id": copied, "label": np.arange(len(copied)) % 2})
    world.publish("clinic")
    return world


@pytest.mark.parametrize(
    "copied",
    [
        IDS,
        np.append(IDS, "Q9999"),
        np.char.lower(IDS),
        np.char.add("  ", np.char.replace(IDS, "Q", "q ")),
        IDS[:3],
        np.array([*IDS[:20], *(f"R{number}" for number in range(5000))]),
    ],
    ids=["the same", "one row more", "lower case", "spaces", "a few of them", "twenty of many"],
)
def test_people_of_another_population_have_one_budget(copied: np.ndarray, tmp_path: Path) -> None:
    world = clinic(tmp_path, copied)
    with pytest.raises(ConfigError, match="the population people") as refused:
        world.publish("clinic", "copied")
    assert "--other-people" in (refused.value.hint or "")
    with world.store("clinic") as store:
        assert [row.dataset for row in store.reader().snapshots()] == ["rows"]
        assert store.reader().people("others") == []


def test_other_people_have_another_budget(tmp_path: Path) -> None:
    world = clinic(tmp_path, np.array([*IDS[:2], *(f"R{number}" for number in range(5000))]))
    world.publish("clinic", "copied")
    with world.store("clinic") as store:
        assert len(people.join(store.reader().people("others"))) == 5002
        assert len(people.join(store.reader().people("people"))) == 300


def test_the_same_people_in_another_snapshot_are_added_once(tmp_path: Path) -> None:
    world = clinic(tmp_path, IDS)
    write = world.write_table
    for ids in (IDS[::-1], np.char.lower(IDS), np.append(IDS, "Q9999")):
        write("clinic", {"id": ids, "label": np.arange(len(ids)) % 2})
        world.publish("clinic")
    with world.store("clinic") as store:
        assert len(people.join(store.reader().people("people"))) == 301
        assert people.unpack(store.reader().people_with_labels("people", "label")).sum() == 301


def test_a_dataset_without_a_population_is_published_whoever_is_in_it_and_its_owner_is_told(tmp_path: Path) -> None:
    """The party publishes it by itself: a refusal would reveal who is in the population."""
    rows = {"id": IDS, "x": np.arange(300.0)}
    world = World(tmp_path).active(
        "bank",
        rows | {"label": np.arange(300) % 2},
        about={"label": "label", "population": "people"},
        populations={"people": BUDGET},
        datasets={"new": {"url": "csv:new.csv", "id": "id", "features": "rest"}},
        policy={"systems": ["taylor"]},
    )
    world.write_table("new", rows)
    world.publish("bank")
    world.publish("bank", "new")
    told = world.blindfit("snapshot", "bank.toml", "new").stdout
    assert "300 of its ids also occur in the population people" in " ".join(told.split())
