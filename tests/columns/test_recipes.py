"""Recipes against independent references, at their edges, and as a model file stores them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from patsy import dmatrix
from scipy.interpolate import CubicSpline

from blindfit.algorithms.columns.derived import derive_columns, derive_matrix, fit_recipes, with_given_numbers
from blindfit.algorithms.columns.recipes import LARGEST, BadInput, Bins, Clip, Log1p, Product, Recipe, Spline
from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.errors import DataError
from tests.columns.scorers import scorer

AGES = np.random.default_rng(1).gamma(4.0, 10.0, 500)
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


def apply(recipe: Recipe, *values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack(recipe.apply(values))


def test_log1p_is_that_of_numpy() -> None:
    np.testing.assert_allclose(apply(Log1p("log", ("age",)), AGES)[:, 0], np.log1p(AGES), rtol=1e-15)


@pytest.mark.parametrize("number", [-1.0, -1e9])
def test_log1p_refuses_the_row_of_a_number_that_is_not_above_minus_1(number: float) -> None:
    with pytest.raises(BadInput, match="row 2, column income: the number is not above -1"):
        Log1p("log", ("income",)).apply([np.array([0.0, -0.5, number])])


def test_clip_takes_quantiles_of_the_rows() -> None:
    fitted = Clip("cap", ("age",), quantiles=(0.1, 0.9)).fit(AGES)
    low, high = np.quantile(AGES, [0.1, 0.9])
    np.testing.assert_array_equal(apply(fitted, AGES)[:, 0], np.clip(AGES, low, high))


@pytest.mark.parametrize(("low", "high"), [(None, 3.0), (1.0, None), (1.0, 3.0)])
def test_clip_may_have_one_end(low: float | None, high: float | None) -> None:
    x = np.array([0.0, 2.0, 9.0])
    np.testing.assert_array_equal(apply(Clip("cap", ("age",), low, high), x)[:, 0], np.clip(x, low, high))


def test_bins_are_those_of_pandas() -> None:
    import pandas as pd

    fitted = Bins("bin", ("age",), 5).fit(AGES)
    expected = pd.get_dummies(pd.qcut(AGES, 5, labels=False)).to_numpy(np.float64)[:, 1:]
    np.testing.assert_array_equal(apply(fitted, AGES), expected)
    assert fitted.made == ("bin=2", "bin=3", "bin=4", "bin=5")


@given(st.lists(st.integers(-3, 3), min_size=1), st.integers(2, 8))
def test_a_value_is_in_one_bin_and_a_larger_one_in_no_lower_bin(values: list[int], n: int) -> None:
    x = np.sort(np.array(values, np.float64))
    made = apply(Bins("bin", ("age",), n).fit(x), x)
    assert made.shape == (len(x), n - 1)
    assert set(made.sum(axis=1)) <= {0.0, 1.0}
    place = np.where(made.any(axis=1), 1 + np.argmax(made, axis=1), 0)
    assert (np.diff(place) >= 0).all()


def test_equal_quantiles_leave_a_bin_empty() -> None:
    x = np.array([0.0] * 90 + list(range(1, 11)))
    made = apply(Bins("bin", ("age",), 4).fit(x), x)
    np.testing.assert_array_equal(made.sum(axis=0), [0, 0, 10])


def test_the_spline_spans_the_natural_cubic_splines_of_scipy() -> None:
    """Each cardinal spline of these knots is a sum of the columns and a constant, also beyond the last knots."""
    fitted = Spline("curve", ("age",), 5).fit(AGES)
    assert isinstance(fitted, Spline)
    knots = np.array(fitted.knots)
    x = np.linspace(knots[0], knots[-1], 400)
    cardinal = CubicSpline(knots, np.eye(5), bc_type="natural")(x)
    basis = np.column_stack([np.ones(len(x)), apply(fitted, x)])
    weights, *_ = np.linalg.lstsq(basis, cardinal, rcond=None)
    np.testing.assert_allclose(basis @ weights, cardinal, atol=1e-12)
    beyond = np.array([knots[0] - 100, knots[0] - 50, knots[0], knots[-1], knots[-1] + 50, knots[-1] + 100])
    made = np.column_stack([np.ones(6), apply(fitted, beyond)]) @ weights
    np.testing.assert_allclose(made[0] - made[1], made[1] - made[2], atol=1e-11)
    np.testing.assert_allclose(made[5] - made[4], made[4] - made[3], atol=1e-11)


def test_the_spline_spans_those_of_patsy() -> None:
    fitted = Spline("curve", ("age",), 4).fit(AGES)
    assert isinstance(fitted, Spline)
    assert fitted.knots is not None
    low, *inner, high = fitted.knots
    x = np.linspace(low, high, 300)
    text = f"cr(x, knots={inner}, lower_bound={low!r}, upper_bound={high!r}) - 1"
    theirs = np.asarray(dmatrix(text, {"x": x}))
    ours = np.column_stack([np.ones(len(x)), apply(fitted, x)])
    weights, *_ = np.linalg.lstsq(ours, theirs, rcond=None)
    np.testing.assert_allclose(ours @ weights, theirs, atol=1e-11)


def test_knots_are_at_equal_steps_between_the_outer_quantiles() -> None:
    fitted = Spline("curve", ("age",), 4).fit(AGES)
    assert isinstance(fitted, Spline)
    np.testing.assert_allclose(fitted.knots, np.quantile(AGES, [0.05, 0.35, 0.65, 0.95]), rtol=1e-12)


def test_knots_that_float64_cannot_tell_apart_count_once() -> None:
    fitted = Spline("curve", ("age",), 5).fit(np.array([0.0, 1.0, -1e300]))
    assert isinstance(fitted, Spline)
    assert fitted.knots is not None
    assert len(fitted.knots) < 5
    assert np.isfinite(apply(fitted, np.array([-1e300, 0.0, 1e300]))).all()


@pytest.mark.parametrize(("values", "knots"), [([7.0] * 20, 1), ([0.0] * 10 + [1.0] * 10, 2), (list(range(20)), 4)])
def test_equal_knots_count_once_and_leave_columns_of_zeros(values: list[float], knots: int) -> None:
    fitted = Spline("curve", ("age",), 4).fit(np.array(values))
    assert isinstance(fitted, Spline)
    assert fitted.knots is not None
    assert fitted.made == ("curve=1", "curve=2", "curve=3")
    made = apply(fitted, np.array([*values, -5.0, 99.0]))
    assert made.any(axis=0).sum() == len(fitted.knots) - 1 <= max(0, knots)


def test_a_product_is_of_two_columns() -> None:
    recipe = Product("both", ("age", "income"))
    np.testing.assert_array_equal(apply(recipe, AGES, AGES[::-1])[:, 0], AGES * AGES[::-1])


@given(st.lists(NUMBERS | st.sampled_from([1e300, -1e300, 1e100, 5e-324, 0.0]), min_size=1, max_size=20), st.data())
def test_every_result_is_a_finite_number(values: list[float], data: st.DataObject) -> None:
    x = np.array(values)
    recipe = data.draw(
        st.sampled_from(
            [
                Clip("a", ("x",), quantiles=(0.0, 1.0)),
                Bins("a", ("x",), 3),
                Spline("a", ("x",), 5),
                Product("a", ("x", "x")),
            ]
        )
    )
    made = apply(recipe.fit(x), *[x] * recipe.reads)
    assert np.isfinite(made).all()
    assert (np.abs(made) <= LARGEST).all()


@given(st.lists(NUMBERS, min_size=1, max_size=12), NUMBERS | st.sampled_from([1e300, -1e300, 0.0, -0.5]), st.data())
def test_the_scorer_in_plain_python_computes_the_same_bits(values: list[float], x: float, data: st.DataObject) -> None:
    trained, module = np.array(values), scorer()
    recipes = [
        Log1p("a", ("x",)),
        Clip("a", ("x",), low=-1.5),
        Clip("a", ("x",), quantiles=(0.1, 0.8)),
        Bins("a", ("x",), data.draw(st.integers(2, 9))),
        Spline("a", ("x",), data.draw(st.integers(3, 9))),
        Product("a", ("x", "y")),
    ]
    for recipe in recipes:
        x = max(x, -0.5) if recipe.by == "log1p" else x
        read = [x, trained[0]][: recipe.reads]
        fitted = recipe.fit(trained)
        ours = [column[0] for column in fitted.apply([np.array([number]) for number in read])]
        theirs = module.derived(json.loads(json.dumps(fitted.to_dict())), *read)
        assert theirs == dict(zip(fitted.made, ours, strict=True))


def test_the_scorer_in_plain_python_refuses_what_it_cannot_compute() -> None:
    with pytest.raises(ValueError, match="column x: the number is not above -1"):
        scorer().derived(Log1p("a", ("x",)).to_dict(), -1.0)
    with pytest.raises(ValueError, match="a is computed by cube, which this scorer does not know"):
        scorer().derived({"name": "a", "by": "cube", "of": ["x"]}, 1.0)


# --- records ----------------------------------------------------------------------------------------------------------


def record(*recipes: Recipe) -> TableRecord:
    read = {name for recipe in recipes for name in recipe.of}
    columns = [TableColumn(name, is_feature=name not in read) for name in ("age", "income", "visits")]
    return TableRecord(tuple(columns), recipes=recipes)


ALL = (
    Log1p("log", ("income",)),
    Clip("cap", ("income",), quantiles=(0.01, 0.99)),
    Bins("bin", ("age",), 4),
    Spline("curve", ("age",), 4),
    Product("both", ("age", "income")),
)
ROWS = {"age": AGES, "income": AGES[::-1] ** 2, "visits": np.ones(len(AGES))}


def test_the_models_columns_are_those_of_the_table_and_then_those_of_the_recipes() -> None:
    whole = record(*ALL)
    assert whole.made == ("visits", "log", "cap", "bin=2", "bin=3", "bin=4", "curve=1", "curve=2", "curve=3", "both")
    assert whole.encoded == ("age", "income", "visits")
    assert whole.sources == ("age", "income")
    assert not whole.is_fitted


def test_a_record_is_the_same_after_it_was_stored() -> None:
    fitted = fit_recipes(record(*ALL), ROWS)
    stored = TableRecord.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert stored.to_dict() == fitted.to_dict()
    matrix = np.column_stack([ROWS[name] for name in fitted.encoded])
    before, after = (derive_matrix(matrix, of.encoded, of, of.made) for of in (fitted, stored))
    np.testing.assert_array_equal(before, after)


def test_an_unfitted_record_cannot_be_stored() -> None:
    with pytest.raises(DataError, match="bin has no numbers yet"):
        record(Bins("bin", ("age",), 4)).to_dict()


def test_recipes_are_fitted_once() -> None:
    fitted = fit_recipes(record(*ALL), ROWS)
    assert fit_recipes(fitted, {name: values + 1 for name, values in ROWS.items()}) is fitted


def test_no_row_fits_no_recipe() -> None:
    with pytest.raises(DataError, match="no rows"):
        fit_recipes(record(*ALL), {name: values[:0] for name, values in ROWS.items()})


def test_a_gap_decides_no_number() -> None:
    gaps = {name: np.append(values, [np.nan, np.nan]) for name, values in ROWS.items()}
    assert fit_recipes(record(*ALL), gaps) == fit_recipes(record(*ALL), ROWS)
    assert fit_recipes(record(*ALL), gaps).fill == fit_recipes(record(*ALL), ROWS).fill
    empty = fit_recipes(record(*ALL), {name: np.full(3, np.nan) for name in ROWS})
    assert empty == fit_recipes(record(*ALL), {name: np.zeros(3) for name in ROWS})


def test_a_source_has_the_mean_of_training_rows_or_a_given_number() -> None:
    assert fit_recipes(record(*ALL), ROWS).fill == {name: ROWS[name].mean() for name in ("age", "income")}
    given_ones = (Log1p("log", ("income",)), Bins("bin", ("age",), 3, (30.0, 40.0)))
    assert with_given_numbers(record(*given_ones)).fill == {"age": 40.0, "income": 0.0}
    with pytest.raises(DataError, match="curve has no numbers"):
        with_given_numbers(record(*ALL[3:]))


DAMAGE = {
    "name": ({"name": 7}, "not a list of tables with a name each"),
    "by": ({"by": "cube"}, "by is not one of"),
    "by a list": ({"by": []}, "by is not one of"),
    "of": ({"of": "age"}, "of is not a list"),
    "of two": ({"of": ["age", "income"]}, "of is not a list with the names of 1 columns"),
    "of nothing": ({"of": ["shoe"]}, "shoe is not a column of numbers or dates"),
    "knots": ({"knots": "1"}, "knots is not a list of 1 to 20 numbers"),
    "no knots": ({"knots": []}, "knots is not a list of 1 to 20 numbers"),
    "too many": ({"knots": list(range(21))}, "knots is not a list of 1 to 20 numbers"),
    "order": ({"knots": [2.0, 1.0]}, "knots are not in ascending order"),
    "near": ({"knots": [-1e100, 1.0, 2.0]}, "too near to each other"),
    "twice": ({"knots": [2.0, 2.0]}, "knots are not in ascending order"),
    "infinite": ({"knots": [1.0, math.inf]}, "knots is not a number from"),
    "large": ({"knots": [1.0, 1e101]}, "knots is not a number from"),
    "true": ({"knots": [True, 2.0]}, "knots is not a number from"),
    "columns": ({"columns": 2}, "columns is not one fewer"),
    "many columns": ({"columns": 10**9}, "columns is not one fewer"),
    "half a column": ({"columns": 3.0}, "columns is not one fewer"),
    "edges": ({"by": "bins", "edges": [3.0, 1.0]}, "edges are not in ascending order"),
    "no edges": ({"by": "bins"}, "edges is not a list of 1 to 99 numbers"),
    "no ends": ({"by": "clip"}, "low and high are missing"),
    "ends": ({"by": "clip", "low": 2.0, "high": 1.0}, "low is above high"),
    "end": ({"by": "clip", "low": "2"}, "low is not a number from"),
}


@pytest.mark.parametrize(("damage", "problem"), DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_recipe_is_refused_by_its_field(damage: dict[str, object], problem: str) -> None:
    stored = fit_recipes(record(ALL[3]), ROWS).to_dict()
    stored["recipes"][0] |= damage
    with pytest.raises(DataError, match=f"table.recipes.*{problem}"):
        TableRecord.from_dict(stored)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ({"recipes": {}}, "table.recipes: not a list"),
        ({"recipes": []}, "age is not a feature, and no recipe reads it"),
        ({"fill": {}}, "table.fill: age is missing"),
    ],
)
def test_a_damaged_record_is_refused_by_its_field(damage: dict[str, object], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        TableRecord.from_dict(fit_recipes(record(ALL[3]), ROWS).to_dict() | damage)


@pytest.mark.parametrize("name", ["age", "visits"])
def test_a_recipe_cannot_have_the_name_of_a_column(name: str) -> None:
    with pytest.raises(DataError, match=f"{name} comes twice"):
        record(Log1p(name, ("age",)))


def test_only_what_is_wanted_is_computed() -> None:
    fitted = fit_recipes(record(*ALL), ROWS)
    made = derive_matrix(np.column_stack([AGES]), ["age"], fitted, ["curve=2"])
    np.testing.assert_array_equal(made[:, 0], derive_columns(ROWS, fitted.recipes)["curve=2"])
    assert fitted.read_for(["both", "visits", "bin=3"]) == ("age", "income", "visits")
