"""The steps of several parties' columns, one at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from blindfit.algorithms.errors import DuplicateId, LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import quantise_rows
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows, Tally, several_parties
from blindfit.algorithms.protocols.walr.blocks import Block, blocks_of, own_request
from blindfit.algorithms.protocols.walr.messages import BlockColumns
from blindfit.algorithms.protocols.walr.several_parties import BlockRows, BlocksTally
from tests.walr.seats import NORM_BOUND, SETTINGS, request_for, rows_of

BLOCKS = (Block("bank", 2, 70_000, bytes(32)), Block("chain", 3, 50_000, bytes(range(32))))


def test_blocks_are_read_as_they_were_named() -> None:
    own = request_for(rows_of())
    request = several_parties.step_4_open(own, BLOCKS)
    assert blocks_of(request, culprit="shop") == BLOCKS
    assert request.n_columns == 8
    assert request.norm_bound**2 >= NORM_BOUND**2 + 70_000**2 + 50_000**2 > (request.norm_bound - 1) ** 2
    assert own_request(request, BLOCKS).n_columns == 3
    assert own_request(request, BLOCKS).norm_bound >= NORM_BOUND
    assert blocks_of(own, culprit="shop") == ()


def test_another_block_is_another_request() -> None:
    own = request_for(rows_of())
    one = several_parties.step_4_open(own, BLOCKS)
    other = several_parties.step_4_open(own, (BLOCKS[0], replace(BLOCKS[1], content_sha256=bytes(32))))
    assert one.request_id != other.request_id
    assert walr.request_digest(one) != walr.request_digest(other)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '{"blocks":[]}',
        '{"blocks":[["bank",2,70000]]}',
        '{"blocks":[["bank",2,70000,"00"]]}',
        '{"blocks":[["bank",-2,70000,"' + "00" * 32 + '"]]}',
        '{"blocks":[["bank",2,0,"' + "00" * 32 + '"]]}',
        '{"blocks":[["bank","2",7,"' + "00" * 32 + '"]]}',
        '{"blocks":[["bank",2.0,7,"' + "00" * 32 + '"]]}',
        '{"blocks":[["chain",1,7,"' + "00" * 32 + '"],["bank",1,7,"' + "00" * 32 + '"]]}',
        '{"blocks":[["bank",1,7,"' + "00" * 32 + '"],["bank",1,7,"' + "00" * 32 + '"]]}',
        '{"blocks":[["bank",3,7,"' + "00" * 32 + '"]]}',
        '{"blocks":[["bank",1,' + "9" * 30 + ',"' + "00" * 32 + '"]]}',
        "[" * 100_000,
    ],
)
def test_what_are_no_blocks_is_refused(text: str) -> None:
    with pytest.raises(MalformedMessage, match="blocks"):
        blocks_of(request_for(rows_of(), blocks=text), culprit="shop")


@pytest.mark.parametrize("told", [BlockColumns(0, 1.0), BlockColumns(5000, 1.0), BlockColumns(2, 0.0)])
def test_columns_out_of_range_are_refused(told: BlockColumns) -> None:
    with pytest.raises(MalformedMessage, match="bank"):
        several_parties.step_2_check_columns(told, passive="bank")


def test_a_bound_of_whole_rows_is_split_by_columns_and_else_each_has_its_own() -> None:
    told, own = {"bank": BlockColumns(4, 2.0)}, BlockColumns(5, 1.5)
    bounds, own_bound, whole = several_parties.step_2_bounds(told, own, 3.0)
    assert (bounds["bank"], own_bound, whole) == (2.0, pytest.approx(5**0.5), 3.0)
    assert several_parties.step_2_bounds(told, own, None) == ({"bank": 2.0}, 1.5, 2.5)


def test_the_sum_moves_by_no_more_than_the_norm_bound_if_a_label_flips() -> None:
    """Rows are as long as a cheating party can make them: blocks beyond their bound are refused, its own
    are shortened.
    """
    rng = np.random.default_rng(0)
    n = 300
    ids = tuple(f"row-{i}" for i in range(n))
    own_rows = rng.integers(-300_000, 300_000, (n, 3)).astype(np.int32)
    others = [quantise_rows(rng.normal(size=(n, b.n_columns)) * 9, b.norm_bound, 16) for b in BLOCKS]
    own = walr.step_1_open(ConsumerRows(ids, own_rows), NORM_BOUND, SETTINGS)
    request = several_parties.step_4_open(own, BLOCKS)

    def sums(labels: np.ndarray) -> np.ndarray:
        tally = BlocksTally(request, lambda _: None, blocks=BLOCKS)
        for batch in ConsumerRows(ids, own_rows).batches(7):
            tally.add(batch, lambda _: (labels, labels), consumer="shop")
        places = {name: i for i, name in enumerate(ids)}
        held = [BlockRows(places, rows) for rows in others]
        tally.join_blocks(held, lambda ids: (labels[[places[i] for i in ids]], np.ones(len(ids), np.bool_)))
        tally.sum_blocks()
        return tally.sums.astype(float)

    zeros = np.zeros(n, np.uint8)
    moved = []
    for i in range(0, n, 10):
        one = zeros.copy()
        one[i] = 1
        moved.append(float(np.linalg.norm(sums(one) - sums(zeros))))
    assert 0.99 * request.norm_bound < max(moved) <= request.norm_bound


@pytest.mark.parametrize("batch_rows", [2, 3, 7])
def test_an_id_that_comes_twice_is_refused_by_its_place_among_the_active_partys_own(batch_rows: int) -> None:
    """Found later, it would be placed among the common rows, or counted twice among these."""
    ids = ("a", "b", "c", "d", "b", "e")
    rows = ConsumerRows(ids, np.zeros((6, 3), np.int32))
    request = several_parties.step_4_open(walr.step_1_open(rows, NORM_BOUND, SETTINGS), BLOCKS)
    tally = BlocksTally(request, lambda _: None, blocks=BLOCKS)

    def send_all() -> None:
        for batch in rows.batches(batch_rows):
            tally.add(batch, lambda _: pytest.fail("an id was looked up"), consumer="shop")

    with pytest.raises(DuplicateId) as refused:
        send_all()
    assert refused.value.position == 5


def test_told_weights_are_on_the_grid_of_their_error() -> None:
    weights = np.random.default_rng(1).normal(size=50)
    told = several_parties.step_8_rounded(weights, 10_000)
    step = 2.0**-7  # a quarter of 2 / sqrt(10,000) is 0.005
    assert (told / step == np.rint(told / step)).all()
    assert np.abs(told - weights).max() <= step / 2
    assert several_parties.bits_of_a_weight(10_000) == 6 + 7


@pytest.mark.parametrize("weight", [math.nan, math.inf, 40.0])
def test_a_weight_that_no_good_fit_has_is_not_told(weight: float) -> None:
    with pytest.raises(RangeError, match="no good end"):
        several_parties.step_8_rounded(np.array([0.1, weight]), 100)


def test_a_tally_of_one_partys_columns_is_not_joined() -> None:
    with pytest.raises(LocalProtocolError):
        several_parties.require_tally(Tally(request_for(rows_of()), lambda _: None))


def test_a_norm_bound_is_told_in_seven_bits_and_never_less_than_it_is() -> None:
    """The largest quantile is the norm of one row: at 53 bits it would be as good as the row's name."""
    bounds = np.random.default_rng(1).uniform(0.01, 100, 5000).tolist()
    told = [several_parties.step_1_bound(bound) for bound in bounds]
    assert all(b <= t <= b * (1 + 2.0**-6) for b, t in zip(bounds, told, strict=True))
    assert len({math.frexp(t)[0] for t in told}) <= 2**6 + 1
    assert several_parties.step_1_bound(3.0) == 3.0


@pytest.mark.parametrize(("norm", "told"), [(0.0, 2.0**-64), (3e-9, 2.0**-28), (0.5, 0.5), (1e300, 2.0**63)])
def test_of_a_gradient_a_power_of_two_is_told(norm: float, told: float) -> None:
    assert several_parties.step_8_rounded_norm(norm) == told
