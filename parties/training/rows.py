"""A party's rows, read whole; and in the order that an alignment found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.source import DuplicateSearch, Source
from blindfit.parties.settings import PartyDatasetSettings
from blindfit.parties.tables import validate

Floats = NDArray[np.float64]
Report = Callable[[str, int, int, str], None]


@dataclass(frozen=True, repr=False)
class PartyRows:
    """Rows as they were read; `labels` at the active party alone."""

    ids: Any  # pyarrow StringArray
    features: Floats
    labels: Floats | None
    there: NDArray[np.bool_]  # False where a slot of linkage has no row of this party

    def take(self, positions: NDArray[np.int64]) -> PartyRows:
        """The rows at these positions; -1 stands for a row that is not there: zeros, and no id."""
        there = positions >= 0
        safe = np.where(there, positions, 0)
        features = self.features[safe] * there[:, None]
        labels = None if self.labels is None else self.labels[safe] * there
        ids = pa.compute.if_else(pa.array(there), self.ids.take(pa.array(safe)), pa.scalar(""))
        return PartyRows(ids, features, labels, there)


def check_features(source: Source, whose: str) -> Source:
    """Raises ConfigError: the dataset has no features."""
    if not source.feature_names:
        raise ConfigError(
            f"datasets.{source.name}: {whose}'s dataset needs features",
            hint=f'set datasets.{source.name}.features = "rest"',
        )
    return source


def with_columns_of(
    columns: Sequence[str], dataset: PartyDatasetSettings, name: str, *, labels: bool
) -> DatasetSettings:
    """The dataset as a model wants it: the model's columns, by name and in its order; with labels, or without.

    Raises:
        ConfigError: the party's file does not offer a column of the model, or it is the label.
    """
    if missing := [column for column in columns if not dataset.offers(column)]:
        raise ConfigError(
            f"datasets.{name}.features does not have {', '.join(missing)}, which the model has",
            hint=f"remove {missing[0]} from datasets.{name}.except"
            if dataset.features == "rest"
            else f'set datasets.{name}.features = "rest", or add {missing[0]} to them',
        )
    kept = {"url", "id", "missing", "made_by", "batch_rows"} | ({"label", "label_kind"} if labels else set())
    return validate(
        {**dataset.model_dump(include=kept), "features": columns}, DatasetSettings, source=f"datasets.{name}"
    )


def read_rows(source: Source, *, labels: bool, report: Report, means: Mapping[str, float] | None = None) -> PartyRows:
    """Every row of a dataset.

    Args:
        means: what a missing value becomes where the dataset says `missing = "mean"`; by default its column's mean.

    Raises:
        DataError: names the file, the row and the column; or there are no rows, or ids repeat.
    """
    ids, features, label_parts, seen = [], [], [], DuplicateSearch()
    n_read = 0
    for batch in source.batches(persons=False, labels=labels, means=means):
        seen.add(batch)
        ids.append(batch.ids)
        features.append(batch.features)
        if labels:
            label_parts.append(np.asarray(batch.labels, dtype=np.float64))
        n_read += len(batch)
        report("read rows", n_read, 0, "rows")
    seen.refuse_duplicates(source)
    if not n_read:
        raise DataError(f"{source.name}: the dataset has no rows")
    all_labels = np.concatenate(label_parts) if labels else None
    return PartyRows(pa.concat_arrays(ids), np.concatenate(features), all_labels, np.ones(n_read, np.bool_))
