"""Models and rows of every kind on which an export must agree, and the models' own scores."""

from __future__ import annotations

import datetime as dt
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from blindfit.algorithms.columns import values
from blindfit.algorithms.columns.recipes import Bins, Clip, Log1p, Product, Recipe, Spline
from blindfit.algorithms.columns.record import Kind, TableColumn, TableRecord
from blindfit.algorithms.errors import DataError, RangeError
from blindfit.algorithms.model_export.formula import Formula
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.label_dp.model import LabelRegressionModel, Weights
from blindfit.algorithms.statistics.label_dp.options import check_options
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart, real_scores
from blindfit.algorithms.statistics.walr.model import WALRModel

#: Names that a careless writer of SQL, XML, Python or ONNX would break on.
NAMES = ("age", 'a "quoted" one', "it's; --", "select", "größe 年", "a=b", "<x> & y", "{brace}", "%s", "back\\slash")
LEVELS = ("north", "o'clock", "1", "ü", '<&">', "true", "back\\")
UNKNOWN = "never met"
SIZE = "size"
Row = dict[str, Any]


def record_of(kinds: Mapping[str, tuple[Kind, str]], recipes: Sequence[Recipe] = ()) -> TableRecord:
    """Return a record with a column of each kind and rule for missing values."""
    columns = tuple(
        TableColumn(
            name, kind, LEVELS[:5] if kind == "category" else (), LEVELS[5:] if kind == "category" else None, rule
        )  # type: ignore[arg-type]
        for name, (kind, rule) in kinds.items()
    )
    draft = TableRecord(columns, recipes=tuple(recipes))
    fill = {name: 0.25 + place for place, name in enumerate(draft.filled)}
    return draft.with_fill(fill)


def scaling_of(record: TableRecord, rng: np.random.Generator, dropped: int = 0) -> Standardiser:
    n = len(record.made)
    kept = tuple(range(dropped, n))
    means, stds = rng.normal(size=len(kept)), rng.random(len(kept)) * 3 + 0.1
    for place, name in enumerate(record.made[dropped:]):
        if name in record.behind and record.behind[name].kind == "date" and not name.endswith("="):
            means[place], stds[place] = 7000.0, 3000.0
    return Standardiser(record.made, kept, tuple(means.tolist()), tuple(stds.tolist()), record)


def part(record: TableRecord, rng: np.random.Generator, party: str = "bank", **changes: Any) -> VerticalModelPart:
    scaling = scaling_of(record, rng, changes.pop("dropped", 0))
    parties = changes.pop("data_parties", (party,))
    active = party == parties[0]
    more = {"intercept": 0.3, "slope": 1.7, "offset": -0.2, "label_mean": 3.5, "label_scale": 0.4} if active else {}
    return VerticalModelPart(
        **{
            "party": party,
            "role": "active" if active else "passive",
            "model": "logistic",
            "data_parties": parties,
            "standardiser": scaling,
            "weights": rng.normal(size=len(scaling.kept)),
            **more,
            **changes,
        }
    )


def walr(record: TableRecord, rng: np.random.Generator, norm_bound: float = 2.0, intercept: bool = True) -> WALRModel:
    scaling = scaling_of(record, rng)
    return WALRModel(scaling, rng.normal(size=len(scaling.kept) + intercept), intercept, norm_bound)


def dp_lr(record: TableRecord, rng: np.random.Generator) -> DPLogisticModel:
    scaling = scaling_of(record, rng)
    return DPLogisticModel(scaling, tuple(rng.normal(size=len(scaling.kept)).tolist()), 0.4)


def label_dp(record: TableRecord, rng: np.random.Generator, regressor: str = "ridge") -> LabelRegressionModel:
    scaling = scaling_of(record, rng)
    form = Weights(rng.normal(size=len(scaling.kept)), 0.2)
    return LabelRegressionModel(scaling, regressor, check_options(regressor, {}), True, form)


