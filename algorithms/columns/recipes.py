"""Recipes: columns of a model that are computed from a party's own columns.

    by        columns of the model                          numbers in the record
    log1p     NAME: log(1 + x)                              none
    clip      NAME: x, at least `low` and at most `high`    low, high (one may be null)
    bins      NAME=2, NAME=3, ...: 1 in a row whose x is    edges e_1 <= ... <= e_m. Bin 1 has x <= e_1, bin b has
              in that bin, else 0. Bin 1 has no column.     e_(b-1) < x <= e_b, bin m + 1 has e_m < x.
    spline    NAME=1, NAME=2, ...: see `Spline`             knots k_1 < ... < k_m, and the number of columns
    product   NAME: x y                                     none

x and y are a column's numbers after missing values are replaced, dates as days. Each result is cut to -1e100 to 1e100.
The number of columns follows from the party's file. Two quantiles of the rows may be equal: the bin between them is
empty, and equal knots count once. Some columns are then 0 in every row, like other columns that do not vary.

Every step is one operation on float64 (or `math.log1p`), in the order in which it is written. All scorers keep to this
order, so they agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError

Floats = NDArray[np.float64]
LARGEST = 1e100  # of a result: products of such numbers and sums of them are finite
MOST_BINS, MOST_KNOTS = 100, 20
OUTER = 0.05  # the first knot is at this quantile, the last one as far from the other end
NOT_ABOVE_MINUS_1 = "the number is not above -1, and log1p takes the logarithm of 1 + number"


class Damaged(Exception):
    """A field of a stored recipe is wrong."""


class BadInput(DataError):
    """A recipe cannot take a number.

    Attributes:
        problem: the fault, without the number.
        row: position of the row, counted from 0.
        column: column of the table.
    """

    def __init__(self, problem: str, row: int, column: str) -> None:
        super().__init__(f"row {row}, column {column}: {problem}")
        self.problem, self.row, self.column = problem, row, column


@dataclass(frozen=True)
class Recipe:
    """One rule that makes columns of the model from columns of the table.

    Args:
        name: name of the model's column, or the first part of the names if there are several.
        of: columns of the table that the recipe reads.
    """

    name: str
    of: tuple[str, ...]

    by: ClassVar[str]
    reads: ClassVar[int] = 1

    @property
    def made(self) -> tuple[str, ...]:
        """Columns of the model that the recipe makes."""
        return (self.name,)

    @property
    def has_numbers(self) -> bool:
        """True if the recipe's numbers are known: given in the party's file, or fitted."""
        return True

    @property
    def levels(self) -> int | None:
        """Largest number of different results; None if there can be as many as the column has values."""
        return None

    @property
    def middle(self) -> float | None:
        """A number in the middle of the numbers that the recipe was given; None if it was given no number."""
        return None

    def fit(self, values: Floats) -> Recipe:
        """Return the recipe with its numbers, computed from these values of its column (at least one)."""
        del values
        return self

    def check(self, values: Sequence[Floats]) -> None:
        """Check the values of a training or of new rows; NaN, a missing value, passes.

        Raises:
            BadInput: the result of a number is undefined, or too large to compute with.
        """

    def apply(self, values: Sequence[Floats]) -> list[Floats]:
        """Return the model's columns, computed from the values of the columns that the recipe reads, without NaN.

        Raises:
            BadInput: as `check`.
        """
        raise NotImplementedError

    def numbers(self) -> dict[str, Any]:
        """Return the numbers that the record stores with the names."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as JSON; raise DataError if it has no numbers yet."""
        if not self.has_numbers:
            raise DataError(f"the recipe {self.name} has no numbers yet: a training fits them")
        return {"name": self.name, "by": self.by, "of": list(self.of), **self.numbers()}

    @classmethod
    def read(cls, name: str, of: tuple[str, ...], stored: Mapping[str, Any]) -> Recipe:
        """Restore a recipe; raise Damaged, which names the wrong number and the fault."""
        del stored
        return cls(name, of)


@dataclass(frozen=True)
class Log1p(Recipe):
    """log(1 + x), for amounts and counts."""

    by = "log1p"

    def check(self, values: Sequence[Floats]) -> None:
        low = np.flatnonzero(values[0] <= -1)
        if low.size:
            raise BadInput(NOT_ABOVE_MINUS_1, int(low[0]), self.of[0])

    def apply(self, values: Sequence[Floats]) -> list[Floats]:
        self.check(values)
        # NumPy's own differs from the C library's in the last bit, and a scorer without NumPy has the C library's.
        return [np.fromiter(map(math.log1p, values[0].tolist()), np.float64, len(values[0]))]


