"""How many models may score a person: whose scores are counted, for how long, and what raises the number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError, LedgerUnavailable, PolicyRefused
from blindfit.algorithms.protocols import predict
from blindfit.algorithms.statistics.vertical.score_leaks import RowContent
from blindfit.parties.account.account import Account
from blindfit.parties.snapshots.people import join, unpack
from blindfit.parties.store.database import Store
from blindfit.parties.systems import read_party
from blindfit.parties.vertical.model_store import ModelStore
from tests.each_case import each_case
from tests.predict.pair import Pair

ROWS, COLUMNS = 2000, 6
HALF, OTHER_HALF = np.arange(0, ROWS, 2), np.arange(1, ROWS, 2)


@pytest.fixture
def features() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, COLUMNS))


@pytest.fixture
def pair(tmp_path: Path, features: np.ndarray) -> Iterator[Pair]:
    made = Pair(tmp_path, features, {"models_per_row": 1})
    for seed, name in enumerate(("one", "two", "three")):
        made.train(name, np.random.default_rng(seed + 1).normal(size=COLUMNS))
    yield made
    made.close()


def allow(pair: Pair, models: int) -> None:
    """What the shop's operator writes into his file before he starts it again."""
    pair.policy = {"models_per_row": models}
    pair.parties["shop"].store.close()
    pair.parties["shop"] = pair._party("shop")


def test_rows_are_counted_each_alone(pair: Pair) -> None:
    pair.scores("one", HALF)
    pair.scores("two", OTHER_HALF)
    with pytest.raises(PolicyRefused, match="the most that it allows of a row"):
        pair.scores("two", np.r_[OTHER_HALF, HALF[:1]])
    pair.scores("two", OTHER_HALF[::-1])  # in whatever order alignment puts them


def test_rows_that_are_left_out_do_not_move_the_count_to_others(pair: Pair) -> None:
    """A row that lacks a value is in the snapshot, and the others are counted at their places there."""
    path = pair.root / "shop.csv"
    header, first, *others = path.read_text().splitlines()
    name, _, *rest = first.split(",")
    path.write_text("\n".join([header, ",".join([name, "", *rest]), *others]) + "\n")
    pair.dataset = {"missing": "drop"}
    allow(pair, 1)
    pair.scores("one", np.array([0, 5]))  # of those that are left
    shop = pair.parties["shop"]
    snapshot = shop.snapshots.published("rows")
    (entry,) = shop.store.reader().disclosures(subject="scores")
    known = join(shop.store.reader().people(entry.population))
    assert set(known[unpack(entry.people, len(known))]) == set(snapshot.people()[[1, 6]])


def test_a_smaller_question_forgets_no_row(pair: Pair) -> None:
    pair.scores("one")
    pair.scores("one", HALF)
    with pytest.raises(PolicyRefused, match="the most that it allows of a row"):
        pair.scores("two", OTHER_HALF)


def test_the_count_outlives_the_process_and_stays_with_people_whose_rows_are_published_again(pair: Pair) -> None:
    """Also where their ids are in upper case and their rows in another order, with other values."""
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
    with pytest.raises(PolicyRefused, match="the most that it allows of a row"):
        pair.scores("one", OTHER_HALF)


@pytest.mark.parametrize(("distinct", "models"), [([4096] * 6, 2), ([4096] * 4, 1), ([2] * 20 + [4096], 1)])
def test_without_a_number_as_many_models_score_a_row_as_leave_good_scores(distinct: list[int], models: int) -> None:
    content = RowContent.of(distinct)
    assert content.models_of_a_row(None) == models
    assert content.models_of_a_row(1) == 1
    assert content.models_of_a_row(1000) == content.max_models


def eight_yes_no_and(distinct: int) -> np.ndarray:
    """Return rows of 8 columns with two values, and one with so many: 256 make 16 bits a row, of which scores get 8."""
    rows = np.arange(ROWS)
    return np.column_stack([*((rows >> place & 1) * 1.0 for place in range(8)), rows % distinct * 1.0])


