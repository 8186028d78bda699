"""An active party that chooses its labels: what it would read of the others' rows, and that it is noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from blindfit.algorithms.errors import BlindfitError, MalformedMessage
from blindfit.algorithms.protocols.falcon import Held
from blindfit.algorithms.protocols.falcon.seats import coefficients_of
from blindfit.algorithms.sharing.field import P
from blindfit.algorithms.statistics.class_weights import CLASS_WEIGHT_BITS, LARGEST_CLASS_WEIGHT
from blindfit.algorithms.statistics.taylor import OptimiserSettings
from blindfit.algorithms.statistics.taylor_plan import LABEL_BOUND
from blindfit.parties.falcon import data_party
from tests.falcon.local import Case, train
from tests.falcon.project import make
from tests.falcon.test_protocol import bound, weights_of
from tests.nodes import Nodes

Integers = NDArray[np.int64]
Choose = Callable[[Case, Integers], Integers]
RUN = "run-1"


@dataclass
class Chosen(Case):
    """Whose active party puts in what it likes."""

    choose: Choose = lambda _case, labels: labels

    def held(self, place: int) -> Held:
        held = super().held(place)
        return held if held.labels is None else replace(held, labels=self.choose(self, held.labels))


def a_bit_of_each_test_row(case: Case, labels: Integers) -> Integers:
    """So that "true positives" say of each row whether it is called positive."""
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
    held_of = data_party.held_of

    def other_labels(*arguments: object, **options: object) -> Held:
        held = held_of(*arguments, **options)
        return held if held.labels is None else replace(held, labels=held.labels << np.arange(len(held.labels)) % 50)

    monkeypatch.setattr(data_party, "held_of", other_labels)
    nodes = Nodes(make(tmp_path, epochs=2).root)
    with pytest.raises(BlindfitError, match="labels: are not all 0 and 1"):
        nodes.run()
    assert not list(tmp_path.rglob("model.json"))
