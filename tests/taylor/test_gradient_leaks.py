from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant
from blindfit.algorithms.statistics.vertical.gradient_leaks import (
    MOST_LEVERAGE,
    SLACK,
    BatchRules,
    Flag,
    Leak,
    check_batches,
    check_hold_out,
    check_jitter,
    check_match_rate,
    check_noise,
    label_auc,
    rows_for_features,
    rows_for_labels,
    shorten_rows,
)
from blindfit.algorithms.statistics.vertical.grid import MOST_BATCH_ROWS, Grid
from blindfit.algorithms.statistics.vertical.loss import label_bits, leverages
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan, rows_of_batches
from blindfit.parties.job.tables import SplitSettings
from blindfit.parties.taylor.leaks import leaks_of
from blindfit.parties.taylor.settings import TaylorJob, TaylorSettings, UnsafeFlag
from blindfit.parties.wire.error_codes import MAX_FIELD_BYTES
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
    """Return blocks standardised on the training rows; the first block has the intercept."""
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
    blocks = breast_blocks(plan, widths)
    for block in blocks:
        short, changed = shorten_rows(block, plan.batches)
        assert changed <= 0.06 * len(plan.train)
        assert shorten_rows(short, plan.batches)[1] == 0
    parties = tuple(f"party-{number}" for number in range(len(blocks)))
    columns = tuple(block.shape[1] for block in blocks)
    parameters = TaylorParameters(parties, "k", columns, Grid("logistic", len(blocks)))
    assert leaks_of(parameters, plan, TaylorJob()) == []


def test_rows_of_breast_cancer_stand_out_unless_they_are_shortened() -> None:
    """Refusing such rows instead of shortening them would refuse ordinary data."""
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
    """No job ends either: the rows decide whether all stand out. A job with too few rows is refused by
    number.
    """
    rows = np.random.default_rng(0).standard_normal((128, columns))
    short, changed = shorten_rows(rows, [np.arange(128)], match_rate=match_rate)
    assert (changed, short.any()) == (128, False)
    assert rows_for_features(columns, match_rate) > 128


def test_rows_that_do_not_count_hide_nothing() -> None:
    """If only a share of the rows is there, the leverage is that of the row itself, and a third of the others."""
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


def plan_with(train: int, batch_rows: int, validation: int = 0, test: int = 0) -> RowPlan:
    order = np.arange(train + validation + test)
    of_batches = RowPlan.of(order[:train], test_fraction=0, validation_fraction=0, batch_rows=batch_rows)
    return RowPlan(of_batches.batches, order[train : train + validation], order[train + validation :])


def test_label_bits_at_the_limit() -> None:
    needed = rows_for_labels(20, 0.25)
    assert needed == math.ceil(4 * label_bits(20, 0.25))
    rules, columns = BatchRules(1.0, 0.25), {"a": 2, "b": 20}
    assert check_batches(columns, plan_with(needed, needed), rules) == []
    (leak,) = check_batches(columns, plan_with(needed - 1, needed - 1), rules)
    assert leak.flag == "label-bits"
    assert check_batches(columns, plan_with(needed - 1, needed - 1), BatchRules(1.0, 0.5)) == []


def test_no_jitter() -> None:
    assert flags(check_jitter(0.0)) == ["no-jitter"]
    assert check_jitter(5e-324) == []
    assert label_bits(1, 5e-324) == pytest.approx(1073)  # no division by zero


def test_too_little_noise_is_refused_whatever_the_columns() -> None:
    for noise_std, unsafe in [(1.0, False), (0.9, True), (0.0, True)]:
        assert flags(check_noise(noise_std)) == ["no-gradient-noise"] * unsafe


def test_rows_against_features() -> None:
    assert rows_for_features(20) == rows_for_features(20, 0.5) == 80
    assert rows_for_features(20, 0.25) == 100  # leverage of 0.2 each at most, where a quarter of the others counts
    rules = BatchRules(1.0, 2.0)
    assert check_batches({"a": 20, "b": 1}, plan_with(80, 80), rules) == []
    (leak,) = check_batches({"a": 20, "b": 1}, plan_with(79, 79), rules)
    assert (leak.flag, leak.party) == ("leverage", "a")


# --- what a leak advises ------------------------------------------------------------------------------------

VALUE = r"(\d+(?:\.\d+)?)"


