"""A limit on how many models may score a person: whose scores count, for how long, and what raises the number."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError, LedgerUnavailable, PolicyRefused
from blindfit.algorithms.protocols import predict
from blindfit.algorithms.statistics.vertical.score_leaks import SCORE_BITS, RowContent
from blindfit.parties.account.account import Account
from blindfit.parties.snapshots import scored
from blindfit.parties.snapshots.people import join, unpack
from blindfit.parties.snapshots.snapshot import content_of
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.store.database import Store
from blindfit.parties.systems import read_party
from blindfit.parties.vertical.model_store import ModelStore
from tests.each_case import each_case
from tests.predict.pair import Pair

ROWS, COLUMNS = 2000, 8
HALF, OTHER_HALF = np.arange(0, ROWS, 2), np.arange(1, ROWS, 2)


@pytest.fixture
def features() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, COLUMNS))


@pytest.fixture
def pair(tmp_path: Path, features: np.ndarray) -> Iterator[Pair]:
    made = Pair(tmp_path, features, dataset={"models_per_row": 1})
    for seed, name in enumerate(("one", "two", "three")):
        made.train(name, np.random.default_rng(seed + 1).normal(size=COLUMNS))
    yield made
    made.close()


def allow(pair: Pair, models: int) -> None:
    """Raise the limit as the shop's operator does in the file before a restart."""
    pair.dataset = {**pair.dataset, "models_per_row": models}
    pair.parties["shop"].store.close()
    pair.parties["shop"] = pair._party("shop")


def test_rows_are_counted_each_alone(pair: Pair) -> None:
    pair.scores("one", HALF)
    pair.scores("two", OTHER_HALF)
    with pytest.raises(PolicyRefused, match="the limit of a row"):
        pair.scores("two", np.r_[OTHER_HALF, HALF[:1]])
    pair.scores("two", OTHER_HALF[::-1])  # in any order of the alignment


def test_rows_that_are_left_out_do_not_move_the_count_to_others(pair: Pair) -> None:
    """A row that lacks a value is in the snapshot, and the others are counted at their places there."""
    path = pair.root / "shop.csv"
    header, first, *others = path.read_text().splitlines()
    name, _, *rest = first.split(",")
    path.write_text("\n".join([header, ",".join([name, "", *rest]), *others]) + "\n")
    pair.dataset = {"missing": "drop", "models_per_row": 1}
    allow(pair, 1)
    pair.scores("one", np.array([0, 5]))  # two of the remaining rows
    shop = pair.parties["shop"]
    snapshot = shop.snapshots.require_current("rows")
    (entry,) = shop.store.reader().disclosures(subject="scores")
    known = join(shop.store.reader().people(entry.population))
    assert set(known[unpack(entry.people, len(known))]) == set(snapshot.people()[[1, 6]])


def test_a_smaller_question_forgets_no_row(pair: Pair) -> None:
    pair.scores("one")
    pair.scores("one", HALF)
    with pytest.raises(PolicyRefused, match="the limit of a row"):
        pair.scores("two", OTHER_HALF)


def test_the_count_outlives_the_process_and_stays_with_people_whose_rows_are_published_again(pair: Pair) -> None:
    """This holds even if their ids are in upper case and their rows in another order, with other values."""
    pair.scores("one", HALF)
    allow(pair, 1)
    with pytest.raises(PolicyRefused, match="models_per_row"):
        pair.scores("two", HALF)
    table = pair.world.table("shop")
    ids = [str(name).upper() for name in table.pop("id")]
    pair.world.write_table("shop", {"id": ids[::-1]} | {name: column + 1.0 for name, column in table.items()})
    snapshots = pair.parties["shop"].snapshots
    assert list(snapshots.cautions(snapshots.publish("rows"))) == []
    with pytest.raises(PolicyRefused, match="a new snapshot changes nothing"):
        pair.scores("two", OTHER_HALF)  # the places of the same people now
    pair.scores("two", HALF)


