"""A data party prepares its aligned rows: only the rows that are trained on decide the scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from blindfit.algorithms.statistics.vertical.loss import leverages
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.prepared import Preparation, Prepared, prepare

N_ROWS, NAMES = 200, ("age", "dose", "pulse")
CHOSEN = Preparation(
    table="taylor",
    test_fraction=0.2,
    validation_fraction=0.15,
    batch_rows=16,
    model="linear",
    intercept=True,
    match_rate=None,
)
ORDER = np.random.default_rng(4).permutation(N_ROWS)
PLAN = CHOSEN.plan(ORDER)


def aligned_rows() -> PartyRows:
    draw = np.random.default_rng(6)
    features = draw.normal(size=(N_ROWS, len(NAMES))) * [12, 3, 20] + [50, 10, 80]
    ids = pa.array([f"p{i}" for i in range(N_ROWS)])
    return PartyRows(ids, features, draw.normal(size=N_ROWS), np.ones(N_ROWS, np.bool_))


def with_other(rows: PartyRows, positions: np.ndarray) -> PartyRows:
    """Return the rows with far larger features and labels at these positions."""
    features, labels = rows.features.copy(), np.array(rows.labels)
    features[positions] += 1e6
    labels[positions] += 1e6
    return replace(rows, features=features, labels=labels)


def prepared(rows: PartyRows) -> Prepared:
    return prepare(rows, NAMES, CHOSEN, ORDER, active=True)


def scale_of(made: Prepared) -> tuple[object, ...]:
    return made.standardiser, made.labels.mean, made.labels.scale


def test_the_scale_is_that_of_the_training_rows() -> None:
    rows, train = aligned_rows(), PLAN.train
    made = prepared(rows)
    assert made.standardiser.mean == pytest.approx(rows.features[train].mean(axis=0))
    assert made.standardiser.std == pytest.approx(rows.features[train].std(axis=0))
    np.testing.assert_allclose(made.columns[train].mean(axis=0), [0, 0, 0, 1], atol=1e-12)


@pytest.mark.parametrize("held_out", [PLAN.test, PLAN.validation], ids=["test", "hold-out loss"])
def test_rows_that_are_held_out_have_no_say_in_it(held_out: np.ndarray) -> None:
    """Otherwise their score would be better than that of rows nobody has seen."""
    rows = aligned_rows()
    before, after = prepared(rows), prepared(with_other(rows, held_out))
    assert scale_of(after) == scale_of(before)
    np.testing.assert_array_equal(after.columns[PLAN.train], before.columns[PLAN.train])
    assert scale_of(prepared(with_other(rows, PLAN.train[:1]))) != scale_of(before)


def test_gradients_depend_on_numbers_only_through_their_jitter() -> None:
    """Mean and deviation have jitter too: those of true labels would give their differences from split to split."""
    rows, jitter = aligned_rows(), np.random.default_rng(7).normal(size=N_ROWS)
    linear = replace(CHOSEN, model="linear")
    made = prepare(rows, NAMES, linear, ORDER, active=True, jitter=jitter)
    shown = replace(rows, labels=rows.labels + jitter)
    other = prepare(shown, NAMES, linear, ORDER, active=True, jitter=np.zeros(N_ROWS))
    assert scale_of(made) == scale_of(other)
    np.testing.assert_array_equal(made.labels.hidden, other.labels.hidden)
    assert made.labels.y is not None
    np.testing.assert_allclose(made.labels.y * made.labels.scale + made.labels.mean, rows.labels)


def test_slots_without_a_row_have_no_say_in_it() -> None:
    """A slot in which this party has no row after linkage is all zeros."""
    positions = np.arange(N_ROWS)
    positions[PLAN.train[::3]] = -1
    rows = aligned_rows().take(positions)
    trained_on = PLAN.train[rows.there[PLAN.train]]
    made = prepared(rows)
    assert made.standardiser.mean == pytest.approx(rows.features[trained_on].mean(axis=0))
    assert not made.columns[~rows.there].any()


def test_a_column_that_is_constant_in_training_keeps_its_place() -> None:
    """Leaving it out would reveal it to the others, and refusing it would reveal the row that makes it vary."""
    rows = aligned_rows()
    rows.features[PLAN.train, 1] = 7.0
    made = prepared(rows)
    assert made.columns.shape == (N_ROWS, len(NAMES) + 1)
    assert not made.columns[:, 1].any()
    assert made.standardiser.kept_columns == ("age", "pulse")


def test_rows_are_bounded_before_those_that_stand_out_are_shortened() -> None:
    """Ten long rows share a direction with a short one. Once they are bounded, only the short one has length there."""
    signs, train = np.random.default_rng(1).choice([-1.0, 1.0], (N_ROWS, len(NAMES))), PLAN.batches[0]
    sizes = np.tile([0.6, 1.05, 1.0], (N_ROWS, 1))
    sizes[train, :2] = 0.0
    sizes[train[:10], :2] = [3.0, 0.5]
    sizes[train[10], 1] = 1.1
    features = signs * sizes
    rows = replace(aligned_rows(), features=features)
    chosen = replace(CHOSEN, match_rate=1.0, norm_bound=0.3, intercept=False)
    made = prepare(rows, NAMES, chosen, ORDER, active=True, label_range=(-3.0, 3.0))
    assert np.linalg.norm(made.columns, axis=1).max() <= 0.3 * len(NAMES) ** 0.5 * (1 + 1e-12)
    bounded = prepare(rows, NAMES, replace(chosen, match_rate=None), ORDER, active=True, label_range=(-3.0, 3.0))
    assert leverages(bounded.columns[train]).max() > 0.52
    assert made.rows_shrunk > 0
    for batch in made.plan.batches:
        assert leverages(made.columns[batch]).max() <= 0.52
    unbounded = prepare(rows, NAMES, replace(chosen, norm_bound=None), ORDER, active=True)
    assert unbounded.rows_shrunk == 0