@settings(deadline=None, max_examples=400)
@given(
    columns=st.lists(st.integers(1, 120), min_size=2, max_size=3),
    train=st.integers(2, 1500),
    batch_rows=st.integers(2, 300),
    held_out=st.tuples(st.integers(0, 60), st.integers(0, 400)),
    match_rate=st.sampled_from([1.0, 0.5, 0.3, 0.07]),
    jitter=st.sampled_from([0.1, 0.25, 0.6, 2.0]),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_each_way_out_of_a_small_batch_leads_out(
    columns: list[int],
    train: int,
    batch_rows: int,
    held_out: tuple[int, int],
    match_rate: float,
    jitter: float,
    flags: tuple[bool, bool],
) -> None:
    """The test makes every change that the advice names, one way at a time; a batch size passes all rules at once."""
    rules = BatchRules(match_rate, jitter, *flags)
    named = {letter * 63: count for letter, count in zip("abc", columns, strict=False)}  # names of the largest length
    plan = plan_with(train, batch_rows, *held_out)
    in_force = {"leverage": rules.features, "label-bits": rules.labels}
    for leak in check_batches(named, plan, rules):
        assert len(str(leak).encode()) <= MAX_FIELD_BYTES  # others receive all of it
        if not in_force[leak.flag]:
            continue
        first, *others = re.split(r"; or ", leak.advice)
        alternatives = first.removeprefix("set ").split(" or ") if not others else others[:-1]
        assert alternatives or "no taylor.batch_rows is enough" in first
        for way in alternatives:
            changed = follow(way, named, leak, plan, rules, batch_rows)
            again = check_batches(*changed)
            assert not [found for found in again if (found.rule, found.party) == (leak.rule, leak.party)], way
            if re.fullmatch(rf"taylor.batch_rows = {VALUE}", way):
                assert not [found for found in again if in_force[found.flag]]
        if others:
            needed = rules.count_needed(columns)
            sizes = range(2, train + 2)
            assert not any(min(rows_of_batches(train, size)) >= needed for size in sizes)


def follow(
    way: str, columns: dict[str, int], leak: Leak, plan: RowPlan, rules: BatchRules, batch_rows: int
) -> tuple[dict[str, int], RowPlan, BatchRules]:
    """Make the changes that the text names."""
    train, validation, test = len(plan.train), len(plan.validation), len(plan.test)
    if found := re.search(rf"split.test_fraction = {VALUE}", way):
        fewer = round(SplitSettings(test_fraction=float(found[1])).test_fraction * (train + validation + test))
        train, test = train + test - fewer, fewer
    if found := re.search(rf"taylor.batch_rows = {VALUE}", way):
        batch_rows = int(found[1])
    if found := re.search(rf"taylor.jitter = {VALUE}", way):
        rules = replace(rules, jitter=TaylorSettings(jitter=float(found[1])).jitter)
    if found := re.search(rf"at most {VALUE} of these columns", way):
        fewer = int(found[1])
        if leak.party:
            columns = {**columns, leak.party: fewer}
        else:
            passive = list(columns)[1:]
            each = [fewer // len(passive) + (place < fewer % len(passive)) for place in range(len(passive))]
            columns = {**columns, **dict(zip(passive, each, strict=True))}
    assert 2 <= TaylorSettings(batch_rows=batch_rows).batch_rows <= MOST_BATCH_ROWS
    return columns, plan_with(train, batch_rows, validation, test), rules


def test_a_match_rate_above_a_half_takes_a_flag() -> None:
    assert flags(check_match_rate(0.51, linked=True)) == ["leverage"]
    assert check_match_rate(0.5, linked=True) == check_match_rate(1.0, linked=False) == []


@pytest.mark.parametrize(("method", "max_columns"), [("psi", 27), ("linkage", 13)])
def test_labels_of_slots_that_match_nothing_hide_no_others(method: str, max_columns: int) -> None:
    """A batch may reveal a quarter of a bit of each label that counts: at jitter 0.25 a column reveals 1.16 bits."""
    fields = ["name"] if method == "linkage" else []
    job = TaylorJob.model_validate({"align": {"method": method, "fields": fields}})
    plan = RowPlan((np.arange(128),), np.arange(128, 150), np.arange(0))
    for columns in (max_columns, max_columns + 1):
        parameters = TaylorParameters(("a", "b"), "k", (3, columns), Grid("logistic", 2))
        found = flags(leaks_of(parameters, plan, job))
        assert found == (["label-bits"] if columns > max_columns else [])


def test_a_small_hold_out() -> None:
    assert flags(check_hold_out(10, 300)) == ["small-hold-out"]
    assert check_hold_out(11, 300) == check_hold_out(0, 300) == []


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
