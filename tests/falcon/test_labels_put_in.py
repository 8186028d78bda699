"""An active party chooses its labels in order to read the others' rows, and is noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from blindfit.algorithms.errors import BlindfitError, MacCheckFailed, MalformedMessage
from blindfit.algorithms.protocols.falcon import Held
from blindfit.algorithms.protocols.falcon.seats import DataSeat, coefficients_of
from blindfit.algorithms.sharing.field import Elements, P, add, elements
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.statistics.vertical.class_weights import CLASS_WEIGHT_BITS, LARGEST_CLASS_WEIGHT
from blindfit.algorithms.statistics.vertical.grid import LABEL_BOUND
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.parties.falcon import data_party
from tests.falcon.local import Case, train
from tests.falcon.oracle import bound, weights_of
from tests.world import World
from tests.world.vertical import bank_and_shops_in_shares

Integers = NDArray[np.int64]
Choose = Callable[[Case, Integers], Integers]
RUN = "run-1"


@dataclass
class Chosen(Case):
    """A case whose active party chooses what it sends."""

    choose: Choose = lambda _case, labels: labels

    def held(self, place: int) -> Held:
        held = super().held(place)
        return held if held.labels is None else replace(held, labels=self.choose(self, held.labels))


def a_bit_of_each_test_row(case: Case, labels: Integers) -> Integers:
    """Make "true positives" reveal for each row whether it is called positive."""
    test = case.parameters.test
    chosen = labels.copy()
    chosen[test] = 1 << np.arange(test.stop - test.start)
    return chosen


def one(label: int, row: int = 7) -> Choose:
    def choose(_case: Case, labels: Integers) -> Integers:
        chosen = labels.copy()
        chosen[row] = label
        return chosen

    return choose


def without_macs(choose: Choose) -> Chosen:
    return Chosen(options={"macs": False, "epochs": 1}, choose=choose)


def with_macs(choose: Choose, **options: object) -> Chosen:
    return Chosen(options={"epochs": 1, **options}, choose=choose)


def test_where_all_are_believed_labels_tell_of_single_rows() -> None:
    case = without_macs(a_bit_of_each_test_row)
    trained = train(case, run=RUN)
    tested = trained["hospital"].tested
    weights = weights_of(case, trained)
    called = case.whole[case.parameters.test] @ weights >= 0
    assert [tested.true_positives >> place & 1 for place in range(len(called))] == called.tolist()
    assert 10 < called.sum() < 50


@pytest.mark.parametrize("choose", [a_bit_of_each_test_row, one(2), one(-1), one(P - 2), one(1 << 40, row=-1)])
def test_labels_that_tell_of_single_rows_are_noticed(choose: Choose) -> None:
    begun: list[str] = []

    def wire(_sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        begun.append(step)
        return data

    with pytest.raises(MalformedMessage, match="hospital sent a malformed message: labels: are not all 0 and 1"):
        train(with_macs(choose), run=RUN, wire=wire)
    assert begun.count("OpenedShares") <= 2 * 3  # two products and the bit, of either party: nothing of a training


def test_labels_cannot_be_made_for_coefficients_that_are_known() -> None:
    """a (a - 1) r_0 + b (b - 1) r_i = 0, by a = 2 and a root of a quadratic equation: p is 3 modulo 4."""

    def choose(case: Case, labels: Integers) -> Integers:
        r = [int(each) for each in coefficients_of(RUN).elements("labels", (case.parameters.rows,))]
        for row in range(1, len(r)):
            square = (1 - 8 * r[0] * pow(r[row], -1, P)) % P
            root = pow(square, (P + 1) // 4, P)
            if root * root % P == square:
                chosen = labels.copy()
                chosen[0], chosen[row] = 2, (1 + root) * pow(2, -1, P) % P
                assert (2 * r[0] + int(chosen[row]) * (int(chosen[row]) - 1) * r[row]) % P == 0
                return chosen
        raise AssertionError("half of all numbers are squares")

    with pytest.raises(MalformedMessage, match="labels: are not all 0 and 1"):
        train(with_macs(choose), run=RUN)


@dataclass
class Curious:
    """A passive party that adds 1 to the opened value of one row's label, and looks at whether the test still passes.

    So the product of the label and the label less 1 is off by the label less 1, which is 0 if the label is 1. The party
    sees and sends the same, as a party with its own program would.
    """

    row: int
    has_changed: bool = False
    told: list[int] = field(default_factory=list)  # opened values of one element

    def take_the_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        opened = DataSeat.open_

        async def curious(seat: DataSeat, *shares: Share) -> list[Elements]:
            mine = seat.me == "laboratory"
            if mine and not self.has_changed:
                self.has_changed = True
                value = shares[0].value.copy()
                value[self.row] = add(value[self.row : self.row + 1], elements([1]))[0]
                shares = (replace(shares[0], value=value), *shares[1:])
            whole = await opened(seat, *shares)
            if mine and len(whole) == 1 and whole[0].shape == (1,):
                self.told.append(int(whole[0][0]))
            return whole

        monkeypatch.setattr(DataSeat, "open_", curious)


def without_the_second_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Omit each party's check that comes before the bit is opened."""
    checked, made = DataSeat.check, Counter[DataSeat]()

    async def but_one(seat: DataSeat) -> None:
        made[seat] += 1
        if made[seat] != 2:
            await checked(seat)

    monkeypatch.setattr(DataSeat, "check", but_one)