def test_scores_that_were_given_are_given_again_after_another_partys_question(pair: Pair) -> None:
    first = pair.scores("one", HALF)
    shop = pair.parties["shop"]
    with shop.store.transaction() as transaction:
        people = transaction.disclosures(subject="scores")[0].people
        account = Account.of(shop.settings, "rows")
        entry = account.entry("scores", "", ["another bank"], "scores", "another model", 8, people=people)
        transaction.add_disclosure(entry)
    np.testing.assert_array_equal(pair.scores("one", HALF), first)
    with pytest.raises(PolicyRefused, match="the limit of a row"):
        pair.scores("one", OTHER_HALF)


@pytest.mark.parametrize(
    ("distinct", "models"), [([4096] * 6, 2), ([4096] * 4, 1), ([2] * 20 + [4096], 1), ([64] * 8, 1), ([64] * 3, 0)]
)
def test_rows_allow_as_many_models_as_half_of_their_bits_are_good_scores(distinct: list[int], models: int) -> None:
    assert RowContent.of(distinct).models == models


@pytest.mark.parametrize(
    ("columns", "dataset", "refusal"),
    [
        (3, {}, "it has 3 columns that vary, fewer than 4"),
        (3, {"models_per_row": 1}, "it has 3 columns that vary, fewer than 4"),
        (3, {"models_per_row": "unlimited"}, ""),
        (3, {"models_per_row": 0}, ""),
        (6, {"models_per_row": 3}, "its rows hold enough for scores of 2 models, not of 3"),
        (6, {"models_per_row": 2}, ""),
        (6, {}, ""),
    ],
)
def test_who_publishes_is_told_what_to_declare(
    tmp_path: Path, features: np.ndarray, columns: int, dataset: Any, refusal: str
) -> None:
    pair = Pair(tmp_path, features[:, :columns], dataset=dataset)
    snapshots = pair.parties["shop"].snapshots
    with pytest.raises(ConfigError, match=refusal) if refusal else contextlib.nullcontext():
        assert list(snapshots.cautions(snapshots.publish("rows"))) == []
    assert (snapshots.current("rows") is None) == bool(refusal)
    pair.close()


def test_a_declaration_that_fits_the_rows_needs_no_new_snapshot_and_another_needs_one(pair: Pair) -> None:
    first = pair.parties["shop"].snapshots.publish("rows")
    allow(pair, 3)  # three models of eight columns
    assert pair.parties["shop"].snapshots.require_current("rows").id == first.id
    allow(pair, 4)
    assert pair.parties["shop"].snapshots.current("rows") is None


