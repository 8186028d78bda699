"""The plan before a training: the rows' parts, the grids, and bounds that hold for any rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from blindfit.algorithms.errors import (
    BlindfitError,
    ConfigError,
    DataError,
    LocalProtocolError,
    PrivacyError,
    RangeError,
)
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.packing import decrypt_packed
from blindfit.algorithms.paillier.vectors import decrypt, encrypt
from blindfit.algorithms.protocols import taylor
from blindfit.algorithms.protocols.taylor import DataSeat, TaylorParameters, check_parameters
from blindfit.algorithms.protocols.taylor.parameters import check_seat
from blindfit.algorithms.statistics.vertical.grid import (
    HIDING_BITS,
    LABEL_BOUND,
    LABEL_TERM_BOUND,
    MOST_BATCH_ROWS,
    MOST_ROWS,
    SCORE_TERM_BOUND,
    Grid,
    min_batch_rows,
)
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan, rows_of_batches, suitable_batch_rows
from tests.each_case import each_case
from tests.paillier.tools import LAW, seeded
from tests.taylor.seats import Case, case_of, held_out_locally, randomisers

# --- rows -----------------------------------------------------------------------------------------------


def draw(n_rows: int, batch_rows: int, seed: int = 1, test: float = 0.2, validation: float = 0.15) -> RowPlan:
    order = np.random.default_rng(seed).permutation(n_rows)
    return RowPlan.of(order, test_fraction=test, validation_fraction=validation, batch_rows=batch_rows)


@LAW
@given(st.integers(20, 3000), st.integers(2, 500), st.integers(0, 2**63 - 1))
def test_every_row_has_one_part_and_one_batch(n_rows: int, batch_rows: int, seed: int) -> None:
    plan = draw(n_rows, batch_rows, seed)
    parts = np.concatenate([*plan.batches, plan.validation, plan.test])
    assert sorted(parts.tolist()) == list(range(n_rows))
    assert len(plan.validation) == round(0.15 * n_rows)
    assert len(plan.test) == round(0.2 * n_rows)
    assert plan.train.tolist() == np.concatenate(plan.batches).tolist()


@LAW
@given(st.integers(20, 3000), st.integers(2, 500))
def test_no_batch_is_smaller_than_three_quarters_of_what_was_asked_for(n_rows: int, batch_rows: int) -> None:
    sizes = [len(batch) for batch in draw(n_rows, batch_rows).batches]
    assert len(sizes) == max(1, math.floor(sum(sizes) / batch_rows + 0.5))
    assert len(sizes) == 1 or math.floor(0.75 * batch_rows) <= min(sizes) <= max(sizes) < 1.5 * batch_rows
    assert set(sizes[:-1]) <= {batch_rows} or max(sizes) - min(sizes) <= 1


@LAW
@given(st.integers(1, 5000), st.integers(2, 1200))
def test_the_least_batch_size_for_so_many_rows_in_each(n_train: int, needed: int) -> None:
    """The test compares the plans themselves: all sizes below are refused, and this one and larger ones are not."""

    def smallest(batch_rows: int) -> int:
        plan = RowPlan.of(np.arange(n_train), test_fraction=0, validation_fraction=0, batch_rows=batch_rows)
        assert [len(batch) for batch in plan.batches] == rows_of_batches(n_train, batch_rows)
        return min(map(len, plan.batches))

    least = min_batch_rows(n_train, needed)
    if least is None:
        assert n_train < needed
        return
    assert smallest(least) >= needed
    for other in range(max(2, least - 60), least):
        assert smallest(other) < needed
    for other in (*range(least, least + 60), 2 * least, n_train, 2 * n_train):
        assert other < least or smallest(other) >= needed


def test_no_batch_size_that_a_job_may_not_ask_for_is_named() -> None:
    most = MOST_BATCH_ROWS
    assert min_batch_rows(2 * most, most) == most
    assert min_batch_rows(2 * most, most + 1) is None
    assert min_batch_rows(2 * most - 1, most) is None  # one batch needs more than two thirds of the rows


def test_the_rest_of_many_rows_is_no_small_batch() -> None:
    """Batches of 128 left 88 rows over, which were once refused with 31 columns that take four rows each."""
    plan = draw(99_928, 128, test=0.0, validation=0.0)
    assert len(plan.train) % 128 == 88
    assert min(map(len, plan.batches)) == 127


def test_an_order_gives_one_plan_to_all() -> None:
    one, same, other = draw(100, 16), draw(100, 16), draw(100, 16, seed=2)
    assert [batch.tolist() for batch in one.batches] == [batch.tolist() for batch in same.batches]
    assert one.validation.tolist() == same.validation.tolist() != other.validation.tolist()


@each_case(("n_rows", "test", "validation"), [(10, 0.5, 0.5), (0, 0.2, 0.15), (2, 0.0, 0.15), (1, 0.9, 0.0)])
def test_too_few_rows_to_split_are_refused(n_rows: int, test: float, validation: float) -> None:
    with pytest.raises(DataError, match=r"too few|is left to train on"):
        draw(n_rows, 4, test=test, validation=validation)


# --- numbers on the grid ----------------------------------------------------------------------------------

REALS = arrays(np.float64, (4, 3), elements=st.floats(allow_nan=False))


@LAW
@given(REALS, st.sampled_from([8.0, 1.0, 0.3, 100.7]), st.integers(1, 20))
def test_features_are_clipped_and_rounded_to_nearest(reals: np.ndarray, bound: float, bits: int) -> None:
    grid = Grid("linear", 2, feature_bits=bits, feature_bound=bound)
    integers = grid.features(reals)
    assert np.abs(integers).max() <= grid.feature_steps
    np.testing.assert_allclose(integers * 2.0**-bits, np.clip(reals, -bound, bound), atol=2.0**-bits / 2, rtol=1e-15)


def test_a_feature_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(DataError, match="not a number"):
        Grid("linear", 2).features([[0.0, np.nan]])


@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_score_terms_are_rounded_and_cut_at_their_bound(model: str) -> None:
    grid = Grid(model, 2)
    most = SCORE_TERM_BOUND / (2 * grid.loss.square)
    assert most == grid.largest_score
    terms = grid.score_terms(np.array([most, -most, np.nextafter(most, np.inf), -1e300, 0.1, 0.0]))
    largest = SCORE_TERM_BOUND << 20
    assert terms.tolist() == [largest, -largest, largest, -largest, round(0.1 * 2 * grid.loss.square * 2**20), 0]


@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_weights_are_held_back_where_a_score_would_pass_its_bound(model: str) -> None:
    grid = Grid(model, 2)
    features = grid.features([[8.0, -8.0], [1.0, 0.0]])
    few = np.array([grid.largest_score / 16, -grid.largest_score / 16])
    assert grid.shrink(features, few).tolist() == few.tolist()
    held = grid.shrink(features, 1000 * few)
    np.testing.assert_allclose(held, few, rtol=1e-15)
    assert grid.shrink(features[:0], few).tolist() == few.tolist()


@each_case(("rows", "size"), [(1, 128), (1023, 128), (1024, 256), (2047, 256), (2048, 512), (10**6, 512)])
def test_batches_are_as_large_as_leaves_four_of_them(rows: int, size: int) -> None:
    assert suitable_batch_rows(rows) == size
    plan = RowPlan.of(np.arange(rows), test_fraction=0, validation_fraction=0, batch_rows=None)
    assert len(plan.batches[0]) == min(rows, size)


def test_label_terms_carry_the_jitter_and_stop_at_their_bound() -> None:
    grid = Grid("linear", 2)
    terms = grid.label_terms(np.array([LABEL_BOUND, -LABEL_BOUND, 0.5, 0.0]), np.array([0.0, 9.0, -0.25, -17.0]))
    assert terms.tolist() == [-8 << 20, LABEL_TERM_BOUND << 20, -3 << 18, -LABEL_TERM_BOUND << 20]
    for wrong in (8.1, -np.inf, np.nan):
        with pytest.raises(RangeError, match="label"):
            grid.label_terms(np.array([wrong]), np.zeros(1))


@LAW
@given(st.integers(1, MOST_ROWS), st.integers(2, 8), st.integers(0, 10))
def test_a_mask_hides_a_gradient_and_both_fit_in_a_slot(rows: int, parties: int, factor_bits: int) -> None:
    grid = Grid("logistic", parties, factor_bits=factor_bits, factor_bound=64 << factor_bits)
    gradient, hiding = grid.gradient_bound(rows), grid.hiding_bound(rows)
    assert gradient << HIDING_BITS < hiding <= gradient << HIDING_BITS + 1
    assert gradient + hiding < 1 << (grid.slot_bits(rows) - 1)


# --- bounds hold on the most extreme rows ------------------------------------------------------------------


def extreme(key: PrivateKey, model: str, rng: np.random.Generator, **changes: Any) -> Case:
    """Return 500 rows of features, scores and labels at their bounds, of either sign."""
    case = case_of(key, model=model, n_passive=2, n_batches=1, batch_rows=500, held_out_rows=20, **changes)
    grid, n = case.grid, 520
    blocks = {}
    for name, block in case.table.blocks.items():
        reals = rng.choice([np.inf, -np.inf, 8.0, -8.0, 1e300, -1e300], size=block.shape)
        blocks[name] = grid.features(reals)
    y = np.full(n, LABEL_TERM_BOUND * 1.0) * rng.choice([1.0, -1.0], n) if model == "linear" else case.table.y
    terms = rng.choice([-1, 1], n) * (LABEL_TERM_BOUND << grid.residual_bits)
    factors = None if case.table.factors is None else np.full(n, grid.factor_bound)
    table = replace(case.table, blocks=blocks, y=y, label_terms=terms, factors=factors)
    return replace(case, table=table, class_weights=factors)


def weights_at_the_bound(seat: DataSeat, case: Case) -> np.ndarray:
    """Return weights with which some row's score is the largest that a party may have."""
    largest = SCORE_TERM_BOUND / (2 * case.grid.loss.square)
    signs = np.sign(seat.features[0])
    return signs * largest / (8.0 * len(signs))


