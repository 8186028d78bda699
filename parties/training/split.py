"""Which of a party's rows are trained on and which are held out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.randomness import public_generator
from blindfit.parties.data.source import DuplicateSearch, RowBatch, Source
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.training.rows import Floats, Report


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


def read_split(source: Source, job: TrainingParameters, report: Report) -> tuple[RowPart, RowPart]:
    """One pass: every row goes to one part, by a public draw that depends on the seed and its place alone."""
    train, test, seen = RowPart(), RowPart(), DuplicateSearch()
    generator = public_generator(job.seed, "split")
    n_read = 0
    for batch in source.batches(persons=False, labels=False):
        seen.add(batch)
        held_out = generator.random(len(batch)) < job.split.test_fraction
        train.add(batch, ~held_out)
        test.add(batch, held_out)
        n_read += len(batch)
        report("read rows", n_read, 0, "rows")
    seen.refuse_duplicates(source)
    if not train.ids:
        raise DataError(f"{source.name}: no row is left to train on", hint="choose a smaller split.test_fraction")
    return train, test