def test_the_schedule_publishes_weak_rows_with_a_caution_and_others_see_the_same(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others would see that a scheduled snapshot is not made: the operator's first word stands."""
    snapshots = pair.parties["shop"].snapshots
    snapshots.publish("rows")
    table = pair.world.table("shop")
    pair.world.write_table("shop", {"id": table["id"]} | {f"c{j}": np.arange(ROWS) % 16 for j in range(COLUMNS)})
    monkeypatch.setattr(scored, "content_of", lambda row, _known: content_of(row))  # not what they held before
    monkeypatch.setattr(Snapshots, "overdue", lambda *_: True)
    snapshots.make_overdue("rows")
    made = snapshots.require_current("rows")
    assert "a party that gets scores could compute its features" in " ".join(snapshots.cautions(made))
    assert snapshots.require_current("rows").id == made.id
    with pytest.raises(ConfigError, match="could compute its features"):
        snapshots.publish("rows")
    assert snapshots.require_current("rows").id == made.id


def test_a_few_rows_to_score_are_judged_by_what_their_columns_held_before(tmp_path: Path, features: np.ndarray) -> None:
    pair = Pair(tmp_path, features, dataset={"models_per_row": 1})
    snapshots = pair.parties["shop"].snapshots
    snapshots.publish("rows")
    table = pair.world.table("shop")
    pair.world.write_table("shop", {name: column[:5] for name, column in table.items()})
    assert snapshots.publish("rows").row.rows == 5
    pair.close()


def test_an_equal_model_under_another_name_is_the_same(pair: Pair) -> None:
    pair.train("again", np.random.default_rng(1).normal(size=COLUMNS))
    np.testing.assert_array_equal(pair.scores("one"), pair.scores("again"))


def test_a_higher_number_counts_what_was_scored_before(pair: Pair) -> None:
    pair.scores("one")
    allow(pair, 2)
    pair.scores("two")
    with pytest.raises(PolicyRefused, match="have had scores of 2 models"):
        pair.scores("three")


def test_what_an_operator_let_pass_counts_when_he_takes_it_back(tmp_path: Path, features: np.ndarray) -> None:
    pair = Pair(tmp_path, features, dataset={"models_per_row": "unlimited"})
    for seed, name in enumerate(("one", "two")):
        pair.train(name, np.random.default_rng(seed).normal(size=COLUMNS))
        pair.scores(name)
    allow(pair, 2)
    pair.train("three", np.ones(COLUMNS))
    with pytest.raises(PolicyRefused, match="have had scores of 2 models"):
        pair.scores("three")
    pair.close()


def test_scores_that_were_exact_leave_no_room_for_others(pair: Pair, features: np.ndarray) -> None:
    """The part itself declares that it is not rounded."""
    pair.train("exact", np.ones(COLUMNS), rounding=0)
    with pytest.raises(PolicyRefused, match="more of a row than 13 bits for each model"):
        pair.scores("exact")
    pair.scores("one")


def test_nothing_leaves_before_it_is_counted(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(predict, "run_passive", lambda *arguments: sent.append(arguments))
    monkeypatch.setattr(Store, "transaction", _full)
    with pytest.raises(LedgerUnavailable):
        pair.scores("one")
    assert not sent


def _full(_store: Store) -> Any:
    raise LedgerUnavailable("the disk is full")


def test_rounding_hardly_moves_a_score(pair: Pair, features: np.ndarray) -> None:
    part = ModelStore(pair.parties["shop"].data_dir).read("one")
    assert part.score_rounding > 0
    exact = part.standardiser.transform(features) @ part.weights
    scores = pair.scores("one")
    assert len(np.unique(scores)) <= 2**SCORE_BITS
    step = np.diff(np.unique(scores)).min()
    assert np.abs(scores - exact).max() <= step


@each_case(
    ("role", "change", "words"),
    [
        ("passive", {"policy": {"models_per_row": 2}}, "policy.models_per_row is now datasets.NAME.models_per_row"),
        ("passive", {"datasets": {"rows": {"models_per_row": -1}}}, "datasets.rows.models_per_row: must be at least 0"),
        ("passive", {"datasets": {"rows": {"models_per_row": True}}}, "datasets.rows.models_per_row"),
        (
            "active",
            {"policy": {"systems": ["dp-lr", "label-dp"]}, "datasets": {"rows": {"models_per_row": 2}}},
            "models_per_row: does nothing",
        ),
        (
            "passive",
            {"datasets": {"rows": {"scores_may_be_solved_for": True}}},
            "datasets.rows.scores_may_be_solved_for is now datasets.rows.models_per_row",
        ),
    ],
)
def test_an_option_acts_or_is_refused(role: str, change: dict[str, Any], words: str) -> None:
    dataset = {"url": "csv:rows.csv", "id": "id", "features": "rest", **change.get("datasets", {}).get("rows", {})}
    values = {
        "name": "shop",
        "role": role,
        "identity": {"certificate": "c", "key": "k", "authority": "a"},
        "peers": {"coordinator": {"role": "coordinator"}},
        "policy": change.get("policy", {}),
        "datasets": {} if role == "key-node" else {"rows": dataset},
    }
    with pytest.raises(ConfigError) as caught:
        read_party(values, "shop.toml")
    assert words in str(caught.value)