@pytest.mark.parametrize("model", ["logistic", "linear"])
@pytest.mark.parametrize("class_weights", [False, True])
def test_ten_thousand_extreme_rows_never_wrap(insecure_test_key: PrivateKey, model: str, class_weights: bool) -> None:
    """The test takes 2,500 rows in each direction through steps 1 to 3: the decrypted sum is exact, and within its
    bound.
    """
    rng = np.random.default_rng(5)
    for _ in range(5):
        case = extreme(insecure_test_key, model, rng, class_weights=class_weights)
        seats = case.seats()
        for seat in seats:
            seat.optimiser.weights = weights_at_the_bound(seat, case)
        residuals, exact = through_the_chain(seats, case)
        bound = case.grid.residual_bound * case.grid.factor_bound
        assert decrypt(residuals, case.key).values.tolist() == exact
        assert residuals.bound == bound
        for seat in seats:
            masked, rho = taylor.steps.step_3_gradient(seat, case.batch, case.grid, residuals)
            X = seat.features[case.batch].astype(object)
            opened = decrypt_packed(masked, case.key).values - np.array(rho, dtype=object)
            assert opened.tolist() == (X.T @ np.array(exact, dtype=object)).tolist()


def through_the_chain(seats: list[DataSeat], case: Case) -> tuple[Any, list[int]]:
    """Run steps 0 to 2, and return the residuals as integers."""
    parameters, batch, grid = case.parameters, case.batch, case.grid
    taylor.local.share_locally(seats[0], seats[1:], parameters)
    residuals = taylor.steps.step_1_residuals(seats[0], batch, grid)
    for seat in seats[1:]:
        residuals = taylor.steps.step_2_add(seat, batch, grid, residuals)
    factors = case.table.row_factors(batch).tolist()
    terms = [grid.score_terms(grid.scores(seat.features[batch], seat.optimiser.weights)).tolist() for seat in seats]
    columns = [*terms, case.table.label_terms[batch].tolist()]
    return residuals, [f * sum(row) for f, row in zip(factors, zip(*columns, strict=True), strict=True)]