@pytest.mark.parametrize(
    ("distinct", "models", "left"),
    [(256, 2, 4), (255, 2, 3), (255, 1, 7), (256, 3, 2), (4096, 3, 3), (17, 1, 6), (17, 9, 1)],
)
def test_models_that_leave_fewer_than_four_bits_of_a_score_are_refused(
    tmp_path: Path, distinct: int, models: int, left: int
) -> None:
    """The operator reads so when the snapshot is made, and what helps."""
    pair = Pair(tmp_path, eight_yes_no_and(distinct), {"models_per_row": models})
    snapshots = pair.parties["shop"].snapshots
    cautions = " ".join(snapshots.cautions(snapshots.publish("rows")))
    pair.train("one", np.ones(9))
    few = f"{left} bit{'s' * (left != 1)} of a score"
    if left < 4:
        assert few in cautions
        with pytest.raises(ConfigError, match=few) as refused:
            pair.scores("one")
        assert f"models_per_row = {min(models, 4)}" in str(refused.value)
        assert "lower policy.models_per_row" in (refused.value.hint or "")
        assert not pair.parties["shop"].store.reader().disclosures(subject="scores")
    else:
        assert "bits of a score" not in cautions
        pair.scores("one")
        (entry,) = pair.parties["shop"].store.reader().disclosures(subject="scores")
        assert left - 1 < entry.bits <= left
    pair.close()


def test_models_that_leave_few_bits_score_rows_that_are_no_secret(tmp_path: Path) -> None:
    pair = Pair(tmp_path, eight_yes_no_and(255), {"models_per_row": 2}, {"scores_may_be_solved_for": True})
    snapshots = pair.parties["shop"].snapshots
    assert list(snapshots.cautions(snapshots.publish("rows"))) == []
    pair.train("one", np.ones(9))
    assert len(pair.scores("one")) == ROWS
    pair.close()


@pytest.mark.parametrize(
    ("columns", "policy", "dataset", "caution"),
    [
        (3, {}, {}, "scored only with scores_may_be_solved_for = true: it has 3 columns that vary, fewer than 4"),
        (3, {}, {"scores_may_be_solved_for": True}, ""),
        (6, {"models_per_row": 3}, {}, "its columns allow 2 models of a row, not models_per_row = 3"),
        (6, {"models_per_row": 2}, {}, ""),
    ],
)
def test_who_publishes_is_told_what_will_not_be_scored(
    tmp_path: Path, features: np.ndarray, columns: int, policy: Any, dataset: Any, caution: str
) -> None:
    pair = Pair(tmp_path, features[:, :columns], policy, dataset)
    snapshots = pair.parties["shop"].snapshots
    told = " ".join(snapshots.cautions(snapshots.publish("rows")))
    pair.close()
    assert caution in told
    assert bool(told) == bool(caution)


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
    pair = Pair(tmp_path, features, dataset={"scores_may_be_solved_for": True})
    for seed, name in enumerate(("one", "two")):
        pair.train(name, np.random.default_rng(seed).normal(size=COLUMNS))
        pair.scores(name)
    pair.dataset = {}
    allow(pair, 2)
    pair.train("three", np.ones(COLUMNS))
    with pytest.raises(PolicyRefused, match="have had scores of 2 models"):
        pair.scores("three")
    pair.close()


def test_scores_that_were_exact_leave_no_room_for_others(pair: Pair, features: np.ndarray) -> None:
    """A part that says of itself that it is not rounded."""
    pair.train("exact", np.ones(COLUMNS), rounding=0)
    with pytest.raises(ConfigError, match="more than half of what a row holds"):
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
    assert np.abs(pair.scores("one") - exact).max() < 0.002 * exact.std()


@each_case(
    ("role", "change", "words"),
    [
        (
            "key-node",
            {"policy": {"models_per_row": 2}},
            "policy.models_per_row is an option of an active party or a passive party, remove it",
        ),
        ("passive", {"policy": {"models_per_row": 0}}, "policy.models_per_row"),
        (
            "active",
            {"datasets": {"rows": {"scores_may_be_solved_for": True}}},
            "scores_may_be_solved_for: does nothing",
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
