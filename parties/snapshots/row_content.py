"""The content of a dataset's rows for a party that gets their scores: the number of columns and of their values.

Recipes compute columns of the model from the table's. They do not make it harder to solve for a row's values: a column
of the table and all columns that are computed from it are one unknown. A column that only recipes read may count for
less:

| read by                       it counts as
| a clip, spline or log1p       a column of its own values
| bins and nothing else         a column with as many values as its bins have combinations
| products and nothing else     a column, as long as there are as many such products
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.statistics.vertical.score_leaks import RowContent


def content_of_columns(columns: Sequence[str], record: TableRecord, counts: Sequence[Mapping[str, int]]) -> RowContent:
    """Return the content of rows with these encoded columns.

    Args:
        counts: number of values of each column, in each of some tables.
    """
    held: dict[str, int] = {}
    bounds, of_products = _split_sources(record), []
    for name in columns:  # the columns of a category are one: a row has one level, or no level
        column, distinct = record.behind[name], max(of_one.get(name, 0) for of_one in counts)
        if record.level_of(name) is None:
            if column.is_feature:
                held[name] = distinct
            elif name in bounds:
                held[name] = int(min(distinct, bounds[name]))
            else:
                of_products.append(distinct)
        elif column.kind == "category" and distinct > 1:
            held[column.name] = held.get(column.name, 1) + 1
    poorest = sorted(of_products)[: _count_products(record)]
    return RowContent.of([*held.values(), *poorest])


def count_unknowns(record: TableRecord) -> int:
    """Return how many columns of the table the columns of a model reveal. The number follows from public sizes."""
    bounds = _split_sources(record)
    only_in_products = len(record.sources) - len(bounds)
    return len(record.columns) - only_in_products + min(only_in_products, _count_products(record))


def _split_sources(record: TableRecord) -> dict[str, float]:
    """Return, for each source that a recipe of one column reads, how many values these recipes can distinguish."""
    bounds: dict[str, float] = {}
    for name in record.sources:
        of_it = [recipe for recipe in record.recipes if recipe.of == (name,)]
        if of_it:
            levels = [math.inf if recipe.levels is None else recipe.levels for recipe in of_it]
            bounds[name] = math.prod(levels)
    return bounds


def _count_products(record: TableRecord) -> int:
    """Return how many recipes read a source that no recipe of one column reads."""
    bounds = _split_sources(record)
    others = {name for name in record.sources if name not in bounds}
    return sum(not others.isdisjoint(recipe.of) for recipe in record.recipes)