def test_the_bounds_are_reached(insecure_test_key: PrivateKey) -> None:
    """All rows are alike and at the bound: the gradient equals its bound, so no bound could be smaller."""
    case = extreme(insecure_test_key, "logistic", np.random.default_rng(0))
    n = len(case.table.y)
    blocks = {name: np.full_like(block, 8 << 12) for name, block in case.table.blocks.items()}
    labels = np.full(n, LABEL_TERM_BOUND << 20)
    case = replace(case, table=replace(case.table, blocks=blocks, label_terms=labels))
    seats = case.seats()
    for seat in seats:
        seat.optimiser.weights = weights_at_the_bound(seat, case)
        seat.uniform = lambda m: m - 1
    residuals, exact = through_the_chain(seats, case)
    assert set(exact) == {case.grid.residual_bound}
    masked, rho = taylor.steps.step_3_gradient(seats[1], case.batch, case.grid, residuals)
    assert set(rho) == {case.grid.hiding_bound(500) - 1}
    opened = decrypt_packed(masked, case.key).values - np.array(rho, dtype=object)
    assert set(opened.tolist()) == {case.grid.gradient_bound(500)}


@pytest.mark.parametrize("model", ["logistic", "linear"])
@pytest.mark.parametrize("class_weights", [False, True])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_largest_hold_out_loss_is_within_its_bound(
    insecure_test_key: PrivateKey, model: str, class_weights: bool, sign: float
) -> None:
    case = extreme(insecure_test_key, model, np.random.default_rng(1), class_weights=class_weights)
    blocks = {name: np.full_like(block, 8 << 12) for name, block in case.table.blocks.items()}
    case = replace(case, table=replace(case.table, blocks=blocks))
    seats = case.seats()
    for seat in seats:
        seat.optimiser.weights = sign * weights_at_the_bound(seat, case)
    taylor.local.share_locally(seats[0], seats[1:], case.parameters)
    grid, rows = case.grid, case.held_out
    *_, (scores, loss) = held_out_locally(seats, rows, grid)
    most = np.array([len(seats) * grid.score_bound * grid.factor_bound] * len(rows), dtype=object) * int(sign)
    assert decrypt(scores, case.key).values.tolist() == most.tolist()
    opened = int(decrypt(loss, case.key).values[0])
    assert grid.loss_bound(len(rows)) // 16 < opened < grid.loss_bound(len(rows))


