"""Rows that no party of a simulation has, and their scores by the models of a run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blindfit.algorithms.columns.levels import UnseenLevelWarning
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.label_dp.model import LabelRegressionModel
from blindfit.algorithms.statistics.linear.fitted_model import LogisticModel
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.systems import load_model

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class HeldOut:
    """Held-out rows.

    Attributes:
        ids: (n,) texts.
        rows: (n,) values of each feature, as the table has them.
        truth: (n,) labels, 0 and 1 or numbers.
        fill: replacement of a missing value in a dp-lr job, by column; its models know no mean.
    """

    ids: Any
    rows: pa.Table
    truth: Floats
    fill: Mapping[str, Any] = field(default_factory=dict)

    def fill_all(self) -> pa.Table:
        """Return the rows without a missing value."""
        return fill_gaps(self.rows, self.fill)


def fill_gaps(rows: pa.Table, fill: Mapping[str, Any]) -> pa.Table:
    """Return the rows with a fixed value in place of each missing value."""
    for name, value in fill.items():
        column = rows.column(name)
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), None, column)
        filled = pc.fill_null(column, pa.scalar(value).cast(column.type))
        rows = rows.set_column(rows.column_names.index(name), name, filled)
    return rows


class Report(Protocol):
    """The report of a run: what `run_here` returns."""

    @property
    def content(self) -> Mapping[str, Any]: ...


def score_rows(held_out: HeldOut, report: Report, out: Path) -> Floats:
    """Return (n,) probabilities of label 1, or predicted values, as a prediction of the parties would compute them.

    Args:
        out: folder of the run's reports, with the models of all parties.

    Raises:
        DataError: the run left no model, or a part of it is missing.
    """
    names = list(report.content.get("models", {}))
    models = [load_model(out / name / "model.json") for name in names]
    if not models:
        raise DataError(f"{out} has no model of a party", hint="score the folder of a finished training")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLevelWarning)  # a held-out row may have a level that no other row has
        if parts := [model for model in models if isinstance(model, VerticalModelPart)]:
            return _add_parts(parts, held_out.rows, out)
        (model,) = models
        if isinstance(model, LabelRegressionModel):
            return model.predict(held_out.rows)
        if isinstance(model, LogisticModel):
            return model.probabilities(held_out.fill_all() if held_out.fill else held_out.rows)
    raise DataError(f"{out}: this kind of model, from {names[0]}, cannot be scored here", hint="take another system")


def _add_parts(parts: list[VerticalModelPart], rows: pa.Table, out: Path) -> Floats:
    (active,) = [part for part in parts if part.role == "active"]
    if absent := sorted(set(active.data_parties) - {part.party for part in parts}):
        raise DataError(f"{out} has no part of {', '.join(absent)}", hint="score the folder of a finished training")
    scores = sum((part.score_parts(rows) for part in parts), np.zeros(rows.num_rows, np.int64))
    return active.predictions(scores)
