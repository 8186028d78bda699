"""Trainings on the same people must not reveal too much together: labels by their batches, features by their scores."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.statistics.vertical.score_leaks import SCORE_BITS
from blindfit.parties.account.account import Account
from blindfit.parties.snapshots.people import unpack
from blindfit.parties.store.account import RESET
from blindfit.parties.taylor.label_layouts import END, LAYOUT
from blindfit.parties.vertical.model_store import ModelStore
from blindfit.parties.vertical.scored_rows import SCORES
from blindfit.parties.wire import error_codes
from tests.hints.following import refused
from tests.vertical.in_process import finished, seated
from tests.world import World
from tests.world.vertical import bank_and_shops, label_bits, write_rows

SHOPS = ("shop-a", "shop-b")
ROWS = 120  # half of the time is their alignment
TWO_BATCHES = 210  # rows of each of the sizes below


@pytest.fixture
def project(tmp_path: Path) -> World:
    return bank_and_shops(tmp_path, rows=ROWS)


# --- labels ------------------------------------------------------------------------------------------------

# Six passive columns, jitter 0.25: 7 bits of each of two batches. The limit is a quarter of the 0.72 bits that a label
# of this rate has, 38 bits of 210 people: two layouts fit, a third does not.
OTHER_BATCHES = ("taylor.batch_rows=66", "taylor.batch_rows=68")
RATE = 0.2
LIMIT = TWO_BATCHES * -(RATE * np.log2(RATE) + (1 - RATE) * np.log2(1 - RATE)) / 4


def layouts(project: World) -> list[float]:
    """Return the bits of each layout of batches that the bank has counted."""
    return label_bits(project, LAYOUT)


@pytest.fixture
def two_layouts(project: World) -> World:
    """A bank whose account has room for one more layout than the two that were trained on."""
    write_rows(project, TWO_BATCHES)
    project.set("datasets.rows.label_rate", RATE, "bank")
    seated(project, session="one")
    seated(project, OTHER_BATCHES[0], session="other")
    return project


def refused_layout(project: World, session: str) -> str:
    """Return the words in which a third layout is refused, which other parties get in full."""
    with pytest.raises(
        PolicyRefused, match=r"bank refuses .*: label bits: with earlier trainings on the same"
    ) as caught:
        seated(project, OTHER_BATCHES[1], session=session)
    over = error_codes.error_of(error_codes.status_of(caught.value), peer="bank")
    assert str(over) == str(caught.value)
    return str(over)


def test_the_same_training_again_is_free_and_other_batches_add_up(two_layouts: World) -> None:
    seated(two_layouts, session="same")
    bits = layouts(two_layouts)
    assert bits == pytest.approx([2 * 6 / 2 * np.log2(1 + 1 / (4 * 0.25**2))] * 2)
    assert sum(bits) <= LIMIT < sum(bits) * 3 / 2
    with capture_logs() as logged:
        said = refused_layout(two_layouts, "third")
    assert 'taylor.unsafe = ["label-bits"] allows it' in said
    (line,) = (entry for entry in logged if entry["event"] == "label bits")  # only the bank's operator reads numbers
    assert [line["revealed"], line["limit"]] == pytest.approx([sum(label_bits(two_layouts)), LIMIT], abs=0.1)
    assert layouts(two_layouts) == bits  # a refused training costs nothing
    seated(two_layouts, session="same-again")


def test_where_a_training_may_end_counts_in_each_session(project: World) -> None:
    """A training that runs every epoch has no such bits; a resumed one has those of the epochs that follow."""
    seated(project, "taylor.epochs=8", session="one")
    seated(project, "taylor.epochs=8", session="again")
    seated(project, "taylor.epochs=16", "taylor.tolerance=0.01", session="other")
    seated(project, "taylor.patience=0", session="whole")
    assert label_bits(project, END) == [3, 3, 4]
    assert len(layouts(project)) == 1


def test_a_training_does_not_begin_where_its_end_does_not_fit(project: World) -> None:
    """The bits of its layout fit, or were counted before."""
    seated(project, "taylor.patience=0")
    account = Account.of(project.settings("bank"), "rows")
    with project.store("bank") as store, store.transaction() as transaction:
        (layout,) = transaction.disclosures(subject="labels")
        left = account.label_limit(transaction) - layout.bits - 1.5
        transaction.add_disclosure(replace(layout, question="another", bits=left))
    before = label_bits(project)
    with pytest.raises(PolicyRefused, match="label bits"):
        seated(project, "taylor.epochs=4", session="two-bits")
    assert label_bits(project) == before
    seated(project, "taylor.epochs=2", session="one-bit")


def test_a_layout_is_refused_in_the_same_words_whatever_was_revealed_before(two_layouts: World) -> None:
    said = refused_layout(two_layouts, "third")
    with two_layouts.store("bank") as store, store.transaction() as transaction:
        one = next(entry for entry in transaction.disclosures(subject="labels") if entry.event == LAYOUT)
        transaction.add_disclosure(replace(one, learner="somebody", question="of somebody else", bits=100.0))
    assert refused_layout(two_layouts, "fourth") == said


def test_a_new_snapshot_of_the_labels_begins_no_count_again(two_layouts: World) -> None:
    """Neither the same rows nor one row fewer, in another order and with ids in upper case, start the count again."""
    bits, said = layouts(two_layouts), refused_layout(two_layouts, "third")
    two_layouts.publish("bank")
    assert refused_layout(two_layouts, "fourth") == said
    with pytest.raises(PolicyRefused, match="label bits: with earlier trainings on the same people"):
        seated(two_layouts, session="first-again")
    for name in ("bank", *SHOPS):
        table = pyarrow.csv.read_csv(two_layouts.root / f"{name}.csv").sort_by("x0")[1:]
        ids = pa.compute.utf8_upper(table["id"])
        pyarrow.csv.write_csv(table.set_column(0, "id", ids), two_layouts.root / f"{name}.csv")
        two_layouts.publish(name)
    assert refused_layout(two_layouts, "fifth") == said
    assert layouts(two_layouts) == bits


def test_people_who_were_never_published_before_make_room(two_layouts: World) -> None:
    refused_layout(two_layouts, "third")
    write_rows(two_layouts, 2 * TWO_BATCHES)
    for name in ("bank", *SHOPS):
        two_layouts.publish(name)
    seated(two_layouts, "taylor.batch_rows=128", session="fourth")
    assert len(layouts(two_layouts)) == 3


def test_what_makes_other_equations_is_another_layout_and_the_flag_lets_more_pass(project: World) -> None:
    seated(project)
    others = [
        "split.test_fraction=0.3",
        "taylor.validation_fraction=0.2",
        "taylor.jitter=0.3",
        "taylor.class_weights='balanced'",
    ]
    flags = "taylor.unsafe=['label-bits', 'class-weights']"
    for count, override in enumerate(others, start=1):
        seated(project, override, flags, session=f"s{count}")
        assert len(layouts(project)) == 1 + count
    assert sum(layouts(project)) > ROWS / 4


def test_what_makes_the_same_equations_is_the_same_layout(project: World) -> None:
    seated(project)
    seated(project, "taylor.epochs=9", "taylor.learning_rate=0.01", "taylor.l2=0.5", session="other")
    seated(project, "taylor.resume='s1'", session="resumed")
    assert len(layouts(project)) == 1


@pytest.mark.parametrize("changed", [0, 1])
def test_labels_that_are_published_again_are_new_equations(project: World, changed: int) -> None:
    """Others must not find out from a refusal whether a label changed."""
    seated(project)
    labels = project.table("bank")["bought"]
    project.columns("bank", bought=[1 - label if place < changed else label for place, label in enumerate(labels)])
    project.publish("bank")
    seated(project, session="other")
    assert len(layouts(project)) == 2


def test_columns_that_a_partner_publishes_anew_are_new_equations(project: World) -> None:
    seated(project)
    project.publish("shop-b")
    seated(project, session="other")
    assert len(layouts(project)) == 2


def test_under_label_dp_no_layout_is_counted(project: World) -> None:
    seated(project, "privacy.epsilon=1.0")
    assert label_bits(project) == []  # the end is not counted either


# --- features ------------------------------------------------------------------------------------------------


def four_columns(project: World) -> World:
    """Give the shops a fourth column; they declare nothing about scores."""
    for place, name in enumerate(name for name in SHOPS if name in project.roles):
        path = project.root / f"{name}.csv"
        table = pyarrow.csv.read_csv(path)
        more = np.random.default_rng(place).normal(size=len(table))
        pyarrow.csv.write_csv(table.append_column("x3", pa.array(more)), path)
        project.set("datasets.rows.models_per_row", None, name)
    return project


QUICK = ("taylor.epochs=1", "taylor.batch_rows=96", "taylor.validation_fraction=0")


def test_test_rows_are_scored_by_one_model_and_the_next_training_ends_before_it_begins(
    tmp_path: Path, real_key: PrivateKey
) -> None:
    project = four_columns(bank_and_shops(tmp_path, rows=120))
    made = finished(project, *QUICK, key=real_key, session="one")
    with project.store("shop-a") as store:
        (scored,) = (e for e in store.reader().disclosures(subject="scores") if e.event == SCORES)
    part = ModelStore(project.root / "state/shop-a").read("one")
    assert scored.bits == SCORE_BITS
    assert part.score_rounding > 0
    assert ModelStore(project.root / "state/bank").read("one").score_rounding == 0
    assert len(made.plan.test)
    finished(project, *QUICK, key=real_key, session="again")  # the same noise makes the same model
    with project.store("shop-a") as store:
        assert {e.question for e in store.reader().disclosures(subject="scores") if e.event == SCORES} == {
            scored.question
        }
    with refused(
        "some of these rows have had scores of {}, which is the limit of a row. The weights or gradients "
        "of a training count as one model; a model of another active party counts for every row; and a new snapshot "
        'changes nothing. Predict with an earlier model, train with falcon.weights = "shared" or falcon\'s '
        "privacy.epsilon, or have its operator start the account again "
        "(`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)"
    ) as told:
        seated(project, *QUICK, "taylor.l2=0.5", session="two")
    assert re.match(r"shop-[ab] refuses the job: models_per_row: some of these rows have had", told.text)
    for name in ("bank", *SHOPS):
        project.publish(name)
    with refused("have {party}'s operator raise models_per_row of the dataset, if its rows hold enough"):
        seated(project, *QUICK, session="four")


def test_test_rows_that_another_model_has_scored_end_a_training_before_it_begins(
    tmp_path: Path, real_key: PrivateKey
) -> None:
    """Training rows have room for a model; the test rows have had theirs from a prediction.

    There is one passive party. With two, gradients have another learner than scores, and then a model counts for every
    row.
    """
    project = four_columns(bank_and_shops(tmp_path, rows=120, shops=("shop-a",)))
    tested = finished(project, *QUICK, key=real_key, session="one").plan.test
    with project.store("shop-a") as store:
        (scored,) = (e for e in store.reader().disclosures(subject="scores") if e.event == SCORES)
        (fit,) = (e for e in store.reader().disclosures(subject="scores") if e.event != SCORES)
        assert unpack(scored.people).sum() == len(tested)
        with store.transaction() as transaction:
            transaction.add_disclosure(replace(fit, event=RESET, subject=RESET))
            transaction.add_disclosure(replace(scored, about="", question="another model"))
    with pytest.raises(PolicyRefused, match="shop-a refuses the job: models_per_row: some of these rows have had"):
        seated(project, *QUICK, session="two")


def test_rows_that_scores_would_reveal_are_published_by_a_declaration_only(project: World) -> None:
    """There are three columns. The operator declares that no scores are given, and others see this for any rows."""
    project.set("datasets.rows.models_per_row", None, *SHOPS)
    with refused(
        'set {}.models_per_row = 0 to give no scores, or {}.models_per_row = "unlimited" if its features are not secret'
    ) as told:
        project.publish("shop-a")
    assert "shop-a: datasets.rows: a party that gets scores could compute its features: it has 3" in told.text
    with project.store("shop-a") as store:
        assert store.reader().snapshots() == []
    project.set("datasets.rows.models_per_row", 0, *SHOPS)
    with pytest.raises(PolicyRefused, match="models_per_row: no scores of rows are given"):
        seated(project)
    seated(project, "split.test_fraction=0", session="no-scores")
    project.set("datasets.rows.models_per_row", "unlimited", *SHOPS)
    seated(project, session="s2")
