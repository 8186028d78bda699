"""WALR, at least one test for each step of its table."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import MalformedMessage, RangeError
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, ContentDigest, Tally, WeightRows
from blindfit.algorithms.protocols.walr.tally import _weighted_sum
from tests.walr.seats import NORM_BOUND, SETTINGS, labels_of, request_for, rows_of

ROWS = rows_of()
REQUEST = request_for(ROWS)


def all_kept(labels: dict[str, int]) -> walr.Join:
    return lambda ids: (np.array([labels[i] for i in ids], np.uint8), np.ones(len(ids), np.bool_))


def tally_of(rows: ConsumerRows, request: AggregateOpen, batch_rows: int | None = None) -> Tally:
    tally = Tally(request, lambda _: None)
    for batch in rows.batches(batch_rows):
        tally.add(batch, all_kept(labels_of(rows)), consumer="shop")
    tally.finish(consumer="shop")
    return tally


# --- step 1 -----------------------------------------------------------------------------------------


def test_the_request_says_what_is_sent() -> None:
    assert (REQUEST.n_rows, REQUEST.n_columns) == ROWS.weights.shape
    assert REQUEST.norm_bound == NORM_BOUND
    assert (REQUEST.epsilon, REQUEST.delta, REQUEST.mechanism) == (1.0, 1e-6, "analytic")


def test_the_request_id_follows_from_the_content() -> None:
    assert walr.step_1_open(ROWS, NORM_BOUND, SETTINGS, (b"receipt", b"signed"), "session").request_id == (
        REQUEST.request_id
    )
    # a hash distinguishes 1 from 1.0
    assert walr.step_1_open(ROWS, NORM_BOUND, replace(SETTINGS, epsilon=1)) == REQUEST
    others = [
        walr.step_1_open(rows_of(seed=1), NORM_BOUND, SETTINGS),
        walr.step_1_open(ROWS, NORM_BOUND + 1, SETTINGS),
        *(
            walr.step_1_open(ROWS, NORM_BOUND, replace(SETTINGS, **{name: value}))
            for name, value in {"dataset": "b", "snapshot": "v2", "epsilon": 0.9, "delta": 1e-7}.items()
        ),
        walr.step_1_open(ROWS, NORM_BOUND, replace(SETTINGS, release="again")),
    ]
    ids = {request.request_id for request in [REQUEST, *others]}
    assert len(ids) == len(others) + 1


CHANGES: dict[str, Any] = {
    "dataset": "b",
    "snapshot": "v2",
    "n_rows": 51,
    "n_columns": 4,
    "frac_bits": 17,
    "norm_bound": NORM_BOUND + 1,
    "max_rows_per_person": 2,
    "epsilon": 0.5,
    "delta": 1e-7,
    "mechanism": "classic",
    "content_sha256": bytes(32),
}


@pytest.mark.parametrize("field", CHANGES)
def test_whatever_the_answer_depends_on_is_content(field: str) -> None:
    assert walr.request_digest(replace(REQUEST, **{field: CHANGES[field]})) != walr.request_digest(REQUEST)


def test_a_receipt_and_a_session_are_no_content() -> None:
    other = replace(REQUEST, receipt=b"r", receipt_signature=b"s", session="t", request_id="u", protocol_version="9")
    assert walr.request_digest(other) == walr.request_digest(REQUEST)


def digest(*batches: WeightRows) -> bytes:
    content = ContentDigest()
    for batch in batches:
        content.update(batch)
    return content.digest()


@given(st.lists(st.text(max_size=3), min_size=1, max_size=4), st.lists(st.text(max_size=3), min_size=1, max_size=4))
def test_no_two_lists_of_ids_share_a_digest(ids: list[str], others: list[str]) -> None:
    def content(names: list[str]) -> bytes:
        return digest(WeightRows(tuple(names), np.zeros((len(names), 1), np.int32)))

    assert (content(ids) == content(others)) == (ids == others)


def test_the_digest_sees_every_weight() -> None:
    changed = ROWS.weights.copy()
    changed[31, 1] ^= 1
    assert digest(WeightRows(ROWS.ids, changed)) != digest(WeightRows(ROWS.ids, ROWS.weights))


# --- step 2 -----------------------------------------------------------------------------------------

WRONG: list[tuple[str, Any, str]] = [
    ("protocol_version", "0", "this server supports"),
    ("request_id", "", "length"),
    ("request_id", "x" * 129, "length"),
    ("n_rows", 0, "range"),
    ("n_rows", -1, "range"),
    ("n_rows", 2**31 + 1, "range"),
    ("n_rows", 2**64 - 1, "range"),
    ("n_columns", 0, "range"),
    ("n_columns", 4097, "range"),
    ("frac_bits", 3, "between 4 and 24"),
    ("frac_bits", 25, "between 4 and 24"),
    ("norm_bound", 0, "range"),
    ("norm_bound", 2**25 + 1, "range"),
    ("max_rows_per_person", -1, "range"),
    ("max_rows_per_person", 2**16 + 1, "range"),
    ("content_sha256", b"short", "32 bytes"),
    ("epsilon", float("nan"), "between"),
    ("epsilon", float("inf"), "between"),
    ("epsilon", 0.0, "between"),
    ("epsilon", -1.0, "between"),
    ("epsilon", 5e-324, "between"),
    ("epsilon", 51.0, "between 1e-06 and 50"),
    ("delta", float("nan"), "between"),
    ("delta", 0.0, "between"),
    ("delta", 5e-324, "between"),
    ("delta", 0.5, "between"),
    ("mechanism", "laplace", "unknown"),
    ("mechanism", "classic", "classic needs epsilon < 1"),
]


@pytest.mark.parametrize(("field", "value", "reason"), WRONG)
def test_a_wrong_number_is_refused_by_name(field: str, value: Any, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason) as refused:
        walr.step_2_check(replace(REQUEST, **{field: value}), consumer="shop")
    assert (refused.value.culprit, refused.value.field, refused.value.step) == ("shop", field, "AggregateOpen")


def test_a_coarse_grid_is_refused() -> None:
    coarse = replace(REQUEST, norm_bound=2**10, frac_bits=4)
    with pytest.raises(MalformedMessage, match="65,536 grid steps") as refused:
        walr.step_2_check(coarse, consumer="shop")
    assert refused.value.field == "frac_bits"


def test_noise_that_would_not_fit_in_64_bits_is_refused() -> None:
    """Later it would be an error after a draw."""
    wide = replace(REQUEST, norm_bound=2**25, max_rows_per_person=2**16, epsilon=walr.MIN_EPSILON, delta=walr.MIN_DELTA)
    with pytest.raises(MalformedMessage, match="64 bits") as refused:
        walr.step_2_check(wide, consumer="shop")
    assert refused.value.field == "frac_bits"


@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, fixed_point.MAX_ROWS),
    st.integers(1, fixed_point.MAX_NORM_BOUND),
    st.integers(0, 2**16),
    st.floats(walr.MIN_EPSILON, 50),
    st.floats(-99, -0.31),
    st.sampled_from(["analytic", "classic"]),
)
def test_whatever_is_admitted_fits(
    n_rows: int, bound: int, persons: int, epsilon: float, log_delta: float, mechanism: str
) -> None:
    """The largest sum and noise that NOISE_REACH admits, drawn by the biggest numbers the checks let through."""
    request = replace(
        REQUEST,
        n_rows=n_rows,
        norm_bound=bound,
        max_rows_per_person=persons,
        epsilon=epsilon,
        delta=10**log_delta,
        mechanism=mechanism,
    )
    try:
        walr.step_2_check(request, consumer="shop")
    except MalformedMessage:
        return
    noise = walr.mechanism_of(request)
    assert noise.sigma_squared >= (2**16) ** 2
    largest = n_rows * bound + gaussian.NOISE_REACH * noise.sigma_squared**0.5
    assert np.array([int(largest), -int(largest)], np.int64)[0] == int(largest)


# --- step 4 -----------------------------------------------------------------------------------------


def test_the_sum_is_that_of_the_rows_with_a_label() -> None:
    labels = labels_of(ROWS)
    expected = [0] * REQUEST.n_columns
    for name, row in zip(ROWS.ids, ROWS.weights.tolist(), strict=True):
        expected = [s + labels[name] * x for s, x in zip(expected, row, strict=True)]
    assert tally_of(ROWS, REQUEST).sums.tolist() == expected


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.integers(1, 60))
def test_batch_boundaries_do_not_matter(sizes: list[int], batch_rows: int) -> None:
    rows = rows_of(sum(sizes))
    request = request_for(rows)
    ragged = Tally(request, lambda _: None)
    start = 0
    for size in sizes:
        batch = WeightRows(rows.ids[start : start + size], rows.weights[start : start + size])
        ragged.add(batch, all_kept(labels_of(rows)), consumer="shop")
        start += size
    ragged.finish(consumer="shop")  # the digest of the request was over batches of its own
    even = tally_of(rows, request, batch_rows)
    assert ragged.sums.tolist() == even.sums.tolist()
    drafts = [walr.step_5_draft(t, random.Random(1).randrange, neighbours="row") for t in (ragged, even)]
    assert drafts[0].released.sums.tolist() == drafts[1].released.sums.tolist()


@settings(deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=20), min_size=1, max_size=6))
def test_kept_bits_are_in_the_order_of_the_rows(batches: list[list[bool]]) -> None:
    flat = [kept for batch in batches for kept in batch]
    rows = rows_of(len(flat))
    pieces: list[bytes] = []
    tally = Tally(request_for(rows), pieces.append)
    start = 0
    for batch in batches:
        ids, weights = rows.ids[start : start + len(batch)], rows.weights[start : start + len(batch)]
        tally.add(
            WeightRows(ids, weights), lambda ids, b=batch: (np.ones(len(ids), np.uint8), np.array(b)), consumer="shop"
        )
        start += len(batch)
    tally.finish(consumer="shop")
    bits = np.unpackbits(np.frombuffer(b"".join(pieces), np.uint8), count=len(flat))
    assert bits.tolist() == [int(kept) for kept in flat]
    assert tally.rows_kept == sum(flat)
    assert tally.sums.tolist() == rows.weights[np.array(flat)].sum(axis=0).tolist()


def test_a_row_that_is_too_long_counts_as_one_of_the_bound() -> None:
    long = ROWS.weights.copy()
    long[7] = [2**31 - 1, -(2**31), 5]
    rows = ConsumerRows(ROWS.ids, long)
    tally = Tally(request_for(rows), lambda _: None)
    tally.add(WeightRows(rows.ids, long), lambda ids: (only(7, len(ids)), np.ones(len(ids), np.bool_)), consumer="shop")
    assert tally.rows_scaled == 1
    assert 0.99 * NORM_BOUND < np.linalg.norm(tally.sums) <= NORM_BOUND


def only(position: int, n: int) -> np.ndarray:
    labels = np.zeros(n, np.uint8)
    labels[position] = 1
    return labels


def test_the_largest_batch_is_summed_exactly() -> None:
    """Every partial sum is below 2^53, so float64 is exact."""
    n = walr.MAX_BATCH_ROWS
    odd = np.full((n, 1), fixed_point.MAX_NORM_BOUND - 1, np.int32)
    chosen = np.ones(n, np.bool_)
    assert _weighted_sum(chosen, odd).tolist() == [n * (fixed_point.MAX_NORM_BOUND - 1)]
    assert fixed_point.MAX_ROWS * fixed_point.MAX_NORM_BOUND < 2**62


class Whole(np.ndarray):
    """Rows from which nobody may select some."""

    def __getitem__(self, chosen: Any) -> Any:
        raise AssertionError("rows were picked out")


def test_a_label_does_not_change_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row of a batch goes into the product. If rows were picked by label, time would reveal their number."""
    monkeypatch.setattr(fixed_point, "enforce_norm_bound", lambda rows, bound: (rows.view(Whole), 0))
    for labels in (dict.fromkeys(ROWS.ids, 0), dict.fromkeys(ROWS.ids, 1)):
        tally = Tally(REQUEST, lambda _: None)
        tally.add(WeightRows(ROWS.ids, ROWS.weights), all_kept(labels), consumer="shop")
        assert tally.sums.tolist() == (ROWS.weights.sum(axis=0) * labels[ROWS.ids[0]]).tolist()


