"""Batches are drawn from all training rows: all parties have the same, and none chooses them."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tests.falcon.local import Case, train
from tests.falcon.oracle import bound, weights_of

DRAWN = {"sampling": "replacement"}


def batches(case: Case, epochs: int) -> list[NDArray[np.int64]]:
    p = case.parameters
    every = [p.batch(epoch, number) for epoch in range(epochs) for number in range(len(p.batch_rows))]
    assert all(isinstance(batch, np.ndarray) for batch in every)
    return [np.asarray(batch) for batch in every]


def test_weights_are_those_of_plain_steps_on_the_same_batches() -> None:
    case = Case(n_parties=3, batches=3, options=DRAWN)
    found = weights_of(case, train(case))
    assert np.linalg.norm(found - case.plain(4)) <= bound(case, 4)
    of_epochs = replace(case.parameters, sampling="epochs")
    case.parameters = of_epochs
    assert np.linalg.norm(found - case.plain(4)) > bound(case, 4)


def test_every_batch_has_its_rows_once_and_every_row_its_turn() -> None:
    case = Case(batches=4, options=DRAWN)
    p, drawn = case.parameters, batches(case, 40)
    assert [len(batch) for batch in drawn] == list(p.batch_rows) * 40
    for batch in drawn:
        assert len(set(batch.tolist())) == len(batch)
        assert 0 <= batch.min() <= batch.max() < p.train_rows
    counts = np.bincount(np.concatenate(drawn), minlength=p.train_rows)
    assert abs(counts.mean() - 40) < 1e-9
    # A row is in each of 160 batches with a chance of 1/4: variance 30, and six deviations are 33.
    assert np.abs(counts - 40).max() < 33
    assert 15 < counts.var() < 50


def test_all_rows_in_one_batch_are_all_rows() -> None:
    case = Case(batches=1, options=DRAWN)
    assert np.array_equal(batches(case, 1)[0], np.arange(case.parameters.train_rows))


def test_batches_are_the_same_in_every_version() -> None:
    """Parties of different versions would train on different rows."""
    whole = np.concatenate(batches(Case(batches=4, options=DRAWN), 3)).astype("<i8").tobytes()
    assert hashlib.sha256(whole).hexdigest() == "2317088f599e9d933f899f28f16ba604312f6b42617f4de5e290039e813c1e16"
