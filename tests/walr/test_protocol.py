"""WALR with both roles: its messages, the same result as `run_locally`, and every fault."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, MalformedMessage, PeerTimeout, UnexpectedStep
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows, RowsEnd, WeightRows
from blindfit.algorithms.protocols.walr import request as walr_request
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows, sigmoid
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.solvers import fit
from blindfit.parties.wire import codec
from tests.protocols.counts import assert_as_often
from tests.walr.seats import FRAC_BITS, MemoryDesk, labels_of, request_for, rows_of, run_both, talk
from tests.walr_split.released import without_noise

ROWS = rows_of()
LABELS = labels_of(ROWS)
REQUEST = request_for(ROWS)
BATCH = WeightRows(ROWS.ids, ROWS.weights)
TABLE = ["AggregateOpen", "Opened", "WeightRows", "RowsEnd", "NoisySum"]
ROLES = {"shop": "active", "labels": "measurement"}
NEW = "a request that was not answered before"
SENDER = {"Opened": "labels", "NoisySum": "labels", "RowsKept": "labels"}


def desk(dropped: tuple[str, ...] = ()) -> MemoryDesk:
    return MemoryDesk(LABELS, random.Random(1).randrange, dropped)


def sent_by_table(steps: list[str]) -> list[tuple[str, str, str]]:
    senders = [SENDER.get(step, "shop") for step in steps]
    return [(s, "labels" if s == "shop" else "shop", step) for s, step in zip(senders, steps, strict=True)]


def same(one: walr.NoisySum, other: walr.NoisySum) -> bool:
    return codec.encode(one) == codec.encode(other)


# --- the run ----------------------------------------------------------------------------------------


def test_the_roles_compute_what_the_specification_says() -> None:
    answer, kept, sent = run_both(ROWS, REQUEST, desk())
    assert same(answer, walr.run_locally(ROWS, REQUEST, LABELS, random.Random(1).randrange))
    assert kept.all()
    assert sorted(sent) == sorted(sent_by_table(TABLE))
    assert [step for sender, _, step in sent if sender == "shop"] == ["AggregateOpen", "WeightRows", "RowsEnd"]
    assert [step for sender, _, step in sent if sender == "labels"] == ["Opened", "NoisySum"]


def test_many_batches_are_many_messages_and_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _, _ = run_both(ROWS, REQUEST, desk())
    monkeypatch.setattr(walr_request, "BATCH_ROWS", 7)
    answer, _, sent = run_both(ROWS, REQUEST, desk())
    assert same(answer, whole)
    assert sorted(sent) == sorted(sent_by_table([*TABLE, *["WeightRows"] * 7]))
    assert_as_often(walr.TABLE, ROLES, sent, having=[NEW])


def test_rows_that_did_not_count_are_told() -> None:
    dropped = ROWS.ids[3:5]
    answer, kept, sent = run_both(ROWS, REQUEST, desk(dropped))
    assert answer.rows_kept == 48
    assert [i for i, counted in zip(ROWS.ids, kept, strict=True) if not counted] == list(dropped)
    assert sorted(sent) == sorted(sent_by_table([*TABLE, "RowsKept", "RowsKept"]))
    assert_as_often(walr.TABLE, ROLES, sent, having=[NEW, "rows that did not count"])
    rest = np.array([i not in dropped for i in ROWS.ids])
    remaining = ConsumerRows(tuple(np.array(ROWS.ids)[rest]), ROWS.weights[rest])
    expected = walr.run_locally(remaining, request_for(remaining), LABELS, random.Random(1).randrange)
    assert answer.sums.tolist() == expected.sums.tolist()


@pytest.mark.parametrize("dropped", [(), ROWS.ids[:9]])
def test_the_same_request_gets_the_stored_answer_without_rows(dropped: tuple[str, ...]) -> None:
    asked = desk(dropped)
    first, kept, _ = run_both(ROWS, REQUEST, asked)
    again, kept_again, sent = run_both(ROWS, REQUEST, asked)
    assert same(again, first)
    assert kept_again.tolist() == kept.tolist()
    pieces = ["RowsKept", "RowsKept"] if dropped else []
    assert sorted(sent) == sorted(sent_by_table(["AggregateOpen", "Opened", "NoisySum", *pieces]))


# --- what it is for ---------------------------------------------------------------------------------


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)


@pytest.mark.parametrize("dropped", [0, 40])
def test_predictions_add_up_to_the_labels(no_noise: None, dropped: int) -> None:
    """The intercept's equation: without noise and l2 the model is calibrated on exactly the rows that counted."""
    rows = rows_of(400, 4, largest=3.0)  # no row is clipped, so that every intercept is 1
    labels = labels_of(rows)
    request = request_for(rows)
    answer, kept, _ = run_both(rows, request, MemoryDesk(labels, random.Random(1).randrange, rows.ids[:dropped]))
    mu, _ = walr.step_6_mean(answer, request)
    result = fit(QuantisedRows(rows.weights[kept], FRAC_BITS), mu, SolverSettings(l2=0.0, tolerance=1e-11))
    assert result.converged
    predicted = sigmoid(rows.weights[kept] * 2.0**-FRAC_BITS @ result.weights).sum()
    counted = sum(labels[i] for i in rows.ids[dropped:])
    assert predicted == pytest.approx(counted, rel=1e-6)


