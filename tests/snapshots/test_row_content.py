"""Content of rows limits scores, where recipes compute columns: it is never more than that of the table's columns."""

from __future__ import annotations

import math

from blindfit.algorithms.columns.recipes import Bins, Log1p, Product, Recipe, Spline
from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.parties.snapshots.row_content import content_of_columns, count_unknowns
from tests.each_case import each_case

NAMES = ("a", "b", "c", "d")
VALUES = {"a": 1000, "b": 500, "c": 200, "d": 100}
BINS, SPLINE, LOG = Bins("bin", ("a",), 4), Spline("curve", ("a",), 5), Log1p("log", ("a",))
AB, AC, BC = (Product("".join(pair), pair) for pair in (("a", "b"), ("a", "c"), ("b", "c")))


def record(features: str, *recipes: Recipe) -> TableRecord:
    read = {name for recipe in recipes for name in recipe.of} | set(features)
    columns = tuple(TableColumn(name, is_feature=name in features) for name in NAMES if name in read)
    return TableRecord(columns, recipes=recipes)


@each_case(
    ("features", "recipes", "held"),
    [
        ("abcd", (), [1000, 500, 200, 100]),
        ("abcd", (BINS, SPLINE, LOG, AB, AC, BC), [1000, 500, 200, 100]),  # no column more
        ("bcd", (SPLINE,), [1000, 500, 200, 100]),
        ("bcd", (BINS, LOG), [1000, 500, 200, 100]),
        ("bcd", (BINS,), [4, 500, 200, 100]),  # a score shows no more than the bin
        ("bcd", (BINS, Bins("other", ("a",), 3)), [12, 500, 200, 100]),
        ("bcd", (AB,), [1000, 500, 200, 100]),  # b is known as itself, so the product has one more unknown
        ("cd", (AB,), [500, 200, 100]),  # one number of two columns, no more than the poorer one
        ("d", (AB, AC), [200, 500, 100]),
        ("d", (AB, AC, BC), [1000, 500, 200, 100]),
        ("cd", (AB, BINS), [4, 500, 200, 100]),
    ],
)
def test_rows_hold_no_more_than_a_model_sees_of_them(
    features: str, recipes: tuple[Recipe, ...], held: list[int]
) -> None:
    described = record(features, *recipes)
    content = content_of_columns(described.encoded, described, [VALUES])
    assert content.columns == count_unknowns(described) == len(held)
    assert math.isclose(content.bits, sum(map(math.log2, held)))