def test_batches_fit_in_a_message() -> None:
    for n_columns, name in ((1, "ü" * 200), (60, "row"), (4096, "row")):
        n = 20_000 if n_columns < 4096 else 300
        rows = ConsumerRows(tuple(f"{name}{i}" for i in range(n)), np.zeros((n, n_columns), np.int32))
        batches = list(rows.batches())
        assert sum(len(batch.ids) for batch in batches) == n
        for batch in batches:
            size = batch.weights.nbytes + sum(len(i.encode()) + 4 for i in batch.ids)
            assert size <= walr.BATCH_BYTES
            assert len(batch.ids) <= walr.BATCH_ROWS


# --- step 5 -----------------------------------------------------------------------------------------


def test_the_noise_is_that_of_the_request() -> None:
    tally = tally_of(ROWS, REQUEST)
    draft = walr.step_5_draft(tally, random.Random(1).randrange, neighbours="one label")
    assert draft.sensitivity == NORM_BOUND
    multiplier = gaussian.analytic_noise_multiplier(1.0, 1e-6)
    assert draft.noise_std == pytest.approx(multiplier * NORM_BOUND, rel=1e-9)
    assert draft.event.noise_multiplier == multiplier
    assert draft.event.neighbours == "one label"


@pytest.mark.parametrize("rows_per_person", [1, 2, 7])
def test_a_person_of_m_rows_has_m_times_the_sensitivity(rows_per_person: int) -> None:
    request = replace(REQUEST, max_rows_per_person=rows_per_person)
    assert request.sensitivity == rows_per_person * NORM_BOUND
    assert walr.mechanism_of(request).sensitivity_squared == (rows_per_person * NORM_BOUND) ** 2