def test_with_clipped_rows_the_intercepts_weigh_the_predictions(no_noise: None) -> None:
    """A clipped row has an intercept below 1, so the sums over all rows agree only when weighted by it."""
    rows = rows_of(400, 4)
    labels = labels_of(rows)
    answer, _, _ = run_both(rows, request_for(rows), MemoryDesk(labels, random.Random(1).randrange))
    mu, _ = walr.step_6_mean(answer, request_for(rows))
    result = fit(QuantisedRows(rows.weights, FRAC_BITS), mu, SolverSettings(l2=0.0, tolerance=1e-11))
    residuals = sigmoid(rows.weights * 2.0**-FRAC_BITS @ result.weights) - np.array([labels[i] for i in rows.ids])
    assert residuals @ rows.weights[:, -1] * 2.0**-FRAC_BITS == pytest.approx(0, abs=1e-6)
    assert residuals.sum() != pytest.approx(0, abs=1e-3)


def test_training_on_other_rows_shows_as_miscalibration(no_noise: None) -> None:
    """The active party trains on the very integers because of this: rows other than the sent ones give
    another total.
    """
    rows = rows_of(400, 4)
    answer, _, _ = run_both(rows, request_for(rows), MemoryDesk(labels_of(rows), random.Random(1).randrange))
    mu, _ = walr.step_6_mean(answer, request_for(rows))
    other = rows.weights.copy()
    other[:, -1] -= 2**12
    result = fit(QuantisedRows(other, FRAC_BITS), mu, SolverSettings(l2=0.0, tolerance=1e-11))
    predicted = sigmoid(other * 2.0**-FRAC_BITS @ result.weights).sum()
    assert predicted != pytest.approx(sum(labels_of(rows).values()), rel=1e-3)


# --- faults of the active party -----------------------------------------------------------------------

TRUNCATED = WeightRows(ROWS.ids[:49], ROWS.weights[:49])

