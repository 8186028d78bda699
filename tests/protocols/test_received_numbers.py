"""Every received number has a range: its least and its greatest value are accepted, and the next ones refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.alignment.clk import Encoding, Field
from blindfit.algorithms.errors import DataError, MalformedMessage
from blindfit.algorithms.fixed_point import MAX_COLUMNS
from blindfit.algorithms.protocols import align, link, predict, walr
from blindfit.algorithms.protocols.align_ring import Ring
from blindfit.algorithms.protocols.walr import shared_rows
from blindfit.algorithms.protocols.walr.messages import Dimensions, MaskedRows
from blindfit.algorithms.protocols.walr.statement import MOST_NAME_CHARS, Between, read, statement
from blindfit.algorithms.sharing.field import P
from blindfit.parties.measurement import codec
from blindfit.protos import measurement_pb2 as pb
from tests.each_case import each_case
from tests.walr.seats import labels_of, request_for, rows_of

RING = Ring(("bank", "post"), (5, 7), (2, 3))
SIZES = align.SetSize(count=5, min_common=2)
LINKED = link.LinkageSettings(Encoding((Field("name"),)), min_matches=2)


def size(**changes: int) -> None:
    align.step_2_sizes([SIZES, replace(SIZES, **changes)], RING)


def told_size(other: int) -> None:
    told = align.SetSizes(np.array([5, other], np.int64), np.array([2, other], np.int64))
    align.step_2_check(told, SIZES, RING, me="bank", key_node="notary")


def common_rows(common: int) -> None:
    align.step_6_check_outcome(align.Outcome(common), RING, key_node="notary")


def linked(**changes: Any) -> None:
    outcome = replace(link.Outcome(sizes=np.array([4, 4], np.int64), enough=1), **changes)
    link.step_4_check_outcome(outcome, 4, LINKED, first=True, key_node="notary")


def dimensions(**changes: int) -> None:
    shared_rows.plan_of(replace(Dimensions(n_rows=1, n_columns=1, norm_bound=1), **changes), culprit="shop")


def score(sum_: int) -> None:
    predict.step_3_sum(np.array([sum_ - 1], np.int64), [("post", predict.MaskedScores(np.array([1], np.int64)))])


def masked(value: int) -> None:
    rows = pb.MaskedRows(ids=["u"], values=value.to_bytes(8, "little", signed=value < 0))
    codec.message_from_pb(pb.AggregateRequest(masked=rows), MaskedRows, culprit="shop")


RANGES: list[tuple[str, Callable[[int], None], int, int]] = [
    ("count of a set", lambda n: size(count=n), 1, align.MAX_IDS),
    ("min_common", lambda n: size(min_common=n), 1, align.MAX_IDS),
    ("size that the key node passes on", told_size, 1, align.MAX_IDS),
    ("common rows", common_rows, 3, 5),
    ("size of linked records", lambda n: linked(sizes=np.array([4, n])), 1, link.MAX_RECORDS),
    ("columns of shared rows", lambda n: dimensions(n_columns=n), 1, MAX_COLUMNS),
    ("number of a masked row", masked, 0, P - 1),
    ("sum of scores", score, -predict.SCORE_LIMIT, predict.SCORE_LIMIT),
]


@each_case("name, check, least, most", RANGES, ids=[name for name, *_ in RANGES])
def test_the_ends_of_a_range_are_in_it(name: str, check: Callable[[int], None], least: int, most: int) -> None:
    for within in (least, most):
        check(within)
    for beyond in (least - 1, most + 1):
        with pytest.raises(MalformedMessage):
            check(beyond)


@each_case("name", ["n_rows", "n_columns", "norm_bound"])
def test_rows_in_shares_have_a_size(name: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        dimensions(**{name: 0})
    assert caught.value.field == name


def test_a_key_node_says_in_one_way_that_too_few_rows_match() -> None:
    for few in (lambda: common_rows(0), lambda: linked(enough=0)):
        with pytest.raises(DataError, match="few"):
            few()
    for not_a_flag in (-1, 2):
        with pytest.raises(MalformedMessage, match="is neither 0 nor 1"):
            linked(enough=not_a_flag)


@each_case("name", ["server", "consumer"])
def test_a_name_in_a_statement_has_a_length(name: str) -> None:
    rows = rows_of(3, 2)
    request = request_for(rows)
    answer = walr.run_locally(rows, request, labels_of(rows), random.Random(1).randrange)

    def stated(length: int) -> Between:
        about = replace(Between("meter", "shop", "people"), **{name: "n" * length})
        return read(json.loads(statement(request, answer, about)))[2]

    for within in (1, MOST_NAME_CHARS):
        assert len(getattr(stated(within), name)) == within
    for beyond in (0, MOST_NAME_CHARS + 1):
        with pytest.raises(DataError, match="not the statement"):
            stated(beyond)
