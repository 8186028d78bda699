"""An exported model gives every row the model's score: to 1e-12 in Python and SQL, to 1e-6 in ONNX and PMML.

A row that the model refuses has no score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.model_export.formula import formula_of
from blindfit.algorithms.model_export.onnx_graph import write_onnx
from blindfit.algorithms.model_export.pmml import write_pmml
from blindfit.algorithms.model_export.sql import write_sql
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.coordinator.export_model.python_file import write_python
from tests.each_case import each_case
from tests.model_export import models as make
from tests.model_export import runtimes
from tests.postgres import PostgresServer
from tests.predict import parts

FINE, COARSE = 1e-12, 1e-6
EVERY_KIND: dict[str, tuple[Any, str]] = {
    "age": ("number", "refuse"),
    'a "quoted" one': ("number", "mean"),
    "it's; --": ("number", "indicator"),
    "select": ("category", "refuse"),
    "größe 年": ("category", "mean"),
    "a=b": ("category", "indicator"),
    "<x> & y": ("date", "refuse"),
    "{brace}": ("date", "mean"),
    "%s": ("date", "indicator"),
    "smokes": ("boolean", "refuse"),
    "back\\slash": ("boolean", "mean"),
    "drinks": ("boolean", "indicator"),
}


@pytest.fixture(scope="module")
def connection(postgres: PostgresServer) -> Iterator[psycopg.Connection]:
    with postgres.connect() as opened:
        yield opened


def kinds(*names: str) -> Mapping[str, tuple[Any, str]]:
    return {name: EVERY_KIND[name] for name in names}


def agree(found: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, float | None]], within: float) -> None:
    assert len(found) == len(expected)
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        if not other:
            assert all(one.get(name) is None for name in ("score", "score_part", "probability", "value")), (place, one)
        allowed = within * max(1.0, other.get(make.SIZE) or 0.0)
        for name, number in other.items():
            if name != make.SIZE:
                assert one[name] == pytest.approx(number, rel=within, abs=allowed), (place, name)


def check_all(models: Sequence[Any], rows: Sequence[make.Row], connection: psycopg.Connection | None = None) -> int:
    """Compare every format except PMML; return the number of rows that have a score."""
    formula, expected = formula_of(models), [make.answer(models, row) for row in rows]
    agree(runtimes.run_python(write_python(formula, [m.to_dict() for m in models]), rows), expected, FINE)
    agree(runtimes.run_sqlite(write_sql(formula, "sqlite"), rows), expected, FINE)
    if connection is not None:
        agree(runtimes.run_postgresql(connection, write_sql(formula, "postgresql"), rows), expected, FINE)
    agree(runtimes.run_onnx(write_onnx(formula), make.with_days(rows, formula), formula), expected, COARSE)
    return sum(map(bool, expected))


def check_pmml(cases: Sequence[tuple[Sequence[Any], Sequence[make.Row]]]) -> None:
    asked = []
    for models, rows in cases:
        formula = formula_of(models)
        asked.append((write_pmml(formula), make.with_days(rows, formula), formula))
    for (models, rows), found in zip(cases, runtimes.run_pmml(asked), strict=True):
        agree(found, [make.answer(models, row) for row in rows], COARSE)


# --- every system, kind, rule and recipe ------------------------------------------------------------------


def _parties(rng: np.random.Generator, **changes: Any) -> list[Any]:
    """Return two parties, of whom both have a column `age`, with a rounded part and a missing value."""
    both = ("bank", "post")
    bank = make.part(make.record_of(kinds("age", "select", "%s")), rng, "bank", data_parties=both, **changes)
    post = make.part(
        make.record_of(kinds("age", "a=b", "smokes", 'a "quoted" one')),
        rng,
        "post",
        data_parties=both,
        score_rounding=38,
        model=bank.model,
    )
    return [bank, post]


def _every_model() -> dict[str, list[Any]]:
    rng = np.random.default_rng(7)
    everything = make.record_of(EVERY_KIND)
    found = {
        "logistic": [make.part(everything, rng)],
        "logistic, rows bounded": [make.part(everything, rng, row_bound=9000)],
        "logistic, a small bound": [make.part(everything, rng, feature_bound=0.3)],
        "linear": [make.part(everything, rng, model="linear")],
        "linear, no intercept": [make.part(everything, rng, model="linear", intercept=None)],
        "constant columns": [make.part(everything, rng, dropped=1)],
        "two parties": _parties(rng),
        "two parties, linear": _parties(rng, model="linear"),
        "the active party's part": _parties(rng)[:1],
        "a passive party's part": _parties(rng)[1:],
        "walr": [make.walr(everything, rng)],
        "walr, no intercept, no clipping": [make.walr(everything, rng, 1e6, intercept=False)],
        "dp-lr": [make.dp_lr(everything, rng)],
        "label-dp ridge": [make.label_dp(everything, rng)],
        "label-dp linear": [make.label_dp(everything, rng, "linear")],
        "numbers only": [make.part(TableRecord.of_numbers(["x", "y"]), rng)],
    }
    for name, recipes in make.RECIPES.items():
        found[f"recipe {name}"] = [make.part(make.record_of(kinds("age", "smokes"), recipes), rng)]
        found[f"recipe {name}, missing"] = [
            make.part(
                make.record_of({"age": ("number", "indicator"), "smokes": ("boolean", "mean")}, recipes),
                rng,
                row_bound=9000,
            )
        ]
    return found


MODELS = _every_model()


def _rows(models: Sequence[Any], n: int, seed: int = 3) -> list[make.Row]:
    rng = np.random.default_rng(seed)
    records = {getattr(model, "party", ""): model.standardiser.record for model in models}
    shared = [name for record in records.values() for name in record.names]
    rows = []
    for place in range(n):
        row: make.Row = {}
        for party, record in records.items():
            of_party = make.row_for(record, rng, missing=(0.0, 0.1, 0.3)[place % 3])
            row |= {f"{party}.{k}" if shared.count(k) > 1 else k: value for k, value in of_party.items()}
        rows.append(row)
    return rows


def _rows_to_read(name: str, n: int) -> list[make.Row]:
    rows = _rows(MODELS[name], n)  # a column without a weight is not read: the model refuses rows without its value
    return [row | {"age": 1.0} for row in rows] if name == "constant columns" else rows


@each_case("name", MODELS)
def test_every_model_agrees(name: str, connection: psycopg.Connection) -> None:
    scored = check_all(MODELS[name], _rows_to_read(name, 60), connection)
    assert scored > 10
    assert scored < 60 or name == "numbers only" or "missing" in name


def test_every_model_agrees_in_pmml() -> None:
    check_pmml([(models, _rows_to_read(name, 40)) for name, models in MODELS.items()])


# --- random models ----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_parts_of_any_numbers_agree(data: st.DataObject) -> None:
    """Values at the clip, halfway between two steps, and as far from the mean as a double can be."""
    model = data.draw(parts.model_parts())
    rows = [
        dict(zip(model.standardiser.columns, row, strict=True)) for row in data.draw(parts.rows_for(model, 4)).tolist()
    ]
    try:
        formula_of([model]).refuse_inexact("SQL")
    except DataError:
        assume(False)
    if rows:
        check_all([model], rows)


@each_case("std, slope", [(1 + 1e-8, 1.0), (2.0, 1 + 5e-8), (2e-308, 2.0)])
def test_factors_that_are_1_in_single_precision_count(std: float, slope: float) -> None:
    """A runtime of ONNX takes such a number for 1, and a mean such as 1e-150 for 0."""
    scale = Standardiser(("x",), (0,), (8e-154,), (std,))
    model = parts.part_of(standardiser=scale, weights=np.array([900.0]), slope=slope, data_parties=("bank",))
    rows = [{"x": 8e-154 + std * step / 8192} for step in range(-60_001, 60_001, 9973)]
    check_all([model], rows)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.data())
def test_models_of_any_columns_agree(seed: int, data: st.DataObject) -> None:
    models, rows = _drawn(np.random.default_rng(seed), data.draw(st.integers(0, 5)))
    check_all(models, rows)


def test_models_of_any_columns_agree_in_other_processes(connection: psycopg.Connection) -> None:
    """PostgreSQL and Java, which cost more, so fewer models."""
    drawn = [_drawn(np.random.default_rng(seed), seed % 6) for seed in range(24)]
    for models, rows in drawn:
        formula, expected = formula_of(models), [make.answer(models, row) for row in rows]
        agree(runtimes.run_postgresql(connection, write_sql(formula, "postgresql"), rows), expected, FINE)
    check_pmml(drawn)


def _drawn(rng: np.random.Generator, system: int) -> tuple[list[Any], list[make.Row]]:
    names = [str(name) for name in rng.permutation(list(make.NAMES))[: rng.integers(1, 6)]]
    columns: dict[str, tuple[Any, str]] = {
        name: (
            str(rng.choice(["number", "boolean", "date", "category"])),
            str(rng.choice(["refuse", "mean", "indicator"])),
        )
        for name in names
    }
    columns["age"], columns["smokes"] = ("number", "mean"), ("boolean", "indicator")
    recipes = [each for group in make.RECIPES.values() for each in group if rng.random() < 0.3]
    record = make.record_of(columns, recipes)
    bound = int(rng.integers(500, 40_000)) if rng.random() < 0.5 else None
    model: Any = (
        lambda: make.part(record, rng, row_bound=bound),
        lambda: make.part(record, rng, model="linear", row_bound=bound, score_rounding=int(rng.integers(0, 40))),
        lambda: make.part(record, rng, "post", data_parties=("bank", "post"), score_rounding=int(rng.integers(0, 40))),
        lambda: make.walr(record, rng, float(rng.random() * 4 + 0.1), intercept=bool(rng.integers(2))),
        lambda: make.dp_lr(record, rng),
        lambda: make.label_dp(record, rng),
    )[system]()
    return [model], _rows([model], 8, int(rng.integers(2**32)))
