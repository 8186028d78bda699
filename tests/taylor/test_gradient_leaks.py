from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.statistics.gradient_leaks import (
    MOST_LEVERAGE,
    SLACK,
    Flag,
    Leak,
    check_hold_out,
    check_label_bits,
    check_label_shares,
    check_match_rate,
    check_noise,
    check_rows_against_features,
    label_auc,
    shorten_rows,
)
from blindfit.algorithms.statistics.scaling import Standardiser, append_constant
from blindfit.algorithms.statistics.taylor import label_bits, leverages
from blindfit.algorithms.statistics.taylor_plan import Grid, RowPlan
from blindfit.parties.job.tables import SplitSettings
from blindfit.parties.taylor.leaks import shared_leaks
from blindfit.parties.taylor.settings import TaylorJob, TaylorSettings, UnsafeFlag
from tests.each_case import each_case

JOB = TaylorSettings()
HOLD_OUT = 0.15


def plan_of(n_rows: int, seed: int = 0) -> RowPlan:
    return RowPlan.of(
        np.random.default_rng(seed).permutation(n_rows),
        test_fraction=SplitSettings().test_fraction,
        validation_fraction=HOLD_OUT,
        batch_rows=None,
    )


def breast_blocks(plan: RowPlan, widths: tuple[int, ...]) -> list[np.ndarray]:
    """Standardised on the training rows; the first block has the intercept."""
    columns = load_breast_cancer().data
    scaled = Standardiser.fit([columns[plan.train]]).transform(columns)
    blocks = np.split(scaled, np.cumsum(widths)[:-1], axis=1)
    return [append_constant(blocks[0]), *blocks[1:]]


def flags(leaks: list[Leak]) -> list[str]:
    return [leak.flag for leak in leaks]


# --- the defaults on real data ------------------------------------------------------------------------------


@each_case("seed", range(3))
@each_case("widths", [(10, 20), (10, 10, 10)])
def test_the_defaults_are_safe_on_breast_cancer(widths: tuple[int, ...], seed: int) -> None:
    plan = plan_of(569, seed)
    smallest = min(len(batch) for batch in plan.batches)
    blocks = breast_blocks(plan, widths)
    leaks = check_label_bits(sum(widths[1:]), smallest, JOB.jitter)
    leaks += check_hold_out(len(plan.validation))
    for block in blocks:
        short, changed = shorten_rows(block, plan.batches)
        assert changed <= 0.06 * len(plan.train)
        assert shorten_rows(short, plan.batches)[1] == 0
        leaks += check_noise(JOB.gradient_noise)
        leaks += check_rows_against_features(smallest, block.shape[1])
    assert leaks == []


def test_rows_of_breast_cancer_stand_out_unless_they_are_shortened() -> None:
    """So that refusing in place of shortening would refuse ordinary data."""
    plan = plan_of(569)
    assert shorten_rows(breast_blocks(plan, (10, 20))[1], plan.batches)[1] > 0


def test_every_flag_is_one_that_a_job_knows() -> None:
    assert set(get_args(Flag)) == set(get_args(UnsafeFlag))


# --- rows that stand out ------------------------------------------------------------------------------------


def with_a_lone_row(rng: np.random.Generator) -> np.ndarray:
    columns = rng.standard_normal((100, 3))
    columns[:, 2] = 0.0
    columns[57, 2] = 1.0
    return columns


def test_a_lone_row_becomes_nothing_and_the_others_stay() -> None:
    columns = with_a_lone_row(np.random.default_rng(0))
    short, changed = shorten_rows(columns, [np.arange(100)])
    assert changed == 1
    assert not short[57].any()
    assert np.array_equal(np.delete(short, 57, axis=0), np.delete(columns, 57, axis=0))


def test_nested_columns_are_found() -> None:
    flags_of_rows = np.zeros((128, 2))
    flags_of_rows[:45, 0] = flags_of_rows[1:45, 1] = 1
    short, changed = shorten_rows(flags_of_rows, [np.arange(128)])
    assert changed >= 1
    assert leverages(flags_of_rows)[0] == pytest.approx(1)
    assert not short[0].any()


