"""A party's rows: all rows of a dataset, and the rows in the order of an alignment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import structlog
from numpy.typing import NDArray

from blindfit.algorithms.columns.levels import find_unseen_levels, merge_unseen
from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.parties.data.duplicates import DuplicateSearch
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.data.source import Source

log = structlog.get_logger(__name__)

Floats = NDArray[np.float64]
Report = Callable[[str, int, int, str], None]


@dataclass(frozen=True, repr=False)
class PartyRows:
    """Rows as they were read; only the active party has `labels`.

    Attributes:
        there: False for a slot of a linkage without a row of this party.
        places: each row's place in the snapshot, which also has the rows that `missing = "drop"` leaves out here; -1
            for a missing row. None if the snapshot has exactly these rows.
    """

    ids: Any  # pyarrow StringArray
    features: Floats
    labels: Floats | None
    there: NDArray[np.bool_]
    places: NDArray[np.int64] | None = None

    @property
    def in_snapshot(self) -> NDArray[np.int64]:
        """Each row's place in the snapshot."""
        return np.arange(len(self.there)) if self.places is None else self.places

    def take(self, positions: NDArray[np.int64]) -> PartyRows:
        """Return the rows at these positions; -1 stands for a missing row: zeros, and an empty id."""
        there = positions >= 0
        safe = np.where(there, positions, 0)
        features = np.where(there[:, None], self.features[safe], 0.0)
        labels = None if self.labels is None else self.labels[safe] * there
        ids = pa.compute.if_else(pa.array(there), self.ids.take(pa.array(safe)), pa.scalar(""))
        return PartyRows(ids, features, labels, there, np.where(there, self.in_snapshot[safe], -1))


def check_features(source: Source, whose: str) -> Source:
    """Return the dataset. Raise ConfigError if it has no features."""
    if not source.model_columns:
        raise ConfigError(
            f"datasets.{source.name}: {whose}'s dataset needs features",
            hint=f'set datasets.{source.name}.features = "rest"',
        )
    return source


def require_offered(record: TableRecord, dataset: PartyDatasetSettings, name: str) -> None:
    """Raise ConfigError if the party's file does not offer a column of the model, or the column is the label."""
    if taken := [column for column in record.names if column in dataset.key_columns()]:
        raise ConfigError(
            f"datasets.{name}: column {taken[0]} is named twice: it is a feature of the model, and here the id, the "
            "label, a person or a field of a linkage",
            hint="rename one of the two columns",
        )
    not_read = [column for column in record.names if column not in dataset.sources]
    if left_out := [column for column in not_read if column in dataset.left_out]:
        raise ConfigError(
            f"datasets.{name}.except leaves out {', '.join(left_out)}, which the model has",
            hint=f"remove {left_out[0]} from datasets.{name}.except",
        )
    if dataset.features != "rest" and (missing := [c for c in not_read if c not in dataset.features]):
        raise ConfigError(
            f"datasets.{name}.features does not have {', '.join(missing)}, which the model has",
            hint=f'set datasets.{name}.features = "rest", or add {missing[0]} to them',
        )


def tell_of_unseen(source: Source) -> None:
    """Log, for the operator, how many rows have levels that the model's training did not have.

    The log has numbers and no levels, because it never has a value of a row.
    """
    for column in source.record.columns:
        if column.kind == "category":
            found = merge_unseen(
                filter(None, (find_unseen_levels(texts, column) for texts in source.texts_of(column.name)))
            )
            for unseen in found.values():
                rows, levels, near = unseen.rows.total(), len(unseen.rows), len(unseen.near)
                spelling = f" ({near} of them differ from a known level only in spelling)" if near else ""
                log.warning(
                    f"column {column.name}: rows with a level that training did not have: {rows}; such levels: "
                    f"{levels}{spelling}; they are scored as 0 in each of its columns",
                    dataset=source.name,
                )


def read_rows(source: Source, *, labels: bool, report: Report) -> PartyRows:
    """Read every row of a dataset.

    Raises:
        DataError: a value is wrong, and the error names the file, the row and the column; or the table has no rows, or
            ids repeat.
    """
    ids, features, label_parts, places, seen = [], [], [], [], DuplicateSearch()
    n_read = 0
    for batch in source.batches(persons=False, labels=labels):
        seen.add(batch)
        ids.append(batch.ids)
        features.append(batch.features)
        places.append(batch.rows - 1)
        if labels:
            label_parts.append(np.asarray(batch.labels, dtype=np.float64))
        n_read += len(batch)
        report("read rows", n_read, 0, "rows")
    seen.refuse_duplicates(source)
    if not n_read:
        raise DataError(f"{source.name}: the dataset has no rows")
    all_labels, there = np.concatenate(label_parts) if labels else None, np.ones(n_read, np.bool_)
    return PartyRows(pa.concat_arrays(ids), np.concatenate(features), all_labels, there, np.concatenate(places))
