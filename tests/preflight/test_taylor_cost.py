"""The prediction counts what the protocol does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.coordinator.taylor.cost import measure
from tests.preflight.costs import SPEED, cost_of
from tests.taylor.seats import Tap, case_of


@pytest.mark.parametrize("n_passive", [1, 3])
@pytest.mark.parametrize("class_weights", [False, True])
def test_bytes_are_those_of_a_run(insecure_test_key: PrivateKey, n_passive: int, class_weights: bool) -> None:
    """Two runs of other lengths differ by whole epochs, up to what frames of messages take."""
    case = case_of(insecure_test_key, n_passive=n_passive, class_weights=class_weights)
    sent = {}
    for epochs in (1, 3):
        tap = Tap()
        one = case.with_parameters(epochs=epochs)
        one.run(one.seats(), one.key_seat(), one.network(wire=tap))
        sent[epochs] = sum(len(data) for *_, data in tap.seen)
    predicted = cost_of(case).epoch_bytes()
    assert (sent[3] - sent[1]) / 2 == pytest.approx(predicted, rel=0.25)
    assert (sent[3] - sent[1]) / 2 >= predicted


def test_randomisers_are_those_of_a_run(insecure_test_key: PrivateKey) -> None:
    case = case_of(insecure_test_key, n_passive=2, epochs=2)
    drawn = []
    seats = case.seats()
    for seat in seats:
        source = seat.randomisers
        seat.randomisers = Counting(source, drawn)
    case.run_locally(seats, case.key_seat())
    cost = cost_of(case)
    each = sum(work.randomisers for work in cost._epoch_works())
    assert sum(drawn) == 2 * each + 2 * len(case.held_out)  # labels of the hold-out rows, to each passive party


class Counting:
    def __init__(self, source, drawn: list[int]) -> None:
        self.source, self.drawn, self.public_key = source, drawn, source.public_key

    def draw(self, count: int):
        self.drawn.append(count)
        return self.source.draw(count)


def test_more_takes_longer(insecure_test_key: PrivateKey) -> None:
    cost = cost_of(case_of(insecure_test_key, n_passive=2))
    base = cost.epoch_seconds(SPEED, cores=2)
    assert cost.epoch_seconds(SPEED, cores=1) > base
    assert replace(cost, batch_rows=[100, 100]).epoch_seconds(SPEED, 2) > base
    assert replace(cost, held_out=100).epoch_seconds(SPEED, 2) > base
    weighted = replace(cost.parameters, encrypted_factors=True)
    assert replace(cost, parameters=weighted).epoch_seconds(SPEED, 2) > base
    without_loss = replace(cost.parameters, hold_out_loss=False)
    assert replace(cost, parameters=without_loss).epoch_seconds(SPEED, 2) < base


def test_many_cores_do_not_help_one_party(insecure_test_key: PrivateKey) -> None:
    cost = cost_of(case_of(insecure_test_key, n_passive=2, batch_rows=500))
    assert cost.epoch_seconds(SPEED, cores=64) == cost.epoch_seconds(SPEED, cores=1000)


def test_a_measurement_orders_the_operations() -> None:
    """A hundredfold at least: what else a processor's core does changes a time threefold."""
    speed = measure(2048)
    assert 0 < speed.product_s < min(speed.randomiser_s, speed.decryption_s)
