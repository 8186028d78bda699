"""Jobs that hold out few rows, or one row more than other jobs, must not reveal anything about single rows.

The end of a training in shares reveals whether the loss of the validation rows has fallen by the job's tolerance. The
proposer of a job chooses the tolerance and the number of these rows. With only one row, trainings that differ only in
the tolerance would close in on its loss, and so on its score, which no party may learn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from blindfit.algorithms.errors import BlindfitError, ConfigError, PolicyRefused, RangeError, ScoresOutOfRange
from blindfit.algorithms.protocols.falcon import parameters
from blindfit.algorithms.protocols.falcon.seats import DataSeat
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.statistics.vertical.gradient_leaks import LEAST_HOLD_OUT_ROWS
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical import training
from blindfit.parties.vertical.alignment import Alignment, order_of
from tests.each_case import each_case
from tests.falcon.local import Case, train
from tests.quick_keys import quick_keys
from tests.world import World
from tests.world.vertical import bank_and_shops, bank_and_shops_in_shares

EPOCHS = 3
Order = NDArray[np.int64]


def of(rows: int, tolerance: float) -> Case:
    """Return a training of three epochs, which ends after two if the loss of the rows has not fallen by this much."""
    options = {"epochs": EPOCHS, "test_rows": 0, "validation_rows": rows, "patience": 1, "tolerance": tolerance}
    return Case(options=options)


def fall(case: Case) -> float:
    """Return how much the loss of the validation rows falls in the second epoch of plain descent."""
    rows = case.parameters.validation

    def loss(w: NDArray[np.float64]) -> float:
        z = case.whole[rows] @ w
        return float(np.mean(np.log1p(np.exp(z)) - case.y[rows] * z))

    return loss(case.plain(1)) - loss(case.plain(2))


def test_where_one_row_decides_its_loss_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "LEAST_HOLD_OUT_ROWS", 1)
    truth = fall(of(1, 0.1))
    assert truth > 0.05
    least, most = 0.0, 1.0
    for _ in range(6):
        tried = (least + most) / 2
        ended = train(of(1, tried))["laboratory"].epochs
        least, most = (tried, most) if ended == EPOCHS else (least, tried)
    assert most - least < 0.02
    assert least - 0.01 < truth < most + 0.01


def test_so_few_rows_do_not_decide() -> None:
    with pytest.raises(RangeError, match="10 validation rows: the end of training reveals the loss of each"):
        train(of(LEAST_HOLD_OUT_ROWS - 1, 0.1))
    assert train(of(LEAST_HOLD_OUT_ROWS, 0.0))["laboratory"].epochs <= EPOCHS


MANY_TESTED = "split.test_fraction=0.25"


@pytest.mark.parametrize(
    "which",
    [(MANY_TESTED,), ("split.test_fraction=0.3",), (MANY_TESTED, "falcon.weights=shared", "falcon.patience=1")],
)
def test_a_job_with_one_validation_row_is_refused(tmp_path: Path, which: tuple[str, ...]) -> None:
    """A job cannot request one row; a table of few rows has only a few."""
    world = bank_and_shops_in_shares(tmp_path, rows=200)
    with pytest.raises(ConfigError, match=r"falcon\.validation_fraction: 0\.005 is not one of 0, 0\.05, 0\.1, "):
        world.run("falcon.validation_fraction=0.005", *which)
    with pytest.raises(PolicyRefused, match=r"10 validation rows.*falcon\.validation_fraction = 0\.1, or more"):
        world.run("falcon.validation_fraction=0.05", *which)


# --- one row more -----------------------------------------------------------------------------------------------------

ROWS = 300


def of_falcon(root: Path) -> World:
    return bank_and_shops_in_shares(root, rows=ROWS)


def of_taylor(root: Path) -> World:
    return bank_and_shops(root, rows=ROWS)


@pytest.mark.parametrize("defended", [False, True])
@pytest.mark.parametrize(
    ("system", "make_project", "job", "first", "second"),
    [
        ("falcon", of_falcon, "job.toml", (0.2, 0.1), (0.25, 0.05)),
        ("taylor", of_taylor, "job.toml", (0.2, 0.1), (0.25, 0.05)),
        ("taylor", of_taylor, "linkage.toml", (0.0, 0.2), (0.0, 0.25)),
    ],
    ids=["falcon", "taylor", "linkage"],
)
def test_jobs_that_hold_out_one_row_more_do_not_tell_of_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    make_project: Callable[[Path], World],
    job: str,
    first: tuple[float, float],
    second: tuple[float, float],
    defended: bool,
) -> None:
    """If both jobs used the same order, the second would move rows from the validation into the test, or hold out more.

    The difference of both jobs' figures, or of the losses and sums that the key node reads, would belong to those rows.
    """
    orders: list[list[object]] = []

    def noted(
        common: PartyRows, aligned: Alignment, randomness: PublicRandomness, fractions: tuple[float, float]
    ) -> Order:
        order = order_of(common, aligned, randomness, fractions if defended else (0.0, 0.0))
        names = common.ids.to_pylist() if aligned.mask_enc is None else range(len(order))
        orders.append([names[place] for place in order])
        raise RangeError("it is known, and the rest takes long")

    def order_in(test: float, validation: float) -> list[object]:
        """Return the order, which is the same at every party that comes so far."""
        orders.clear()
        fractions = [f"{system}.validation_fraction={validation}"]
        fractions += [f"split.test_fraction={test}"] if test else []
        with quick_keys(), pytest.raises(BlindfitError):
            World(tmp_path).run(*fractions, job=job)
        assert all(order == orders[0] for order in orders)
        return orders[0]

    monkeypatch.setattr(training, "order_of", noted)
    make_project(tmp_path)
    held, larger = (set(order_in(*sizes)[: round(ROWS * (sizes[0] or sizes[1]))]) for sizes in (first, second))
    assert (len(held), len(larger)) == (60, 75)
    if defended:
        assert len(larger - held) > 40  # 60 on average, with a deviation of 3
    else:
        assert len(larger - held) == 15


@each_case("option", ["split.test_fraction", "taylor.validation_fraction", "falcon.validation_fraction"])
def test_no_job_holds_out_one_row_more(tmp_path: Path, option: str) -> None:
    """No job holds out one row fewer either: each pair of the few fractions has its own order."""
    world = of_falcon(tmp_path) if option.startswith("falcon") else of_taylor(tmp_path)
    for rows in (59, 61, 1):
        with pytest.raises(ConfigError, match="with any fraction a job could find out whose row is held out"):
            world.load(f"{option}={rows / ROWS}")
    assert world.load(f"{option}={60 / ROWS}")


def test_an_epoch_may_end_a_training_in_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party's large row can end it by the range, by the loss, or by both; the count covers all three."""
    opened, told = DataSeat.open_, []

    async def seen(seat: DataSeat, *shares: Share) -> list[Elements]:
        whole = await opened(seat, *shares)
        if seat.me == "laboratory" and len(whole) == 1 and whole[0].shape == (2,):
            told.append(tuple(int(number) != 0 for number in whole[0]))
        return whole

    monkeypatch.setattr(DataSeat, "open_", seen)
    ends = set()
    for size in (0, 14, 52, -52):
        slowly = OptimiserSettings(learning_rate=0.3)
        case = Case(options={"epochs": 4, "test_rows": 0, "patience": 1, "optimiser": slowly})
        own = np.sign(case.split(case.plain(2))[1])
        case.features[1][case.parameters.validation.start + 5] = np.rint(own * size * 2.0**FEATURE_BITS)
        told.clear()
        try:
            train(case)
        except ScoresOutOfRange:
            assert told[-1][0]
        if len(told) == 2:
            ends.add(told[-1])
    assert ends == {(False, True), (True, False), (True, True)}
