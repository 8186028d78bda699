"""The grid of rows: the choice of "auto", and rows of 16 bits with the same meaning as rows of 32 bits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import MAX_NARROW_BOUND, MAX_NORM_BOUND, quantise_rows
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.privacy.gaussian import LEAST_STD_STEPS, GaussianMechanism
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows, ReleaseSettings, Tally, WeightRows, two_servers
from blindfit.algorithms.protocols.walr.grid import LARGEST_SUM, LEAST_BITS, Grid, Room, auto_grid
from blindfit.algorithms.protocols.walr.messages import BlockColumns
from blindfit.algorithms.sharing.short_rows import Plan
from blindfit.parties.evaluate.settings import EvaluateJob
from blindfit.parties.measurement import codec
from blindfit.parties.walr.holders import grids_of
from blindfit.parties.walr.settings import WalrJob
from blindfit.protos import measurement_pb2 as pb
from tests.each_case import each_case

SETTINGS = ReleaseSettings("visits", "v1", epsilon=1.0, delta=1e-6, frac_bits=11)
BOUND = 9 * 2**11
NARROW = np.array([[BOUND - 1, 0], [-3, 7], [0, -BOUND]], np.int16)
NAMES = ("a", "b", "c")


@given(
    norm_bound=st.floats(0.1, 4000.0),
    epsilon=st.floats(walr.MIN_EPSILON, walr.MAX_EPSILON),
    delta=st.sampled_from([1e-30, 1e-9, 1e-6, 1e-3]),
    rows=st.integers(1, 64),
)
def test_what_it_takes_is_wide_enough_for_the_noise(norm_bound: float, epsilon: float, delta: float, rows: int) -> None:
    multiplier = gaussian.noise_multiplier("analytic", epsilon, delta)
    grid = auto_grid(norm_bound, multiplier, rows)
    for of_unit in (rows, rows + 1):  # the server's cap may be higher
        GaussianMechanism(multiplier, (grid.norm_bound * of_unit) ** 2)  # refuses a noise of fewer steps than 2^16
    assert grid.norm_bound <= norm_bound * 2.0**grid.frac_bits < grid.norm_bound + 1
    assert 1 <= grid.norm_bound <= MAX_NORM_BOUND
    assert (grid.row_bits == 16) == (grid.norm_bound <= MAX_NARROW_BOUND)


@pytest.mark.parametrize(
    ("norm_bound", "epsilon", "rows", "expected"),
    [
        (9.0, 1.0, 1, (11, 16)),  # 18,432 steps; with one bit more they would not fit
        (9.0, 1.0, 8, (11, 16)),
        (9.0, 0.01, 1, (11, 16)),
        (9.0, 8.0, 1, (16, 32)),  # so little noise needs a finer grid
        (9.0, 50.0, 1, (16, 32)),
        (0.5, 50.0, 1, (20, 32)),
        (31.9, 1.0, 1, (10, 16)),
        (32.0, 1.0, 1, (16, 32)),  # 9 bits would round too much
        (3000.0, 1.0, 1, (13, 32)),  # the finest on which sums are exact
    ],
)
def test_the_grid_that_it_takes(norm_bound: float, epsilon: float, rows: int, expected: tuple[int, int]) -> None:
    grid = auto_grid(norm_bound, gaussian.noise_multiplier("analytic", epsilon, 1e-6), rows)
    assert (grid.frac_bits, grid.row_bits) == expected


@pytest.mark.parametrize("norm_bound", [0.0, -1.0, math.inf, math.nan, 1e-9, 1e30])
def test_a_norm_of_which_there_is_no_grid(norm_bound: float) -> None:
    with pytest.raises(RangeError):
        auto_grid(norm_bound, 4.0, 1)


def test_the_job_says_which() -> None:
    def grid(**walr_settings: Any) -> Grid:
        privacy = {"epsilon": 1.0, "delta": 1e-6}
        return WalrJob.model_validate({"seed": 3, "privacy": privacy, "walr": walr_settings}).grid(9.0)

    assert grid() == grid(frac_bits="auto") == Grid(11, BOUND)
    assert grid(frac_bits=16) == Grid(16, 9 * 2**16)
    for wrong in (3, "most"):
        with pytest.raises(ValueError, match="frac_bits"):
            grid(frac_bits=wrong)


def test_an_evaluation_takes_a_grid_of_16_bits_or_what_its_noise_needs() -> None:
    def grid(epsilon: float, rows: int = 1, **settings: Any) -> Grid:
        privacy = {"epsilon": epsilon, "delta": 1e-6, "max_rows_per_person": rows}
        job = {"privacy": privacy, "evaluate": {"session": "walr-1", **settings}}
        return EvaluateJob.model_validate(job).grid

    assert grid(0.1) == grid(4.4) == grid(20.0, rows=4) == Grid(16, 2**16)
    assert grid(6.0) == Grid(17, 2**17)
    assert grid(20.0, frac_bits=12) == Grid(12, 2**12)  # only the server refuses


@pytest.mark.parametrize("epsilon", [walr.MIN_EPSILON, 0.1, 1.0, 4.0, 4.9, 5.0, 6.0, 20.0, walr.MAX_EPSILON])
@pytest.mark.parametrize("delta", [walr.MIN_DELTA, 1e-6, 0.01])
def test_a_server_takes_the_grid_of_an_evaluation_at_any_epsilon(epsilon: float, delta: float) -> None:
    job = {"privacy": {"epsilon": epsilon, "delta": delta}, "evaluate": {"session": "walr-1"}}
    grid = EvaluateJob.model_validate(job).grid
    rows = ConsumerRows(NAMES, quantise_rows(np.ones((len(NAMES), 3)), grid.norm_bound, grid.frac_bits))
    settings = replace(SETTINGS, epsilon=epsilon, delta=delta, frac_bits=grid.frac_bits)
    request = walr.step_1_open(rows, grid.norm_bound, settings)
    walr.step_2_check(request, consumer="shop")
    assert walr.mechanism_of(request).sigma_squared >= LEAST_STD_STEPS**2


def test_rounding_to_the_least_bits_hardly_moves_a_score() -> None:
    drawn = np.random.default_rng(5)
    rows, weights = drawn.standard_normal((20_000, 8)), drawn.standard_normal(8) / 8**0.5
    step = 2.0**-LEAST_BITS
    off = (quantise_rows(rows, 31 * 2**LEAST_BITS, LEAST_BITS) * step - rows) @ weights
    assert np.mean(off**2) <= weights @ weights * step**2 / 3 * 1.1  # the law of walr_grid; the draws are seeded


# --- the width on its way --------------------------------------------------------------------------------


def test_rows_within_a_small_bound_are_narrow_and_the_same() -> None:
    reals = np.random.default_rng(1).standard_normal((500, 6)) * 2
    narrow, wide = quantise_rows(reals, BOUND, 11), quantise_rows(reals, MAX_NARROW_BOUND + 1, 11)
    assert (narrow.dtype, wide.dtype) == (np.int16, np.int32)
    within = np.linalg.norm(reals * 2**11, axis=1) < BOUND
    assert within.sum() > 0
    np.testing.assert_array_equal(narrow[within], wide[within])
    largest = quantise_rows(np.array([[1e300, 0.0], [-1e300, 0.0]]), MAX_NARROW_BOUND, 11)
    assert (np.sign(largest[:, 0]) == [1, -1]).all()
    assert (np.abs(largest[:, 0].astype(int)) >= MAX_NARROW_BOUND - 1).all()


def test_the_width_does_not_change_request_hash_or_sum() -> None:
    narrow, wide = ConsumerRows(NAMES, NARROW), ConsumerRows(NAMES, NARROW.astype(np.int32))
    request = walr.step_1_open(narrow, BOUND, SETTINGS)
    assert request == walr.step_1_open(wide, BOUND, SETTINGS)  # so another request in the other width costs nothing
    sums = [sums_of(rows) for rows in (narrow, wide)]
    assert sums[0] == sums[1] == NARROW.sum(axis=0, dtype=int).tolist()


def sums_of(rows: ConsumerRows) -> list[int]:
    """Sum all rows, each with the label 1."""
    tally = Tally(walr.step_1_open(rows, BOUND, SETTINGS), lambda _: None)
    for batch in rows.batches():
        tally.add(batch, lambda ids: (np.ones(len(ids), np.uint8), np.ones(len(ids), np.bool_)), consumer="insurer")
    tally.finish(consumer="insurer")
    assert tally.rows_scaled == 0
    return [int(number) for number in tally.sums]


def test_sums_of_narrow_rows_do_not_wrap_round() -> None:
    n = 1000
    assert sums_of(ConsumerRows(tuple(map(str, range(n))), np.full((n, 1), BOUND, np.int16))) == [n * BOUND]


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_the_wire_says_how_wide_they_are(dtype: type) -> None:
    sent = codec.request_to_pb(WeightRows(NAMES, NARROW.astype(dtype)))
    assert sent.rows.bits == 8 * np.dtype(dtype).itemsize
    assert len(sent.rows.weights) == NARROW.size * np.dtype(dtype).itemsize
    read = codec.message_from_pb(sent, WeightRows, culprit="insurer")
    assert read.weights.dtype == dtype
    np.testing.assert_array_equal(read.weights, NARROW)


def test_who_says_no_width_means_32_bits() -> None:
    sent = pb.AggregateRequest(rows=pb.WeightRows(ids=NAMES, weights=NARROW.astype("<i4").tobytes()))
    np.testing.assert_array_equal(codec.message_from_pb(sent, WeightRows, culprit="insurer").weights, NARROW)


@pytest.mark.parametrize("bits", [1, 8, 15, 17, 64, 2**32 - 1])
def test_another_width_is_refused(bits: int) -> None:
    sent = pb.AggregateRequest(rows=pb.WeightRows(ids=NAMES, weights=bytes(24), bits=bits))
    with pytest.raises(MalformedMessage, match="neither 16 nor 32") as refused:
        codec.message_from_pb(sent, WeightRows, culprit="insurer")
    assert (refused.value.culprit, refused.value.field) == ("insurer", "bits")


@pytest.mark.parametrize(("bits", "size"), [(16, 7), (32, 10), (16, 0)])
def test_bytes_that_are_no_whole_rows(bits: int, size: int) -> None:
    sent = pb.AggregateRequest(rows=pb.WeightRows(ids=NAMES if size else (), weights=bytes(size), bits=bits))
    with pytest.raises(MalformedMessage, match="n_columns integers"):
        codec.message_from_pb(sent, WeightRows, culprit="insurer")


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.float32])
def test_rows_of_another_type_do_not_leave(dtype: type) -> None:
    with pytest.raises(LocalProtocolError):
        codec.request_to_pb(WeightRows(NAMES, NARROW.astype(dtype)))


def test_narrow_rows_under_a_bound_that_they_cannot_reach() -> None:
    rows = ConsumerRows(NAMES, NARROW)
    with pytest.raises(RangeError, match="16 bits"):
        walr.step_1_open(rows, MAX_NARROW_BOUND + 1, SETTINGS)
    request = replace(walr.step_1_open(rows, BOUND, SETTINGS), norm_bound=MAX_NARROW_BOUND + 1)
    (batch,) = rows.batches()
    with pytest.raises(MalformedMessage, match="16 bits") as refused:
        walr.step_4_check_batch(batch, 0, request, consumer="insurer")
    assert refused.value.field == "weights"
    wide = WeightRows(NAMES, NARROW.astype(np.int32))
    walr.step_4_check_batch(wide, 0, request, consumer="insurer")


def test_narrow_rows_that_are_too_long_are_made_shorter() -> None:
    """An active party may send -2^15: int16 holds neither its square nor its magnitude."""
    rows = np.array([[-(2**15), -(2**15)], [2**15 - 1, 2**15 - 1], [1, 1]], np.int16)
    enforced, scaled = fixed_point.enforce_norm_bound(rows, BOUND)
    assert (enforced.dtype, scaled) == (np.int16, 2)
    assert ((enforced.astype(np.int64) ** 2).sum(axis=1) <= BOUND**2).all()
    assert (np.sign(enforced) == np.sign(rows)).all()


# --- bounds that depend on rows ---------------------------------------------------------------------------

BITS = st.sampled_from(["auto", *range(fixed_point.MIN_FRAC_BITS, fixed_point.MAX_FRAC_BITS + 1)])
NORMS = st.floats(-60, 60).map(lambda power: 2.0**power)


def job_with(bits: int | str, epsilon: float, delta: float, rows: int | None, trust: str = "trusted") -> WalrJob:
    privacy = {"epsilon": epsilon, "delta": delta, "max_rows_per_person": rows}
    return WalrJob.model_validate({"privacy": privacy, "walr": {"frac_bits": bits, "trust": trust}})


TRUSTS = ["trusted", "encrypted-rows", "two-servers", "shared-rows"]


@given(
    norm=NORMS,
    bits=BITS,
    epsilon=st.floats(math.log(walr.MIN_EPSILON), math.log(walr.MAX_EPSILON)).map(math.exp),
    delta=st.sampled_from([walr.MIN_DELTA, 1e-30, 1e-6, 0.4]),
    rows=st.sampled_from([None, 1, 50, 2**16]),
    columns=st.integers(1, fixed_point.MAX_COLUMNS),
    trust=st.sampled_from(TRUSTS),
)
def test_whatever_rows_hold_there_is_a_grid_for_them(
    norm: float, bits: int | str, epsilon: float, delta: float, rows: int | None, columns: int, trust: str
) -> None:
    """The conditions of the server and of the proof of short rows hold too, for as many rows as there may be."""
    job = job_with(bits, min(max(epsilon, walr.MIN_EPSILON), walr.MAX_EPSILON), delta, rows, trust)
    try:
        job.grid_of_rows(3.0, columns)
    except RangeError:  # then for no rows
        with pytest.raises(RangeError, match="no grid is fine enough"):
            job.grid_of_rows(norm, columns)
        return
    grid = job.grid_of_rows(norm, columns)
    multiplier = gaussian.noise_multiplier("analytic", job.required_privacy.epsilon, delta)
    GaussianMechanism(multiplier, (grid.norm_bound * (rows or 1)) ** 2)
    assert 1 <= grid.norm_bound <= MAX_NORM_BOUND
    assert bits in ("auto", grid.frac_bits)
    noise = GaussianMechanism(multiplier, (grid.norm_bound * (rows or 2**16)) ** 2).sigma_squared ** 0.5
    if job.asks_shares:
        assert two_servers.reach(fixed_point.MAX_ROWS, grid.norm_bound, noise) < two_servers.P / 2
    assert fixed_point.MAX_ROWS * grid.norm_bound + gaussian.NOISE_REACH * noise < 2**63
    if trust == "shared-rows":
        Plan(1, columns, grid.norm_bound)


@each_case("columns", [1, 20, 2042, fixed_point.MAX_COLUMNS])
def test_the_proof_of_short_rows_leaves_no_gap_between_grids(columns: int) -> None:
    """The norm is changed where hardly one power of two lies between the least and the largest bound."""
    for epsilon in np.linspace(1, walr.MAX_EPSILON, 50).tolist():
        job = job_with("auto", epsilon, 1e-30, None, "shared-rows")
        if gaussian.noise_multiplier("analytic", epsilon, 1e-30) < 0.3 and columns > 2000:
            continue  # such small noise has no grid for so many columns, for any norm
        for norm in np.geomspace(0.2, 2000, 60).tolist():
            grid = job.grid_of_rows(norm, columns)
            Plan(1, columns, grid.norm_bound)
            GaussianMechanism(gaussian.noise_multiplier("analytic", epsilon, 1e-30), grid.norm_bound**2)
            assert norm / 2 < grid.real_bound < 2 * norm


@each_case("norm_bound", [0.5, 9.0, 300.0])
def test_a_norm_bound_of_the_job_is_refused_or_kept_whatever_rows_hold(norm_bound: float) -> None:
    for columns in (5, 3000):
        job = WalrJob.model_validate(
            {"privacy": {"epsilon": 1.0, "delta": 1e-6}, "walr": {"norm_bound": norm_bound, "trust": "shared-rows"}}
        )
        grid = job.grid_of_rows(norm_bound, columns)
        Plan(1, columns, grid.norm_bound)
        assert grid.real_bound == pytest.approx(norm_bound, rel=1e-3)


@given(
    norms=st.lists(NORMS.filter(lambda norm: norm < 2.0**25), min_size=2, max_size=16),
    bits=BITS,
    epsilon=st.floats(math.log(walr.MIN_EPSILON), math.log(walr.MAX_EPSILON)).map(math.exp),
    delta=st.sampled_from([walr.MIN_DELTA, 1e-30, 1e-6, 0.4]),
)
@example(norms=[3e7, 1e-12], bits="auto", epsilon=1.0, delta=1e-6)  # the second is shorter than a step
@example(norms=[1e-12, 3e7], bits="auto", epsilon=1.0, delta=1e-6)
def test_whatever_rows_of_several_holders_hold_there_are_grids_for_them(
    norms: list[float], bits: int | str, epsilon: float, delta: float
) -> None:
    told = {f"p{i}": BlockColumns(3, norm) for i, norm in enumerate(norms[1:])}
    epsilon = min(max(epsilon, walr.MIN_EPSILON), walr.MAX_EPSILON)
    own, others = grids_of(job_with(bits, epsilon, delta, None), told, BlockColumns(3, norms[0]))
    squares = sum(grid.norm_bound**2 for grid in (own, *others.values()))
    whole = math.isqrt(squares - 1) + 1  # the formula of walr_blocks.step_4_open
    multiplier = gaussian.noise_multiplier("analytic", epsilon, delta)
    GaussianMechanism(multiplier, whole**2)
    assert whole <= MAX_NORM_BOUND
    assert whole * (fixed_point.MAX_ROWS + gaussian.NOISE_REACH * multiplier * 2**16) < 2**63
    assert all(grid.norm_bound >= 1 for grid in (own, *others.values()))


def test_a_bound_that_needs_no_cut_is_not_cut() -> None:
    for bits in ("auto", 16):
        job = job_with(bits, 1.0, 1e-6, None)
        assert job.grid_of_rows(9.0, 5) == job.grid(9.0)
        own, others = grids_of(job, {"p": BlockColumns(3, 2.0)}, BlockColumns(3, 3.0))
        assert (own.real_bound, others["p"].real_bound) == (3.0, 2.0)


def test_where_no_bound_has_a_grid() -> None:
    with pytest.raises(RangeError, match="no grid is fine enough"):
        Room.of(1e-4, (1, 1), largest_sum=LARGEST_SUM)
    with pytest.raises(RangeError, match="no grid is fine enough"):
        Room.of(0.3, (1, 1), largest_sum=LARGEST_SUM, largest=2**17)


@each_case(("epsilon", "delta"), [(walr.MIN_EPSILON * 0.9, 1e-6), (1.0, walr.MIN_DELTA * 0.9)])
def test_a_job_is_refused_where_no_server_would_answer_it(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        job_with("auto", epsilon, delta, None)
    job_with("auto", max(epsilon, walr.MIN_EPSILON), max(delta, walr.MIN_DELTA), None)