@dataclass(frozen=True)
class Clip(Recipe):
    """x, but at least `low` and at most `high`.

    Args:
        quantiles: quantiles of the training rows' values that become `low` and `high`; None: these two are given.
    """

    low: float | None = None
    high: float | None = None
    quantiles: tuple[float, float] | None = None

    by = "clip"

    @property
    def has_numbers(self) -> bool:
        return self.quantiles is None

    @property
    def middle(self) -> float | None:
        ends = [end for end in (self.low, self.high) if end is not None]
        return sum(end / len(ends) for end in ends) if ends else None

    def fit(self, values: Floats) -> Recipe:
        if self.quantiles is None:
            return self
        low, high = _quantiles(values, self.quantiles)
        return Clip(self.name, self.of, low, high)

    def apply(self, values: Sequence[Floats]) -> list[Floats]:
        low, high = (-LARGEST if self.low is None else self.low), (LARGEST if self.high is None else self.high)
        return [np.minimum(np.maximum(values[0], low), high)]

    def numbers(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}

    @classmethod
    def read(cls, name: str, of: tuple[str, ...], stored: Mapping[str, Any]) -> Recipe:
        low, high = (None if stored.get(end) is None else _number(stored[end], end) for end in ("low", "high"))
        if low is None and high is None:
            raise Damaged("low and high are missing")
        if low is not None and high is not None and low > high:
            raise Damaged("low is above high")
        return cls(name, of, low, high)