def test_rows_outside_the_batches_stay() -> None:
    columns = with_a_lone_row(np.random.default_rng(0))
    short, changed = shorten_rows(columns, [np.arange(50)])
    assert changed == 0
    assert np.array_equal(short, columns)


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 12), heavy=st.floats(0.7, 5), match_rate=st.floats(0.5, 1))
def test_shortened_rows_do_not_stand_out(seed: int, k: int, heavy: float, match_rate: float) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.standard_t(heavy, (96, k))
    columns[:, : k // 2] = rng.random((96, k // 2)) < 0.05  # rare flags, among them lone ones
    batches = [np.arange(48), np.arange(48, 96)]
    short, changed = shorten_rows(columns, batches, match_rate=match_rate)
    assert shorten_rows(short, batches, match_rate=match_rate)[1] == 0
    norms, before = np.linalg.norm(short, axis=1), np.linalg.norm(columns, axis=1)
    assert (norms <= before).all()
    np.testing.assert_allclose(short * before[:, None], columns * norms[:, None], atol=1e-9 * (before**2).max())
    assert changed == (norms < before).sum()


def test_a_row_is_shortened_to_the_limit_and_not_further() -> None:
    columns = np.vstack([np.random.default_rng(0).standard_normal((99, 4)), [[30.0, 0, 0, 0]]])
    short, changed = shorten_rows(columns, [np.arange(100)])
    assert changed == 1
    assert leverages(short)[99] == pytest.approx(MOST_LEVERAGE)


def test_two_rows_that_share_a_direction_may_stay() -> None:
    columns = np.zeros((60, 2))
    columns[:, 0] = np.random.default_rng(0).standard_normal(60)
    columns[:2, 1] = 1.0
    assert MOST_LEVERAGE < leverages(columns).max() < MOST_LEVERAGE + SLACK
    assert shorten_rows(columns, [np.arange(60)])[1] == 0


@pytest.mark.parametrize(("columns", "match_rate"), [(70, 1.0), (20, 0.1)])
def test_a_batch_of_which_all_rows_stand_out_gives_nothing(columns: int, match_rate: float) -> None:
    """Nor ends a job: whether they all do hangs on the rows. That there are too few is refused by their number."""
    rows = np.random.default_rng(0).standard_normal((128, columns))
    short, changed = shorten_rows(rows, [np.arange(128)], match_rate=match_rate)
    assert (changed, short.any()) == (128, False)
    assert check_rows_against_features(128, columns, match_rate=match_rate)


def test_rows_that_do_not_count_hide_nothing() -> None:
    """Against the leverage when only a share of the rows is there: the row itself, and a third of the others."""
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((3000, 3))
    columns[0] = [40.0, 0, 0]
    kept = np.concatenate([[0], 1 + rng.permutation(2999)[:1000]])
    there = leverages(columns[kept])[0]
    most = there - 0.03 - SLACK
    assert shorten_rows(columns, [np.arange(3000)], match_rate=1 / 3, most=most)[1]
    assert not shorten_rows(columns, [np.arange(3000)], match_rate=1 / 3, most=there + 0.03)[1]
    assert not shorten_rows(columns, [np.arange(3000)], most=most)[1]
    with pytest.raises(RangeError):
        shorten_rows(columns, [np.arange(3000)], match_rate=0.0)


# --- the other rules ----------------------------------------------------------------------------------------


def test_label_bits_at_the_limit() -> None:
    needed = math.ceil(4 * label_bits(20, 0.25))
    assert check_label_bits(20, needed, 0.25) == []
    (leak,) = check_label_bits(20, needed - 1, 0.25)
    assert leak.flag == "label-bits"
    assert f"at least {needed} rows" in leak.text
    assert check_label_bits(20, needed - 1, 0.5) == []


def test_other_layouts_are_refused_in_the_same_words_whatever_they_gave() -> None:
    assert check_label_shares([0.1, 0.05], 0.1) == []
    texts = {leak.text for before in ([0.2], [0.1, 0.06], [0.25]) for leak in check_label_shares(before, 0.1)}
    assert len(texts) == 1


def test_no_jitter() -> None:
    assert flags(check_label_bits(1, 10_000, 0.0)) == ["no-jitter"]


def test_too_little_noise_is_refused_whatever_the_columns() -> None:
    for noise_std, unsafe in [(1.0, False), (0.9, True), (0.0, True)]:
        assert flags(check_noise(noise_std)) == ["no-gradient-noise"] * unsafe


def test_rows_against_features() -> None:
    assert check_rows_against_features(80, 20) == []
    (leak,) = check_rows_against_features(79, 20)
    assert leak.flag == "leverage"
    assert "at least 80 rows" in leak.text
    assert check_rows_against_features(80, 20, match_rate=0.5) == []
    (leak,) = check_rows_against_features(80, 20, match_rate=0.25)
    assert "at least 100 rows" in leak.text  # of leverage .2 each at most, where a quarter of the others counts


def test_a_match_rate_above_a_half_takes_a_flag() -> None:
    assert flags(check_match_rate(0.51, linked=True)) == ["leverage"]
    assert check_match_rate(0.5, linked=True) == check_match_rate(1.0, linked=False) == []


@pytest.mark.parametrize(("method", "most_columns"), [("psi", 27), ("linkage", 13)])
def test_labels_of_slots_that_match_nothing_hide_no_others(method: str, most_columns: int) -> None:
    """A quarter of a bit of each label that counts: at jitter .25 a column tells 1.16 bits."""
    fields = ["name"] if method == "linkage" else []
    job = TaylorJob.model_validate({"align": {"method": method, "fields": fields}})
    plan = RowPlan((np.arange(128),), np.arange(128, 150), np.arange(0))
    for columns in (most_columns, most_columns + 1):
        parameters = TaylorParameters(("a", "b"), "k", (3, columns), Grid("logistic", 2))
        found = flags(shared_leaks(parameters, plan, job))
        assert found == (["label-bits"] if columns > most_columns else [])


def test_a_small_hold_out() -> None:
    assert flags(check_hold_out(10)) == ["small-hold-out"]
    assert check_hold_out(11) == check_hold_out(0) == []


def test_label_auc_agrees_with_a_simulation() -> None:
    rng = np.random.default_rng(0)
    n, k, jitter = 120, 20, 0.25
    found = []
    for _ in range(200):
        base = np.linalg.qr(rng.standard_normal((n, k)))[0]
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        guess = base @ (base.T @ (y - 2 * jitter * rng.standard_normal(n)))
        found.append(np.mean(guess[y > 0][:, None] > guess[y < 0]))
    assert np.mean(found) == pytest.approx(label_auc(k, n, jitter), abs=0.01)
    assert label_auc(0, 10, 0.0) == 0.5
    assert label_auc(10, 10, 0.0) == 1.0
    assert label_auc(20, 10, 0.25) == label_auc(10, 10, 0.25) < 1
