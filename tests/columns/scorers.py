"""One column of every kind, scored in every possible way."""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.linear.named_columns import in_order
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart

SCORER = Path(__file__).parents[2] / "docs" / "scorer.py"


@dataclass(frozen=True)
class Refused:
    """A way of scoring refuses the column, and names it."""


def scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scorer", SCORER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model_of(column: TableColumn, fill: dict[str, float] | None = None, **words: Any) -> VerticalModelPart:
    """Return a model that distinguishes the values of its columns: each has another weight."""
    record = TableRecord((column,), fill or {}, **words)
    n = len(record.made)
    scale = Standardiser(record.made, tuple(range(n)), (0.25,) * n, (3000.0,) * n, record)
    return VerticalModelPart("bank", "active", "logistic", ("bank",), scale, np.array([3.0**j / n for j in range(n)]))


def _named(error: Exception, part: VerticalModelPart) -> Refused:
    name = part.standardiser.record.names[0]
    if f"column {name}" not in str(error):
        raise AssertionError(f"the refusal does not name the column {name}") from error
    return Refused()


def numbers_of_table(part: VerticalModelPart, table: Any) -> list[list[float]] | Refused:
    """Return the model's columns of a data frame or another table, without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return in_order(table, part.standardiser.columns, part.standardiser.table).tolist()
        except DataError as error:
            return _named(error, part)


def numbers_of_csv(part: VerticalModelPart, path: Path) -> list[list[float]] | Refused:
    """Return the model's columns that docs/scorer.py computes from a csv file with a column `id`."""
    module, model = scorer(), json.loads(json.dumps(part.to_dict()))
    record = module.record(model)
    (column,) = record["columns"]
    try:
        rows = module.read(path, "id", model, module.PLAIN).values()
        made = [module.converted(column, row[column["name"]], record["fill"]) for row in rows]
    except ValueError as error:
        return _named(error, part)
    return [[row[name] for name in part.standardiser.columns] for row in made]


def scores(part: VerticalModelPart, numbers: Sequence[Sequence[float]]) -> list[int]:
    """Return the scores of these numbers: the reference."""
    return part.score_parts(np.array(numbers, dtype=float)).tolist()


def score_csv(part: VerticalModelPart, path: Path) -> list[int] | Refused:
    """Return the scores that docs/scorer.py computes from a csv file with a column `id`."""
    module, model = scorer(), json.loads(json.dumps(part.to_dict()))
    try:
        return [module.score_part(model, row) for row in module.read(path, "id", model, module.PLAIN).values()]
    except ValueError as error:
        return _named(error, part)


def write_csv(path: Path, name: str, texts: Sequence[str]) -> Path:
    """Write fields as they are given, quotes included."""
    path.write_text(f"id,{name}\n" + "".join(f"r{row},{text}\n" for row, text in enumerate(texts)), "utf-8")
    return path


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
