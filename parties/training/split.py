"""Split of a party's rows into training rows and held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.parties.data.row_batch import RowBatch
from blindfit.parties.data.source import Source
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.training.rows import Floats, Report

Hold = Callable[[Floats], NDArray[Any]]
HELD_OUT_ROWS = "held_out_rows.csv"  # their ids, if nobody has their scores before they are predicted
HELD_OUT_SCORES = "held_out_scores.csv"  # id and probability of each held-out row, next to a model


@dataclass(frozen=True, repr=False)
class RowPart:
    """The training rows or the held-out rows, in the batches in which they came."""

    ids: list[Any] = field(default_factory=list)
    features: list[NDArray[Any]] = field(default_factory=list)

    def add(self, batch: RowBatch, chosen: NDArray[np.bool_], hold: Hold) -> None:
        if chosen.any():
            self.ids.append(batch.ids.filter(pa.array(chosen)))
            features = batch.features if chosen.all() else batch.features[chosen]
            self.features.append(hold(features))

    def all_ids(self) -> Any:
        return pa.concat_arrays(self.ids) if self.ids else pa.array([], pa.string())


def hold_out(ids: Any, job: TrainingParameters, randomness: PublicRandomness) -> NDArray[np.bool_]:
    """Choose each row only by its id, without regard to other rows and to their order."""
    if not job.split.test_fraction:
        return np.zeros(len(ids), np.bool_)  # without a hash of each id
    return randomness.choose("split", ids.to_pylist(), job.split.test_fraction)


def read_split(
    source: Source,
    job: TrainingParameters,
    randomness: PublicRandomness,
    report: Report,
    hold: Hold = lambda features: features,
) -> tuple[RowPart, RowPart]:
    """Return the two parts, after one pass over the rows; every row goes to one part.

    Args:
        hold: function that converts each batch's features to the form that stays in memory.
    """
    train, test = RowPart(), RowPart()
    n_read = 0
    for batch in source.batches(persons=False, labels=False):
        tested = hold_out(batch.ids, job, randomness)
        train.add(batch, ~tested, hold)
        test.add(batch, tested, hold)
        n_read += len(batch)
        report("read rows", n_read, 0, "rows")
    if not train.ids:
        refuse_no_row(source)
    return train, test


def refuse_no_row(source: Source) -> NoReturn:
    raise DataError(f"{source.name}: no row is left to train on", hint="lower split.test_fraction")