FAULTS: dict[str, tuple[list[object], type[BlindfitError], str]] = {
    "nothing": ([], PeerTimeout, "AggregateOpen"),
    "rows before the request": ([BATCH], UnexpectedStep, "AggregateOpen"),
    "one id too many": ([REQUEST, WeightRows(ROWS.ids, ROWS.weights[:49])], MalformedMessage, "weights"),
    "one id too few": ([REQUEST, WeightRows(ROWS.ids[:49], ROWS.weights)], MalformedMessage, "weights"),
    "a column too few": ([REQUEST, WeightRows(ROWS.ids, ROWS.weights[:, :2])], MalformedMessage, "weights"),
    "a flat vector": ([REQUEST, WeightRows(ROWS.ids, ROWS.weights[:, 0])], MalformedMessage, "weights"),
    "an empty batch": ([REQUEST, WeightRows((), ROWS.weights[:0])], MalformedMessage, "ids"),
    "a batch too many": ([REQUEST, TRUNCATED, TRUNCATED], MalformedMessage, "ids"),
    "a row too many": ([replace(REQUEST, n_rows=49), BATCH], MalformedMessage, "ids"),
    "too few rows": ([REQUEST, TRUNCATED, RowsEnd()], UnexpectedStep, "WeightRows"),
    "rows after the last": ([REQUEST, BATCH, BATCH], UnexpectedStep, "RowsEnd"),
    "other rows": (
        [replace(REQUEST, content_sha256=bytes(32)), BATCH, RowsEnd()],
        MalformedMessage,
        "content_sha256",
    ),
    "another version": ([replace(REQUEST, protocol_version="0")], MalformedMessage, "protocol_version"),
    "too little noise": ([replace(REQUEST, epsilon=51.0)], MalformedMessage, "epsilon"),
    "no noise": ([replace(REQUEST, epsilon=0.0)], MalformedMessage, "epsilon"),
    "classic from 1 on": ([replace(REQUEST, mechanism="classic")], MalformedMessage, "mechanism"),
    "unknown mechanism": ([replace(REQUEST, mechanism="none")], MalformedMessage, "mechanism"),
    "a coarse grid": ([replace(REQUEST, norm_bound=16, frac_bits=4)], MalformedMessage, "frac_bits"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_named_and_nothing_is_released(fault: str) -> None:
    messages, error, named = FAULTS[fault]
    asked = desk()
    with pytest.raises(error) as refused:
        await talk(asked, *messages)
    assert asked.answer is None
    assert getattr(refused.value, "culprit", getattr(refused.value, "peer", "")) == "shop"
    assert named in (getattr(refused.value, "field", ""), getattr(refused.value, "step", ""))


def test_too_few_rows_are_noticed_by_the_tally_itself() -> None:
    tally = walr.Tally(REQUEST, lambda _: None)
    tally.add(TRUNCATED, desk().join, consumer="shop")
    with pytest.raises(MalformedMessage) as refused:
        tally.finish(consumer="shop")
    assert refused.value.field == "n_rows"


# --- faults of the measurement server -----------------------------------------------------------------


def tampered(kind: type[Any], change: dict[str, Any]) -> Any:
    """Return a wire that changes the fields of one kind of message."""

    def wire(sender: str, receiver: str, step: str, data: bytes) -> bytes:
        if step != kind.__name__:
            return data
        return codec.encode(replace(codec.decode(data, kind, culprit=sender), **change))

    return wire


@pytest.mark.parametrize(
    ("kind", "change", "field"),
    [
        (walr.NoisySum, {"sums": np.zeros(2, np.int64)}, "sums"),
        (walr.NoisySum, {"rows_kept": 51}, "rows_kept"),
        (walr.NoisySum, {"noise_std": -1.0}, "noise_std"),
        (walr.NoisySum, {"rows_kept": 47}, "bits"),
        (walr.RowsKept, {"bits": b""}, "bits"),
        (walr.RowsKept, {"bits": b"\xff" * 8}, "bits"),
        (walr.RowsKept, {"bits": b"\xff" * 6}, "bits"),
    ],
)
def test_a_tampered_answer_is_refused(kind: type[Any], change: dict[str, Any], field: str) -> None:
    with pytest.raises(MalformedMessage) as refused:
        run_both(ROWS, REQUEST, desk(ROWS.ids[:9]), wire=tampered(kind, change))
    assert (refused.value.culprit, refused.value.field) == ("labels", field)


def test_an_answer_out_of_turn_is_refused() -> None:
    def wire(sender: str, receiver: str, step: str, data: bytes) -> bytes:
        return codec.encode(RowsEnd()) if step == "NoisySum" else data

    with pytest.raises(UnexpectedStep) as refused:
        run_both(ROWS, REQUEST, desk(), wire=wire)
    assert (refused.value.culprit, refused.value.expected, refused.value.got) == ("labels", "NoisySum", "RowsEnd")
