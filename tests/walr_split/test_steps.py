"""One step after the other: shares, exact sums modulo p, the noise of both, what the active party checks."""

from __future__ import annotations

import contextlib
import math
import random
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from blindfit.algorithms.errors import DataError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import MAX_NORM_BOUND
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows, NoisySum, two_servers
from blindfit.algorithms.protocols.walr.two_servers import P, ShareTally
from tests.each_case import each_case
from tests.walr.seats import NORM_BOUND, request_for, rows_of

RED_BY_CHANCE = 1e-7
draws = st.integers(0, P - 1)


@given(draws, st.integers(0, 1))
def test_each_share_alone_has_the_same_law_for_both_labels(draw: int, label: int) -> None:
    """The first share does not depend on the label; the second, label - draw, takes all values with the draw."""
    first, second = (int(share[0]) for share in two_servers.split(np.array([label], np.uint8), lambda _: draw))
    assert first == draw
    assert (first + second) % P == label
    of_other = two_servers.split(np.array([1 - label], np.uint8), lambda _: (draw + 1 - 2 * label) % P)
    assert int(of_other[1][0]) == second


@given(st.data())
def test_a_sum_of_shares_is_exact(data: Any) -> None:
    n, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    most = MAX_NORM_BOUND
    entry = st.integers(-most, most)
    matrix = [[data.draw(entry) for _ in range(k)] for _ in range(n)]
    shares = [data.draw(draws) for _ in range(n)]
    kept = [data.draw(st.booleans()) for _ in range(n)]
    tally = ShareTally(request_for(rows_of(n, k)), lambda _: None)
    for _ in range(2):  # the tally adds to its earlier sums
        tally.add_up(np.array(shares, np.uint64), np.array(kept), np.array(matrix, np.int32))
    wanted = [2 * sum(s * row[j] for s, row, of in zip(shares, matrix, kept, strict=True) if of) % P for j in range(k)]
    assert tally.wrap(tally.sums.tolist()).tolist() == wanted


def release(rows: ConsumerRows, labels: np.ndarray, seed: int) -> tuple[list[NoisySum], Any]:
    """Return the answers of two servers, drawn from a seed."""
    generator = random.Random(seed)
    request, answers = request_for(rows), []
    for shares in two_servers.split(labels, generator.randrange):
        tally = ShareTally(request, lambda _: None)
        tally.add_up(shares, np.ones(len(shares), np.bool_), rows.weights)
        tally.rows_kept = len(shares)
        draft = walr.step_5_draft(tally, generator.randrange, neighbours="row")
        answers.append(walr.answer_of(draft, unit="row", terms=walr.Terms()))
    return answers, request


def test_the_noise_of_both_is_gaussian_of_twice_the_variance() -> None:
    k = 1500
    rows = ConsumerRows(("a", "b"), np.ones((2, k), np.int32))
    answers, request = release(rows, np.array([1, 0], np.uint8), seed=3)
    made = two_servers.step_6_add(answers, request, servers=("east", "west"))
    noise = made.sums - 1
    one = math.sqrt(walr.mechanism_of(request).sigma_squared)
    assert made.noise_std == pytest.approx(math.sqrt(2) * one)
    assert stats.kstest(noise / made.noise_std, "norm").pvalue > RED_BY_CHANCE
    squares = float((noise.astype(float) ** 2).sum()) / one**2 / 2
    assert stats.chi2.cdf(squares, k) > RED_BY_CHANCE / 2
    assert stats.chi2.sf(squares, k) > RED_BY_CHANCE / 2


@cache
def answers_of_one_row(label: int) -> list[tuple[float, float]]:
    """Return the answers of both servers over splits, as fractions of P."""
    rows = ConsumerRows(("a",), np.array([[NORM_BOUND]], np.int32))
    made = (release(rows, np.array([label], np.uint8), seed)[0] for seed in range(600))
    return [(one.sums[0] / P, other.sums[0] / P) for one, other in made]


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("server", [0, 1])
def test_one_answer_alone_is_uniform(server: int, label: int) -> None:
    """The answer is uniform over splits for any label, so the active party needs both."""
    answers = [both[server] for both in answers_of_one_row(label)]
    assert stats.kstest(answers, "uniform").pvalue > RED_BY_CHANCE


def test_what_could_pass_half_the_modulus_is_refused() -> None:
    request = request_for(rows_of())
    two_servers.step_1_check(request)
    two_servers.step_2_check(request, consumer="shop")
    far = replace(request, norm_bound=MAX_NORM_BOUND, max_rows_per_person=2**16, epsilon=1e-6)
    assert two_servers.reach_of(far) > P / 2
    with pytest.raises(RangeError, match="half of 2"):
        two_servers.step_1_check(far)
    with pytest.raises(MalformedMessage, match="frac_bits"):
        two_servers.step_2_check(far, consumer="shop")


@pytest.mark.parametrize("field", ["n_rows", "frac_bits", "norm_bound", "epsilon", "delta", "mechanism"])
def test_every_parameter_is_compared(field: str) -> None:
    request = request_for(rows_of())
    changed: Any = "classic" if field == "mechanism" else getattr(request, field) * 2
    mine = two_servers.step_2_agreement(request, "split", b"ids")
    theirs = two_servers.step_2_agreement(replace(request, **{field: changed}), "split", b"ids")
    assert "asked for different things" in two_servers.step_2_difference(mine, theirs)
    own = replace(request, snapshot="its own", dataset="its own", request_id="its own", receipt=b"its own")
    assert not two_servers.step_2_difference(mine, two_servers.step_2_agreement(own, "split", b"ids"))


def test_an_answer_with_another_noise_is_refused() -> None:
    answers, request = release(rows_of(5, 2), np.ones(5, np.uint8), seed=1)
    two_servers.step_6_check(answers[0], request, server="east")
    with pytest.raises(MalformedMessage, match="noise_std"):
        two_servers.step_6_check(replace(answers[0], noise_std=1.0), request, server="east")


@each_case(("sum_", "fits"), [(0, True), (P - 1, True), (-1, False), (P, False)])
def test_an_answer_that_is_no_sum_mod_p_is_refused(sum_: int, fits: bool) -> None:
    answers, request = release(rows_of(5, 2), np.ones(5, np.uint8), seed=1)
    answer = replace(answers[0], sums=np.array([sum_, *answers[0].sums[1:]], np.int64))
    with contextlib.nullcontext() if fits else pytest.raises(MalformedMessage, match="are not from 0 to 2"):
        two_servers.step_6_check(answer, request, server="east")


@pytest.mark.parametrize("changes", [{"rows_kept": 4}, {"unit": "a person"}, {"sensitivity": 1.0}])
def test_answers_that_differ_are_not_added(changes: dict[str, Any]) -> None:
    answers, request = release(rows_of(5, 2), np.ones(5, np.uint8), seed=1)
    with pytest.raises(DataError, match=f"{next(iter(changes))} differs"):
        two_servers.step_6_add([answers[0], replace(answers[1], **changes)], request, servers=("east", "west"))
