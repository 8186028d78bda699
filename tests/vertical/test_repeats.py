"""What trainings on one snapshot may not give away together: labels by their batches, features by their scores."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.coordinator.cli.main import app
from blindfit.parties.vertical.model_store import ModelStore
from blindfit.parties.wire import error_codes
from tests.hints.following import refused
from tests.vertical.in_process import finished, seated
from tests.world import World
from tests.world.vertical import bank_and_shops, label_bits, write_rows

SHOPS = ("shop-a", "shop-b")
ROWS = 120  # half of the time is their alignment
TWO_BATCHES = 210  # of each of the sizes below


@pytest.fixture
def project(tmp_path: Path) -> World:
    return bank_and_shops(tmp_path, rows=ROWS)


# --- labels ------------------------------------------------------------------------------------------------

# Six passive columns, jitter .25: 7 bits of each batch of 64 labels. Two layouts fit, a third does not.
OTHER_BATCHES = ("taylor.batch_rows=66", "taylor.batch_rows=68")


def test_the_same_training_again_is_free_and_other_batches_add_up(project: World) -> None:
    write_rows(project, TWO_BATCHES)
    for number in range(2):
        seated(project, session=f"same-{number}")
    (one,) = label_bits(project)
    assert 6 / 2 * np.log2(1 + 1 / (4 * 0.25**2)) / 64 <= one < 1 / 8
    seated(project, OTHER_BATCHES[0], session="other")
    assert len(label_bits(project)) == 2
    with (
        capture_logs() as logged,
        pytest.raises(PolicyRefused, match=r"bank refuses .*: label bits: with other layouts of batches") as caught,
    ):
        seated(project, OTHER_BATCHES[1], session="third")
    (said,) = (entry for entry in logged if entry["event"] == "label bits")  # how many is the bank's to know
    assert said["given_before"] == pytest.approx(sum(label_bits(project)), abs=1e-4)
    told = error_codes.error_of(error_codes.status_of(caught.value), peer="bank")
    assert str(told) == str(caught.value)  # in full
    assert 'taylor.unsafe = ["label-bits"] allows it' in str(told)
    assert len(label_bits(project)) == 2  # a refused training costs nothing
    seated(project, session="same-again")


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
        assert len(label_bits(project)) == 1 + count
    assert sum(label_bits(project)) > 0.25


def test_what_makes_the_same_equations_is_the_same_layout(project: World) -> None:
    seated(project)
    seated(project, "taylor.epochs=9", "taylor.learning_rate=0.01", "taylor.l2=0.5", session="other")
    seated(project, "taylor.resume='s1'", session="resumed")
    assert len(label_bits(project)) == 1


def test_columns_that_a_partner_publishes_anew_are_new_equations(project: World) -> None:
    seated(project)
    project.publish("shop-b")
    seated(project, session="other")
    assert len(label_bits(project)) == 2


def test_a_new_snapshot_of_the_labels_counts_from_nothing_and_its_operator_is_told(project: World) -> None:
    write_rows(project, TWO_BATCHES)
    seated(project)
    seated(project, OTHER_BATCHES[0], session="other")
    told = CliRunner().invoke(app, ["snapshot", str(project.root / "bank.toml"), "rows"])
    assert "labels that have not changed can be given away once more" in " ".join(told.output.split())
    seated(project, OTHER_BATCHES[1], session="third")
    assert len(label_bits(project)) == 3


def test_under_label_dp_no_layout_is_counted(project: World) -> None:
    seated(project, "privacy.epsilon=1.0")
    assert label_bits(project) == []


# --- features ------------------------------------------------------------------------------------------------


def four_columns(project: World) -> World:
    """At both shops, and nobody has said that they may be solved for."""
    for place, name in enumerate(SHOPS):
        path = project.root / f"{name}.csv"
        table = pyarrow.csv.read_csv(path)
        more = np.random.default_rng(place).normal(size=len(table))
        pyarrow.csv.write_csv(table.append_column("x3", pa.array(more)), path)
        project.edit(f"{name}.toml", "scores_may_be_solved_for = true\n", "")
    return project


QUICK = ("taylor.epochs=1", "taylor.batch_rows=96", "taylor.validation_fraction=0")


def test_test_rows_are_scored_by_one_model_and_the_next_training_ends_before_it_begins(
    tmp_path: Path, real_key: PrivateKey
) -> None:
    project = four_columns(bank_and_shops(tmp_path, rows=120))
    made = finished(project, *QUICK, key=real_key, session="one")
    with project.store("shop-a") as store:
        (snapshot,) = store.reader().snapshots()
        (scored,) = store.reader().scored_rows(snapshot.id)
    part = ModelStore(project.root / "state/shop-a").read("one")
    assert scored.bits <= 16
    assert part.score_rounding > 0
    assert ModelStore(project.root / "state/bank").read("one").score_rounding == 0
    assert len(made.plan.test)
    with refused("operator raise policy.models_per_row, or publish the dataset again") as told:
        seated(project, *QUICK, session="two")
    assert re.match(r"shop-[ab] refuses the job: models_per_row: some of these rows have had", told.text)
    seated(project, *QUICK, "split.test_fraction=0", session="three")
    for name in ("bank", *SHOPS):
        project.publish(name)
    seated(project, *QUICK, session="four")


@pytest.mark.parametrize("overrides", [(), ("split.test_fraction=0",)])
def test_three_columns_are_trained_on_and_evaluated_by_their_operators_word(
    project: World, overrides: tuple[str, ...]
) -> None:
    project.set("datasets.rows.scores_may_be_solved_for", None, *SHOPS)
    if overrides:  # no row is scored
        seated(project, *overrides)
        return
    with refused("set {}.scores_may_be_solved_for = true, if it is no secret") as told:
        seated(project)
    assert "datasets.rows: whoever gets scores could work out its features: it has 3" in told.text
    project.set("datasets.rows.scores_may_be_solved_for", True, *SHOPS)
    seated(project, session="s2")
