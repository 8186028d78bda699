"""The tables of `datasets.NAME.derive`: columns that a party computes from its own columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from blindfit.algorithms.columns.recipes import (
    LARGEST,
    MOST_BINS,
    MOST_KNOTS,
    Bins,
    Clip,
    Log1p,
    Product,
    Recipe,
    Spline,
    are_apart,
)
from blindfit.parties.tables import Settings

ColumnName = Annotated[str, Field(min_length=1)]


def _is_computed_with(number: float) -> float:
    if abs(number) > LARGEST:
        raise ValueError(f"{number:g} is beyond {LARGEST:g}, and too large to compute with")
    return number


Number = Annotated[float, AfterValidator(_is_computed_with)]
Quantile = Annotated[float, Field(ge=0, le=1)]
NUMBERS = ("low", "high", "quantiles", "bins", "edges", "knots")
TAKES = {
    "log1p": (),
    "clip": ("low", "high", "quantiles"),
    "bins": ("bins", "edges"),
    "spline": ("knots",),
    "product": (),
}
GIVEN = {
    "clip": ("low and high", "low = 0, high = 100"),
    "bins": ("edges", "edges = [30, 50]"),
    "spline": ("knots", "knots = [20, 40, 60]"),
}
"""Names of a recipe's numbers, and an example from a party file, by recipe."""


class RecipeSettings(Settings):
    """Settings of one or more columns that a model learns from and the table does not have."""

    by: Literal["log1p", "clip", "bins", "spline", "product"]
    """Recipe. "log1p" computes log(1 + x), for amounts. "clip" limits x to a range. "bins" makes a column of zeros and
    ones for each bin but the first. "spline" makes the columns of a natural cubic spline. "product" multiplies two
    columns."""
    of: ColumnName | tuple[ColumnName, ColumnName]
    """Column of the table that the recipe reads, a number or a date; two columns for "product". The column is a feature
    itself only if `features` has it."""
    low: Number | None = None
    """Lowest value of a "clip"."""
    high: Number | None = None
    """Highest value of a "clip"."""
    quantiles: tuple[Quantile, Quantile] | None = None
    """Two quantiles of the training rows that become the range of a "clip", such as [0.01, 0.99]."""
    bins: int | None = Field(None, ge=2, le=MOST_BINS)
    """Number of "bins" with about equally many training rows. More bins follow the data closer and add more columns."""
    edges: tuple[Number, ...] | None = Field(None, min_length=1, max_length=MOST_BINS - 1)
    """Edges between "bins", in ascending order, known without the rows. A value that is equal to an edge is in the
    lower bin."""
    knots: Annotated[int, Field(ge=3, le=MOST_KNOTS)] | tuple[Number, ...] | None = None
    """Number of knots of a "spline", from 3 to 20, which are then at quantiles of the training rows; or a list of knots
    that are known without the rows. More knots follow the data closer; the columns are one fewer than the knots."""

    @model_validator(mode="after")
    def _has_what_its_recipe_takes(self) -> RecipeSettings:
        given = [name for name in NUMBERS if getattr(self, name) is not None]
        if useless := [name for name in given if name not in TAKES[self.by]]:
            raise ValueError(f'{useless[0]} does nothing with by = "{self.by}", remove it')
        if (self.by == "product") is not isinstance(self.of, tuple):
            wanted = 'two columns, such as ["age", "income"]' if self.by == "product" else 'one column, such as "age"'
            raise ValueError(f'of: by = "{self.by}" takes {wanted}')
        if TAKES[self.by] and not given:
            raise ValueError(f'by = "{self.by}" needs {" or ".join(TAKES[self.by])}')
        if ("quantiles" in given or "edges" in given) and len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other, remove one of them")
        self._check_order()
        return self

    def _check_order(self) -> None:
        for name, (low, high) in (("low and high", (self.low, self.high)), ("quantiles", self.quantiles or (0, 1))):
            if low is not None and high is not None and low >= high:
                raise ValueError(f"{name}: {low:g} is not below {high:g}")
        if self.edges is not None and any(a >= b for a, b in pairwise(self.edges)):
            raise ValueError("edges must be in ascending order")
        if isinstance(self.knots, tuple):
            if not 3 <= len(self.knots) <= MOST_KNOTS:
                raise ValueError(f"knots must be a number from 3 to {MOST_KNOTS}, or a list of as many numbers")
            if not are_apart(self.knots):
                raise ValueError("knots must be in ascending order, and not too near to each other")

    @property
    def sources(self) -> tuple[str, ...]:
        """Columns of the table that the recipe reads."""
        return self.of if isinstance(self.of, tuple) else (self.of,)

    @property
    def n_knots(self) -> int:
        """Number of knots of a spline."""
        return len(self.knots) if isinstance(self.knots, tuple) else self.knots or 0

    def recipe(self, name: str) -> Recipe:
        """Return the recipe; training computes the numbers that the settings leave open."""
        of = self.sources
        if self.by == "clip":
            return Clip(name, of, self.low, self.high, self.quantiles)
        if self.by == "bins":
            return Bins(name, of, self.bins or len(self.edges or ()) + 1, self.edges)
        if self.by == "spline":
            knots = self.knots if isinstance(self.knots, tuple) else None
            return Spline(name, of, self.n_knots, knots)
        return (Log1p if self.by == "log1p" else Product)(name, of)


def recipes_of(derive: Mapping[str, RecipeSettings], present: Iterable[str]) -> tuple[Recipe, ...]:
    """Return the recipes whose columns are all present."""
    there = set(present)
    return tuple(settings.recipe(name) for name, settings in derive.items() if there.issuperset(settings.sources))


def sources_of(derive: Mapping[str, RecipeSettings]) -> tuple[str, ...]:
    """Return the table's columns that recipes read, each once."""
    return tuple(dict.fromkeys(source for settings in derive.values() for source in settings.sources))


def mistakes_of(
    derive: Mapping[str, RecipeSettings], used: Iterable[str], categories: Iterable[str], keys: Iterable[str]
) -> Iterator[str]:
    """Yield the mistakes in the recipes of one dataset.

    Args:
        used: columns of the table that the party's file names.
        keys: columns that cannot be features: the id, the label and others.
    """
    taken, texts, not_features = set(used), set(categories), set(keys)
    for name, settings in derive.items():
        if name in taken:
            yield f"derive.{name}: the table has a column of this name, choose another one"
        for source in settings.sources:
            if source in texts:
                yield f"derive.{name}.of: {source} is one of categories, and a recipe reads a number or a date"
            elif source in not_features:
                yield f"derive.{name}.of: {source} is the id, the label or another column that cannot be a feature"
            elif source in derive:
                yield f"derive.{name}.of: {source} is derived itself, name a column of the table"


def read_derive(stored: Mapping[str, Any]) -> dict[str, RecipeSettings]:
    """Return the recipe settings that a snapshot keeps."""
    return {name: RecipeSettings.model_validate(settings) for name, settings in stored.items()}
