"""Which of a party's rows are trained on and which are held out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.parties.data.source import RowBatch, Source
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.training.rows import Floats, Report

HELD_OUT_SCORES = "held_out_scores.csv"  # id and probability of each held-out row, beside a model


@dataclass(frozen=True, repr=False)
class RowPart:
    """The training or the held-out rows, as the batches that they came in."""

    ids: list[Any] = field(default_factory=list)
    features: list[Floats] = field(default_factory=list)

    def add(self, batch: RowBatch, chosen: NDArray[np.bool_]) -> None:
        if chosen.any():
            self.ids.append(batch.ids.filter(pa.array(chosen)))
            self.features.append(batch.features[chosen])

    def all_ids(self) -> Any:
        return pa.concat_arrays(self.ids) if self.ids else pa.array([], pa.string())


def held_out(ids: Any, job: TrainingParameters, randomness: PublicRandomness) -> NDArray[np.bool_]:
    """Which of these rows are: each by its id alone, whatever other rows there are and in what order they stand."""
    return randomness.chosen("split", ids.to_pylist(), job.split.test_fraction)


def read_split(
    source: Source, job: TrainingParameters, randomness: PublicRandomness, report: Report
) -> tuple[RowPart, RowPart]:
    """One pass: every row goes to one part."""
    train, test = RowPart(), RowPart()
    n_read = 0
    for batch in source.batches(persons=False, labels=False):
        tested = held_out(batch.ids, job, randomness)
        train.add(batch, ~tested)
        test.add(batch, tested)
        n_read += len(batch)
        report("read rows", n_read, 0, "rows")
    if not train.ids:
        raise DataError(f"{source.name}: no row is left to train on", hint="choose a smaller split.test_fraction")
    return train, test
