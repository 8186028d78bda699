"""Encoded columns of a table -> the model's columns, by the recipes of its record; and the numbers of these recipes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.columns.recipes import Recipe
from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import DataError

Floats = NDArray[np.float64]


def derive_columns(encoded: Mapping[str, Floats], recipes: Iterable[Recipe]) -> dict[str, Floats]:
    """Return the encoded columns, in which no value is missing, and those of the recipes.

    Raises:
        BadInput: a recipe cannot take a number.
    """
    found = dict(encoded)
    for recipe in recipes:
        found.update(zip(recipe.made, recipe.apply([encoded[name] for name in recipe.of]), strict=True))
    return found


def derive_matrix(encoded: Floats, names: Sequence[str], record: TableRecord, wanted: Sequence[str]) -> Floats:
    """Return the columns called `wanted`, shape (n, len(wanted)), C-contiguous.

    Args:
        encoded: (n, k) numbers, none missing.
        names: names of its columns.

    Raises:
        BadInput: as `derive_columns`.
    """
    if tuple(wanted) == tuple(names):
        return encoded
    needed = {record.recipe_of[name].name: record.recipe_of[name] for name in wanted if name in record.recipe_of}
    found = derive_columns(dict(zip(names, encoded.T, strict=True)), needed.values())
    matrix = np.empty((len(encoded), len(wanted)))
    for place, name in enumerate(wanted):
        matrix[:, place] = found[name]
    return matrix


def fit_recipes(record: TableRecord, encoded: Mapping[str, Floats]) -> TableRecord:
    """Return the record with the numbers of its recipes, from training rows, and the means of their sources.

    Args:
        encoded: the training rows' values, at least of the columns that recipes read; NaN where a row has no value. A
            mean that stands for it may come from other rows, so it must not decide a number.

    Raises:
        DataError: the table has no rows.
    """
    if record.is_fitted:
        return record
    if not all(len(encoded[name]) for recipe in record.recipes for name in recipe.of):
        raise DataError("the table has no rows")
    known = {name: _drop_gaps(encoded[name]) for recipe in record.recipes for name in recipe.of}
    recipes = tuple(recipe.fit(known[recipe.of[0]]) for recipe in record.recipes)
    means = {name: float(known[name].mean()) for name in record.sources}
    return replace(record, recipes=recipes, fill={**means, **record.fill})


def fill_gaps(encoded: Floats, names: Sequence[str], record: TableRecord) -> Floats:
    """Return the columns with the record's means where a value is missing.

    Args:
        encoded: (n, k) numbers, NaN where a value is missing.
        names: names of its columns.
    """
    means = np.array([record.fill.get(name, np.nan) for name in names])
    return np.where(np.isnan(encoded), means, encoded)


def _drop_gaps(values: Floats) -> Floats:
    """Return the values without gaps; a zero where no row has a value."""
    found = values[~np.isnan(values)]
    return found if len(found) else np.zeros(1)


def with_given_numbers(record: TableRecord) -> TableRecord:
    """Return the record without a look at rows, for models that protect whole rows.

    A missing value of a source becomes a number in the middle of the numbers that a recipe was given, or 0.

    Raises:
        DataError: a recipe has no numbers.
    """
    if unfitted := [recipe for recipe in record.recipes if not recipe.has_numbers]:
        raise DataError(f"the recipe {unfitted[0].name} has no numbers")
    means = dict.fromkeys(record.sources, 0.0)
    for recipe in record.recipes:
        means |= {name: recipe.middle for name in recipe.of if name in means and recipe.middle is not None}
    return replace(record, fill={**means, **record.fill})