# --- checked before the start --------------------------------------------------------------------------------

PARAMETERS = TaylorParameters(("a", "b"), "k", (30, 20), Grid("logistic", 2))
WEIGHTED = Grid("logistic", 2, factor_bits=8, factor_bound=64 << 8)


def refused(changes: dict[str, Any], rows: list[int], held_out: int) -> BlindfitError:
    with pytest.raises(BlindfitError) as error:
        check_parameters(replace(PARAMETERS, **changes), rows, held_out)
    return error.value


@each_case("model", ["logistic", "linear"])
@each_case("parties", [2, 3, 5])
@each_case("key_bits", [512, 2048, 3072])
def test_the_defaults_fit(model: str, parties: int, key_bits: int) -> None:
    names = tuple("abcdefgh"[:parties])
    for factors in ({}, {"factor_bits": 8, "factor_bound": 64 << 8}):
        grid = Grid(model, parties, **factors)
        widths = (2**16,) * parties
        parameters = TaylorParameters(names, "k", widths, grid, key_bits=key_bits, encrypted_factors=bool(factors))
        check_parameters(parameters, [MOST_ROWS], MOST_ROWS)


@each_case(
    ("changes", "rows", "held_out", "error", "text"),
    [
        ({"key_bits": 96}, [128], 20, RangeError, "key of 96 bits"),
        ({"key_bits": 94, "hold_out_loss": False}, [128], 0, RangeError, "key of 94 bits"),
        ({"key_bits": 104}, [128], 20, RangeError, "key of 104 bits"),  # a gradient would fit, the loss does not
        ({"grid": Grid("logistic", 2, residual_bits=60)}, [128], 20, RangeError, "62 bits"),
        ({"grid": Grid("logistic", 2, score_bits=26)}, [128], 20, RangeError, "62 bits"),
        ({"grid": Grid("logistic", 2, feature_bits=52)}, [128], 20, RangeError, "62 bits"),
        ({"grid": Grid("linear", 2, label_bits=58)}, [128], 20, RangeError, "62 bits"),
        (
            {"grid": replace(WEIGHTED, factor_bound=2**40), "encrypted_factors": True},
            [128],
            20,
            RangeError,
            "62 bits",
        ),
        ({"grid": Grid("logistic", 2, score_bits=14)}, [128], 20, RangeError, "no bit"),
        ({"grid": Grid("logistic", 2, feature_bound=0.0)}, [128], 20, RangeError, "no bit"),
        ({"noise_std": -1.0}, [128], 20, RangeError, "gradient_noise"),
        ({"noise_std": float("nan")}, [128], 20, RangeError, "gradient_noise"),
        ({"noise_std": float("inf")}, [128], 20, RangeError, "gradient_noise"),
        ({"noise_std": 2.0**60}, [128], 20, RangeError, "gradient_noise"),
        ({"data_parties": ("a",), "columns": (3,)}, [128], 20, ConfigError, "passive"),
        ({"data_parties": ("a", "b", "c"), "columns": (1, 1, 1)}, [128], 20, ConfigError, "grid"),
        ({"columns": (30,)}, [128], 20, ConfigError, "column"),
        ({"columns": (30, 0)}, [128], 20, ConfigError, "column"),
        ({}, [], 20, ConfigError, "batches"),
        ({}, [128, 0], 20, ConfigError, "batches"),
        ({}, [128], 0, ConfigError, "held out"),
        ({"grid": WEIGHTED}, [128], 20, ConfigError, "class weights"),
        ({"grid": WEIGHTED, "masked": True}, [128], 20, ConfigError, "class weights"),
        ({"kept_noise_std": 2.0**60, "hold_out_loss": False}, [128], 20, RangeError, "label DP's noise"),
        ({"kept_noise_std": 1.0}, [128], 20, PrivacyError, "hold-out loss"),
        ({"kept_noise_std": 2.0**-17, "hold_out_loss": False}, [128], 20, PrivacyError, "a few steps"),
        (
            {"kept_noise_std": 1.0, "hold_out_loss": False, "encrypted_factors": True, "grid": WEIGHTED},
            [128],
            20,
            PrivacyError,
            "class weights",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_the_start(
    changes: dict[str, Any], rows: list[int], held_out: int, error: type[BlindfitError], text: str
) -> None:
    raised = refused(changes, rows, held_out)
    assert type(raised) is error
    assert text in str(raised)


@LAW
@given(
    st.sampled_from(["logistic", "linear"]),
    st.integers(2, 6),
    st.integers(1, 2**20),
    st.integers(1, 2**20),
    st.integers(1, 2**12),
    st.integers(80, 300),
)
def test_a_key_that_passes_the_check_holds_every_bound(
    model: str, parties: int, rows: int, held_out: int, columns: int, key_bits: int
) -> None:
    """A key that does not pass is less than three bits too small."""
    grid = Grid(model, parties)
    parameters = TaylorParameters(
        tuple("abcdef"[:parties]), "k", (columns,) * parties, grid, key_bits=key_bits, noise_std=0.0
    )
    needed = max(grid.slot_bits(rows) + 2, grid.partial_loss_bound(held_out, columns).bit_length() + 2)
    try:
        check_parameters(parameters, [rows], held_out)
    except RangeError:
        assert key_bits < needed + 3
    else:
        assert key_bits >= needed


def wrong_seats(case: Case) -> dict[str, tuple[str, dict[str, Any]]]:
    active, passive = case.names[:2]
    ones = np.ones(len(case.table.y), np.int64)
    mask = encrypt(Fixed(ones, 0), randomisers(case.key, 9), bound=1)
    return {
        "features": (passive, {"features": case.table.blocks[passive][:, :1]}),
        "plan": (passive, {"features": case.table.blocks[passive][:-1]}),
        "label_terms": (active, {"label_terms": None}),
        "y": (active, {"y": case.table.y[:-1]}),
        "factors": (active, {"factors": ones}),
        "mask_enc": (passive, {"mask_enc": mask}),
    }


@each_case("field", ["features", "plan", "label_terms", "y", "factors", "mask_enc"])
def test_a_seat_that_is_not_what_was_agreed_is_refused(insecure_test_key: PrivateKey, field: str) -> None:
    case = case_of(insecure_test_key)
    name, changes = wrong_seats(case)[field]
    seat = case.seat(name)
    check_seat(seat, case.plan, case.parameters)
    with pytest.raises(LocalProtocolError, match=f"{name}: {field}"):
        check_seat(replace(seat, **changes), case.plan, case.parameters)


@pytest.mark.parametrize("change", [{"frac_bits": 1}, {"bound": 2}])
def test_a_mask_is_of_zeros_and_ones(insecure_test_key: PrivateKey, change: dict[str, int]) -> None:
    case = case_of(insecure_test_key, masked=True)
    seat = case.seat(case.names[1])
    check_seat(seat, case.plan, case.parameters)
    seat.mask_enc = replace(seat.mask_enc, **change)
    with pytest.raises(LocalProtocolError, match="mask_enc"):
        check_seat(seat, case.plan, case.parameters)


def test_a_feature_past_the_clip_is_refused_at_the_start_and_in_its_step(insecure_test_key: PrivateKey) -> None:
    """Otherwise its gradient could reach into the next slot."""
    case = case_of(insecure_test_key)
    seat = case.seat(case.names[1])
    residuals, _ = through_the_chain(case.seats(), case)
    seat.features = seat.features.copy()
    seat.features[case.batch] = (8 << 12) + 1
    with pytest.raises(RangeError, match=f"{seat.name} passes 8"):
        check_seat(seat, case.plan, case.parameters)
    with pytest.raises(RangeError, match="passes the bound"):
        taylor.steps.step_3_gradient(replace(seat, uniform=seeded()), case.batch, case.grid, residuals)