@dataclass(frozen=True)
class Bins(Recipe):
    """A column of zeros and ones for each bin but the first.

    Args:
        n: number of bins.
        edges: n - 1 numbers in ascending order; None: quantiles of the training rows.
    """

    n: int
    edges: tuple[float, ...] | None = None

    by = "bins"

    @property
    def made(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={b}" for b in range(2, self.n + 1))

    @property
    def has_numbers(self) -> bool:
        return self.edges is not None

    @property
    def levels(self) -> int | None:
        return self.n

    @property
    def middle(self) -> float | None:
        return None if self.edges is None else self.edges[len(self.edges) // 2]

    def fit(self, values: Floats) -> Recipe:
        if self.edges is not None:
            return self
        return replace(self, edges=_quantiles(values, [b / self.n for b in range(1, self.n)]))

    def apply(self, values: Sequence[Floats]) -> list[Floats]:
        below = np.searchsorted(np.array(self.edges), values[0], side="left")  # how many edges are below x
        return [(below == b).astype(np.float64) for b in range(1, self.n)]

    def numbers(self) -> dict[str, Any]:
        return {"edges": list(self.edges or ())}

    @classmethod
    def read(cls, name: str, of: tuple[str, ...], stored: Mapping[str, Any]) -> Recipe:
        edges = _numbers(stored.get("edges"), "edges", MOST_BINS - 1)
        if any(a > b for a, b in pairwise(edges)):
            raise Damaged("edges are not in ascending order")
        return cls(name, of, len(edges) + 1, edges)


@dataclass(frozen=True)
class Spline(Recipe):
    """A basis of the natural cubic splines with these knots, without the constant: linear before and after the knots.

        t = (x - k_1) / (k_m - k_1)       a_j = (k_j - k_1) / (k_m - k_1)       c = min(t, 1)       u = max(t - 1, 0)
        p_j = max(c - a_j, 0)^3 / (1 - a_j)
        NAME=1 = t                        NAME=j+1 = (p_j - p_(m-1)) + 3 u (a_(m-1) - a_j)      for j = 1 to m - 2

    Columns after NAME=m-1 are 0, and all are 0 where there is one knot.

    Source: Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, equations 5.4 and 5.5, where beyond
    the last knot the cubic terms cancel; u writes what they leave.

    Args:
        n: number of knots that the party's file asks for.
        knots: up to n numbers in ascending order; None: quantiles of the training rows.
    """

    n: int
    knots: tuple[float, ...] | None = None

    by = "spline"

    @property
    def made(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={j}" for j in range(1, self.n))

    @property
    def has_numbers(self) -> bool:
        return self.knots is not None

    @property
    def middle(self) -> float | None:
        return None if self.knots is None else self.knots[len(self.knots) // 2]

    def fit(self, values: Floats) -> Recipe:
        if self.knots is not None:
            return self
        places = [OUTER + (1 - 2 * OUTER) * j / (self.n - 1) for j in range(self.n)]
        return replace(self, knots=_apart(_quantiles(values, places)))

    def apply(self, values: Sequence[Floats]) -> list[Floats]:
        x, knots = values[0], self.knots or (0.0,)
        made = [np.zeros(len(x)) for _ in self.made]
        if len(knots) == 1:
            return made
        a = places_of(knots)
        with np.errstate(over="ignore"):
            made[0] = cut((x - knots[0]) / (knots[-1] - knots[0]))
        c, u = np.minimum(made[0], 1.0), np.maximum(made[0] - 1.0, 0.0)

        def p(j: int) -> Floats:
            above = np.maximum(c - a[j], 0.0)
            cubed: Floats = above * above * above / (1.0 - a[j])
            return cubed

        last = len(knots) - 2
        for j in range(last):
            made[j + 1] = cut((p(j) - p(last)) + 3.0 * u * (a[last] - a[j]))
        return made

    def numbers(self) -> dict[str, Any]:
        return {"knots": list(self.knots or ()), "columns": self.n - 1}

    @classmethod
    def read(cls, name: str, of: tuple[str, ...], stored: Mapping[str, Any]) -> Recipe:
        knots, columns = _numbers(stored.get("knots"), "knots", MOST_KNOTS), stored.get("columns")
        if not are_apart(knots):
            raise Damaged("knots are not in ascending order, or too near to each other")
        if type(columns) is not int or not max(1, len(knots) - 1) <= columns < MOST_KNOTS:
            raise Damaged("columns is not one fewer than the knots that were asked for")
        return cls(name, of, columns + 1, knots)


@dataclass(frozen=True)
class Product(Recipe):
    """The product x y: the weight of one column may depend on another. A scorer cuts a product that is too large."""

    by = "product"
    reads = 2

    def check(self, values: Sequence[Floats]) -> None:
        with np.errstate(over="ignore"):
            beyond = np.flatnonzero(np.abs(values[0] * values[1]) > LARGEST)
        if beyond.size:
            problem = f"its product with {self.of[1]} is beyond {LARGEST:g}, and too large to compute with"
            raise BadInput(problem, int(beyond[0]), self.of[0])

    def apply(self, values: Sequence[Floats]) -> list[Floats]:
        with np.errstate(over="ignore"):
            return [cut(values[0] * values[1])]


KINDS: dict[str, type[Recipe]] = {kind.by: kind for kind in (Log1p, Clip, Bins, Spline, Product)}


def read_recipe(stored: Any) -> Recipe:
    """Restore a recipe; raise DataError, which names the wrong field."""
    if not isinstance(stored, Mapping) or not isinstance(stored.get("name"), str):
        raise DataError("table.recipes: not a list of tables with a name each")
    name, of = stored["name"], stored.get("of")
    kind = KINDS.get(stored["by"]) if isinstance(stored.get("by"), str) else None
    if kind is None:
        raise DataError(f"table.recipes: {name}: by is not one of {', '.join(KINDS)}")
    if not isinstance(of, list) or len(of) != kind.reads or not all(isinstance(column, str) for column in of):
        raise DataError(f"table.recipes: {name}: of is not a list with the names of {kind.reads} columns")
    try:
        return kind.read(name, tuple(of), stored)
    except Damaged as error:
        raise DataError(f"table.recipes: {name}: {error}") from None


def is_finite(number: object) -> bool:
    """Return whether this is a number of JSON (true and false are not) that float64 can hold."""
    try:
        return type(number) in (int, float) and math.isfinite(number)  # type: ignore[arg-type]
    except OverflowError:
        return False


def cut(numbers: Floats) -> Floats:
    """Return the numbers, each at least -1e100 and at most 1e100."""
    return np.minimum(np.maximum(numbers, -LARGEST), LARGEST)


def _quantiles(values: Floats, places: Sequence[float]) -> tuple[float, ...]:
    """Return quantiles with linear interpolation, in ascending order: rounding could put equal ones out of order."""
    found = np.quantile(cut(values), np.array(places))
    return tuple(np.maximum.accumulate(found).tolist())


def places_of(knots: Sequence[float]) -> list[float]:
    """Return a_j, the place of each of at least two knots between the first, 0, and the last, 1."""
    first, width = knots[0], knots[-1] - knots[0]
    return [(knot - first) / width for knot in knots]


def are_apart(knots: Sequence[float]) -> bool:
    """Return whether knots are in ascending order, also after float64 has rounded their places."""
    if knots[0] >= knots[-1]:
        return len(knots) == 1
    places = places_of(knots)
    return all(a < b for a, b in pairwise(places))


def _apart(knots: Sequence[float]) -> tuple[float, ...]:
    """Return the knots in ascending order, without knots that are too near to their neighbours."""
    if knots[0] == knots[-1]:
        return (knots[0],)
    kept = [knots[0]]
    for knot in knots[1:-1]:
        if are_apart([*kept, knot, knots[-1]]):
            kept.append(knot)
    return (*kept, knots[-1])


def _number(stored: Any, name: str) -> float:
    if not is_finite(stored) or abs(stored) > LARGEST:
        raise Damaged(f"{name} is not a number from -1e100 to 1e100")
    return float(stored)


def _numbers(stored: Any, name: str, most: int) -> tuple[float, ...]:
    if not isinstance(stored, list) or not 1 <= len(stored) <= most:
        raise Damaged(f"{name} is not a list of 1 to {most} numbers")
    return tuple(_number(number, name) for number in stored)