# --- rows -------------------------------------------------------------------------------------------------


def row_for(record: TableRecord, rng: np.random.Generator, missing: float = 0.15) -> Row:
    """Return a row as a person would write it in a table of typed columns."""
    return {column.name: None if rng.random() < missing else _value(column, rng) for column in record.columns}


def _value(column: TableColumn, rng: np.random.Generator) -> Any:
    if column.kind == "category":
        return str(rng.choice([*LEVELS, UNKNOWN]))
    if column.kind == "boolean":
        return int(rng.integers(2))
    if column.kind == "date":
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(rng.integers(-(10**16), 10**16)))
        return moment.isoformat() if rng.random() < 0.5 else moment.date().isoformat()
    return float(rng.choice([rng.normal() * 3, rng.normal() * 1e6, round(rng.normal() * 4), 1e200, -1e-200, 0.0]))


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-40, 40).map(lambda n: n / 8)


def to_days(text: Any) -> float | None:
    """Return a date as the number that ONNX and PMML take."""
    return None if text is None else float(values.to_days(pa.array([text]))[0])


def with_days(rows: Sequence[Row], formula: Formula) -> list[Row]:
    dates = {each.name for each in formula.inputs if each.column.kind == "date"}
    return [{name: to_days(value) if name in dates else value for name, value in row.items()} for row in rows]


# --- the models' own answers ------------------------------------------------------------------------------


def answer(models: Sequence[Any], row: Row) -> dict[str, float | None]:
    """Return the models' numbers for a row; None for each number of a row that they refuse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _answer(models, {name: [value] for name, value in row.items()})
        except (DataError, RangeError):
            return {}


def _answer(models: Sequence[Any], table: Mapping[str, list[Any]]) -> dict[str, float | None]:
    first = models[0]
    if isinstance(first, VerticalModelPart):
        total = np.sum([model.score_parts(_of_party(table, model)) for model in models], axis=0)
        score = float(real_scores(total)[0])
        if len(models) < len(first.data_parties):
            return {"score_part": score}
        predicted = "value" if first.model == "linear" else "probability"
        return {"score": score, predicted: float(first.predictions(total)[0])}
    size = _size(first, table)
    if isinstance(first, LabelRegressionModel):
        value = float(first.predict(table)[0])
        return {"score": value, "value": value, SIZE: size} if math.isfinite(value) else {}
    score = float(first.scores(table)[0])
    probability = float(first.probabilities(table)[0])
    return {"score": score, "probability": probability, SIZE: size} if math.isfinite(score) else {}


def _size(model: Any, table: Mapping[str, list[Any]]) -> float:
    """Return the sum of the sizes of what the columns add to a score: the last bits of the score depend on it."""
    weights, constant = model.standardised_weights()
    if isinstance(model, WALRModel):
        return float(np.abs(model.rows(table)[0]) @ np.abs(model.weights))
    return float(np.abs(model.standardiser.transform_and_clip(table)[0]) @ np.abs(weights)) + abs(constant)


def _of_party(table: Mapping[str, list[Any]], model: VerticalModelPart) -> dict[str, list[Any]]:
    names = model.standardiser.record.names
    return {name: table.get(f"{model.party}.{name}", table.get(name, [])) for name in names}


RECIPES: Mapping[str, tuple[Recipe, ...]] = {
    "log1p": (Log1p("log of age", ("age",)),),
    "clip": (
        Clip("age, clipped", ("age",), -1.0, 2.5),
        Clip("low end", ("age",), 0.0),
        Clip("top", ("age",), None, 3.0),
    ),
    "bins": (Bins("bins", ("age",), 4, (-1.0, 0.5, 0.5)),),
    "spline": (Spline("curve", ("age",), 5, (-2.0, 0.0, 1.0, 4.0)), Spline("line", ("age",), 3, (1.0,))),
    "product": (Product("both", ("age", "smokes")), Product("square", ("age", "age"))),
}