@pytest.mark.parametrize("defended", [False, True])
@pytest.mark.parametrize("label", [0, 1])
def test_no_label_is_read_by_whoever_tampers_with_its_test(
    monkeypatch: pytest.MonkeyPatch, label: int, defended: bool
) -> None:
    """A bit that is opened before a check reveals to a party that changed something whether the change mattered."""
    case = Chosen(options={"epochs": 1, "test_rows": 0})
    curious = Curious(row=int(np.flatnonzero(case.labels == label)[3]))
    curious.take_the_place(monkeypatch)
    if not defended:
        without_the_second_check(monkeypatch)
    with pytest.raises((MacCheckFailed, MalformedMessage)):
        train(case, run=RUN)
    if defended:
        assert curious.told == []
    else:
        assert (curious.told[-1] == 0) == (label == 1)


def test_numbers_far_out_are_noticed_and_the_farthest_of_an_honest_party_are_not() -> None:
    linear = {"model": "linear", "waves_name": "wide"}
    bits = with_macs(one(0), **linear).parameters.label_bits
    limit = round(LABEL_BOUND) << bits

    def at_the_ends(_case: Case, labels: Integers) -> Integers:
        return np.where(np.arange(len(labels)) % 2, limit, -limit)

    train(with_macs(at_the_ends, **linear, test_rows=0), run=RUN)
    for far in (limit + (3 << bits), -limit - (3 << bits), 1 << 50, P // 2):
        with pytest.raises(MalformedMessage, match="labels: are beyond 8 deviations"):
            train(with_macs(one(far), **linear), run=RUN)


def with_class_weights(*weights: int) -> Case:
    slowly = OptimiserSettings(learning_rate=0.01)  # a row counts 64-fold
    case = Case(options={"epochs": 1, "weighted": True, "test_rows": 0, "optimiser": slowly})
    case.class_weights = np.array(weights)
    return case


def test_class_weights_far_too_large_are_noticed_and_the_largest_are_not() -> None:
    largest = LARGEST_CLASS_WEIGHT << CLASS_WEIGHT_BITS
    for weights in ((largest, 128), (128, largest), (largest, largest)):
        case = with_class_weights(*weights)
        heaviest = max(weights) / 2**CLASS_WEIGHT_BITS
        far_off = np.linalg.norm(weights_of(case, train(case, run=RUN)) - case.plain(1))
        assert far_off <= heaviest * bound(case, 1)
    for far in (largest * 3 // 2, -largest * 3 // 2, 1 << 40, P // 2, P // 2 + 1):
        for weights in ((far, 128), (128, far)):
            with pytest.raises(MalformedMessage, match=r"hospital sent .* message: class weights: are beyond 64"):
                train(with_class_weights(*weights), run=RUN)


def test_a_job_whose_bank_puts_in_other_labels_ends_before_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_held = data_party.make_held

    def other_labels(*arguments: object, **options: object) -> Held:
        held = make_held(*arguments, **options)
        return held if held.labels is None else replace(held, labels=held.labels << np.arange(len(held.labels)) % 50)

    monkeypatch.setattr(data_party, "make_held", other_labels)
    nodes = World(bank_and_shops_in_shares(tmp_path, epochs=2).root)
    with pytest.raises(BlindfitError, match="labels: are not all 0 and 1"):
        nodes.run()
    assert not list(tmp_path.rglob("model.json"))