# --- step 6 -----------------------------------------------------------------------------------------


def answer(**changes: Any) -> walr.NoisySum:
    draft = walr.step_5_draft(tally_of(ROWS, REQUEST), random.Random(1).randrange, neighbours="row")
    return replace(walr.answer_of(draft, unit="row", terms=walr.Terms()), **changes)


def test_the_mean_is_in_units_of_the_features() -> None:
    mu, noise_std = walr.step_6_mean(answer(sums=np.array([2**16, 0, -(2**17)]), rows_kept=4), REQUEST)
    assert mu.tolist() == [0.25, 0.0, -0.5]
    assert noise_std == answer().noise_std / 2**16 / 4


def test_nothing_is_made_of_no_rows() -> None:
    with pytest.raises(RangeError, match="no row counted"):
        walr.step_6_mean(answer(rows_kept=0), REQUEST)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sums", np.zeros(2, np.int64)),
        ("sums", np.zeros((3, 1), np.int64)),
        ("rows_kept", -1),
        ("rows_kept", 51),
        ("rows_scaled", 51),
        ("rows_unknown", -1),
        ("rows_unknown", 51),
        ("noise_std", 0.0),
        ("noise_std", float("nan")),
        ("noise_std", 2.0**61),
    ],
)
def test_a_wrong_answer_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(MalformedMessage) as refused:
        walr.step_6_check(answer(**{field: value}), REQUEST, server="labels")
    assert (refused.value.culprit, refused.value.field, refused.value.step) == ("labels", field, "NoisySum")
