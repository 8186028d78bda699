"""The costs counted before a training are those of the training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from blindfit.algorithms.protocols.falcon import roles, seats
from blindfit.algorithms.protocols.falcon.messages import Correction
from blindfit.algorithms.protocols.falcon.seats import DataSeat
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.coordinator.vertical import counted
from blindfit.coordinator.vertical.cost_of_shares import Cost, Speed, cost_of, measure
from blindfit.parties.wire import codec
from tests.falcon.local import KEY_NODE, Case, train
from tests.falcon.selecting import grid

MOMENTUM = OptimiserSettings(learning_rate=0.3, l2=0.0, optimiser="momentum", momentum=0.5)
FRAME_BYTES = 200  # overhead of a message: names, lengths


@pytest.fixture
def sat(monkeypatch: pytest.MonkeyPatch) -> list[DataSeat]:
    """Roles of the data parties in the trainings that a test runs."""
    made: list[DataSeat] = []

    def seated(*arguments: Any, **options: Any) -> DataSeat:
        made.append(DataSeat(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(roles, "DataSeat", seated)
    return made


@pytest.mark.parametrize(
    ("n_parties", "options"),
    [
        (2, {}),
        (3, {"macs": False}),
        (2, {"patience": 2, "kept_bits": 4}),
        (3, {"patience": 2, "kept_bits": 4}),
        (2, {"epochs": 1, "patience": 1, "optimiser": MOMENTUM}),
        (3, {"test_rows": 0, "validation_rows": 100}),
        (2, {"model": "linear", "waves_name": "wide", "patience": 2}),
        (3, {"weighted": True, "patience": 2, "macs": False}),
        (2, {"optimiser": replace(MOMENTUM, l1=0.02), "sampling": "replacement"}),
        (2, {"selection": grid("log_loss", epochs=3), "test_rows": 0}),
        (3, {"selection": grid("auc", epochs=1), "epochs": 1, "test_rows": 0, "macs": False}),
        (2, {"selection": grid("mse", folds=5, rate=0.1, epochs=3), "model": "linear", "patience": 2}),
    ],
    ids=str,
)
def test_rounds_and_what_is_dealt_are_those_of_a_training(
    sat: list[DataSeat], n_parties: int, options: dict[str, Any]
) -> None:
    dealt: list[int] = []

    def wire(_sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if step == "Correction":
            dealt.append(len(codec.decode(data, Correction, culprit="").values))
        return data

    case = Case(n_parties=n_parties, rows=301, options={"epochs": 3, **options})  # a batch of 100 and one of 101
    epochs = train(case, wire=wire)[KEY_NODE].epochs
    cost = cost_of(case.parameters)
    every = cost.start + cost.first + cost.epoch.times(epochs - 1) + cost.end
    assert {seat.rounds for seat in sat} == {every.rounds}
    assert sum(dealt) == every.dealt
    assert (epochs == case.parameters.epochs) == (every == cost.all)


@pytest.mark.parametrize("n_parties", [2, 3])
def test_bytes_are_those_of_a_training(n_parties: int) -> None:
    """Up to what frames of messages take, and the checks."""
    case = Case(n_parties=n_parties, rows=160, options={"epochs": 2})
    sent: dict[bool, list[int]] = {True: [], False: []}

    def wire(sender: str, _receiver: str, _step: str, data: bytes) -> bytes:
        sent[sender == KEY_NODE].append(len(data))
        return data

    train(case, wire=wire)
    cost = cost_of(case.parameters)
    for of_dealer, predicted in ((True, cost.dealt_bytes(cost.all)), (False, cost.count_exchanged_bytes(cost.all))):
        assert predicted <= sum(sent[of_dealer]) <= predicted + FRAME_BYTES * len(sent[of_dealer])


def test_checks_between_openings_are_counted(sat: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each party keeps what it opened until the next check, up to a limit."""
    case = Case(rows=160, options={"epochs": 2})
    few = cost_of(case.parameters).all
    for module in (seats, counted):
        monkeypatch.setattr(module, "MOST_UNCHECKED", 500)
    train(case)
    many = cost_of(case.parameters).all
    assert {seat.rounds for seat in sat} == {many.rounds}
    assert many.rounds > few.rounds


def test_what_it_takes_grows_with_what_there_is_to_do() -> None:
    case, speed = Case(), Speed(1e-7, 4e-7)
    cost = cost_of(case.parameters)

    def of(**changes: Any) -> Cost:
        return cost_of(replace(case.parameters, **changes))

    assert cost.train_seconds(speed, 1) == pytest.approx(2 * cost.train_seconds(speed, 2))
    assert cost.train_seconds(speed, 3) == cost.train_seconds(speed, 64)  # no more than there are parties
    assert of(epochs=9).train_seconds(speed, 2) > cost.train_seconds(speed, 2)
    assert of(epochs=9).epoch == cost.epoch
    assert of(epochs=9).epoch_seconds(speed, 2) == cost.epoch_seconds(speed, 2)
    assert of(macs=False).all.dealt < cost.all.dealt
    assert cost.train_seconds(Speed(1e-6, 4e-7), 2) > cost.train_seconds(speed, 2)
    assert cost.train_seconds(Speed(1e-7, 4e-6), 2) > cost.train_seconds(speed, 2)


def test_a_small_training_is_timed() -> None:
    speed = measure(Case(n_parties=2).parameters)
    assert speed.element_s >= 0
    assert speed.compared_s > 0
