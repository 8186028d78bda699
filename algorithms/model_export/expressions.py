"""Write a formula as expressions of doubles, from which SQL, PMML and ONNX are written.

A missing value stays missing in every result that is computed from it: NULL in SQL, NaN in ONNX.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from blindfit.algorithms.columns.recipes import LARGEST, Bins, Clip, Log1p, Product, Recipe, Spline, places_of
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.model_export.formula import SCORE_UNIT, UNSEEN, Formula, Input, Part, Term
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS

LARGEST_NUMBER = sys.float_info.max
TO_WHOLE = 1.5 * 2.0**52  # added to a double and subtracted again it leaves the nearest whole number, ties to even
FIRST_DAY, LAST_DAY = -719_162.0, 2_932_897.0  # of the years 1 to 9999, since 1970-01-01
TINY, NEARLY_ZERO = 1e-60, 2.0**-80
MUCH, NEARLY_NOTHING = 1e150, 1e-100
LARGEST_ODDS = 700.0  # exp of more may be no double

Function = Literal[
    "+", "-", "*", "/", "floor", "sqrt", "exp", "ln", "<", "<=", "=", "and", "or", "not", "if", "is missing"
]


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Name:
    """A column of the table, or an expression that was named before."""

    name: str


@dataclass(frozen=True)
class IsText:
    """The test whether a column has this text."""

    name: str
    text: str


@dataclass(frozen=True)
class Apply:
    """A function of expressions; "if" without a third argument is missing where its condition does not hold."""

    function: Function
    arguments: tuple[Expression, ...]


Expression = Number | Name | IsText | Apply
Layer = dict[str, Expression]


@dataclass(frozen=True)
class Program:
    """The computation of a model's outputs.

    Args:
        columns: named expressions that make numbers of the table's columns, in layers: each layer uses earlier ones.
        rows: for each part, the numbers that its weights multiply, before they are standardised.
        layers: named expressions that compute the score from these numbers.
        outputs: name -> a result of the exported model.
    """

    columns: tuple[Layer, ...]
    rows: tuple[tuple[Expression, ...], ...]
    layers: tuple[Layer, ...]
    outputs: Layer

    @property
    def all_layers(self) -> tuple[Layer, ...]:
        return (*self.columns, *self.layers)


def call(function: Function, *arguments: Expression | float) -> Expression:
    return Apply(function, tuple(a if not isinstance(a, float) else Number(a) for a in arguments))


def add_all(terms: Iterable[Expression]) -> Expression:
    """Return the sum as a tree of few levels: SQLite allows 1,000 levels."""
    level = list(terms) or [Number(0.0)]
    while len(level) > 1:
        pairs = [level[place : place + 2] for place in range(0, len(level), 2)]
        level = [call("+", *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


def clip(value: Expression, limit: float) -> Expression:
    """Return the value between -limit and limit."""
    return call("if", call("<", limit, value), limit, call("if", call("<", value, -limit), -limit, value))


def keep_within(value: Expression, low: float, high: float) -> Expression:
    """Return the value; it is missing outside of low to high."""
    return call("if", call("and", call("<=", low, value), call("<=", value, high)), value)


def nearest_whole(value: Expression) -> Expression:
    return call("-", call("+", value, TO_WHOLE), TO_WHOLE)


# --- a row's values ---------------------------------------------------------------------------------


def number_of(source: Input) -> Expression:
    """Return the number of a column, missing where the model refuses its value."""
    given = Name(source.name)
    found: Expression
    if source.column.kind == "boolean":
        found = call("if", call("or", call("=", given, 0.0), call("=", given, 1.0)), given)
    elif source.column.kind == "date":
        found = keep_within(given, FIRST_DAY, LAST_DAY)
    else:
        found = keep_within(given, -LARGEST_NUMBER, LARGEST_NUMBER)
    return found if source.fill is None else call("if", call("is missing", given), source.fill, found)


def value_of(term: Term, number: Expression, *, marks_refused: bool = False) -> Expression:
    """Return the number that the weight of a term multiplies.

    Args:
        number: number of the column that the term comes from, if that column is a number.
        marks_refused: True if an empty text stands for a refused level.
    """
    (source,) = (each.name for each in term.sources)
    is_missing = call("is missing", Name(source))
    if term.level is None:
        return number
    if term.sources[0].column.kind != "category":
        return call("if", is_missing, 1.0, 0.0)
    found: Expression = Number(0.0) if term.level == "" else call("if", IsText(source, term.level), 1.0, 0.0)
    if marks_refused:
        found = call("if", call("not", IsText(source, "")), found)
    if term.level == "":
        return call("if", is_missing, 1.0, found)
    if term.fill is not None:
        return call("if", is_missing, term.fill, found)
    return call("if", call("not", is_missing), found)


def count_new_levels(categories: Iterable[Input]) -> Expression:
    """Return how many of a row's categories have a level that training did not meet."""
    return add_all(_is_new(each) for each in categories)


def _is_new(source: Input) -> Expression:
    known: list[Expression] = [IsText(source.name, level) for level in sorted(source.column.known)]
    is_known = reduce(lambda one, other: call("or", one, other), known, call("is missing", Name(source.name)))
    return call("if", is_known, 0.0, 1.0)


# --- recipes ----------------------------------------------------------------------------------------


def derive(recipe: Recipe, place: int, values: Sequence[Expression], shared: Layer, name: str) -> Expression:
    """Return one column of a recipe; put expressions that several of its columns need into `shared`.

    Raises:
        DataError: no format has this kind of recipe.
    """
    x = values[0]
    if isinstance(recipe, Log1p):
        more = call("+", 1.0, x)  # where 1 + x is rounded, x / (more - 1) corrects its logarithm
        found = call("*", call("ln", more), call("/", x, call("-", more, 1.0)))
        return call("if", call("<", -1.0, x), call("if", call("=", more, 1.0), x, found))
    if isinstance(recipe, Clip):
        low, high = (-LARGEST if recipe.low is None else recipe.low), (LARGEST if recipe.high is None else recipe.high)
        return call("if", call("<", x, low), low, call("if", call("<", high, x), high, x))
    if isinstance(recipe, Product):
        return _product(*values)
    if isinstance(recipe, Bins) and recipe.edges is not None:
        is_above = call("<", recipe.edges[place], x)
        is_last = place + 1 == len(recipe.edges)
        is_in = is_above if is_last else call("and", is_above, call("<=", x, recipe.edges[place + 1]))
        return call("if", call("not", call("is missing", x)), call("if", is_in, 1.0, 0.0))
    if isinstance(recipe, Spline) and recipe.knots is not None:
        return _spline(recipe.knots, place, x, shared, name)
    raise DataError(f"column {recipe.name}: a recipe by {recipe.by} cannot be exported")


def _product(x: Expression, y: Expression) -> Expression:
    """Return x y between -1e100 and 1e100; PostgreSQL refuses products that are too large or too small for a double."""
    small, large = 1 / MUCH, MUCH
    both_small = call("and", call("<=", absolute(x), 1.0), call("<=", absolute(y), 1.0))
    both_large = call("and", call("<=", 1.0, absolute(x)), call("<=", 1.0, absolute(y)))
    is_zero = call("and", both_small, call("or", call("<", absolute(x), small), call("<", absolute(y), small)))
    is_large = call("and", both_large, call("or", call("<", large, absolute(x)), call("<", large, absolute(y))))
    largest = [call("if", call("<", y, 0.0), -end, end) for end in (LARGEST, -LARGEST)]
    at_end = call("if", call("<", x, 0.0), largest[1], largest[0])
    return call("if", is_zero, 0.0, call("if", is_large, at_end, clip(call("*", x, y), LARGEST)))


def _spline(knots: Sequence[float], place: int, x: Expression, shared: Layer, name: str) -> Expression:
    last = len(knots) - 2
    if len(knots) == 1 or place > last:
        return call("if", call("not", call("is missing", x)), 0.0)
    t, at = Name(f"{name} place"), places_of(knots)
    shared[t.name] = clip(standardise(x, knots[0], knots[-1] - knots[0], LARGEST), LARGEST)
    if place == 0:
        return t
    inside = call("if", call("<", 1.0, t), 1.0, t)
    beyond = call("if", call("<", 1.0, t), call("-", t, 1.0), call("*", 0.0, t))

    def cubic(knot: int) -> Expression:
        above = call("-", inside, at[knot])
        cubed = call("/", call("*", call("*", above, above), above), 1.0 - at[knot])
        return call("if", call("<", inside, at[knot]), 0.0, cubed)

    bent = call("*", call("*", 3.0, beyond), at[last] - at[place - 1])
    return clip(call("+", call("-", cubic(place - 1), cubic(last)), bent), LARGEST)


# --- the score --------------------------------------------------------------------------------------


def program_of(formula: Formula, prefix: str, *, marks_refused: bool = False) -> Program:
    """Return the whole computation.

    Args:
        prefix: start of the names of expressions; no column of the table starts with it.
        marks_refused: True if an empty text stands for a refused level.
    """
    numbers = {source: f"{prefix}number {place}" for place, source in enumerate(formula.numbers, 1)}
    columns: list[Layer] = [{name: number_of(source) for source, name in numbers.items()}, {}, {}]
    rows: list[list[Expression]] = [[] for _ in formula.parts]
    for place, (part, row) in enumerate(zip(formula.parts, rows, strict=True), 1):
        for each, term in enumerate(part.terms, 1):
            of_row = [Name(numbers.get(source, "")) for source in term.sources]
            if term.recipe is None:
                value = value_of(term, of_row[0], marks_refused=marks_refused)
            else:
                value = derive(term.recipe, term.place, of_row, columns[1], f"{prefix}{place} {term.recipe.name}")
            if not isinstance(value, Name):
                name = f"{prefix}{place}.{each} value"
                columns[2][name], value = value, Name(name)
            row.append(value)
    layers: list[Layer] = [{}, {}, {}, {}, {}]
    score = add_all(
        _part(part, f"{prefix}{place}", row, layers)
        for place, (part, row) in enumerate(zip(formula.parts, rows, strict=True), 1)
    )
    if formula.parts[0].on_grid:
        score = call("*", score, SCORE_UNIT)
    layers.append({f"{prefix}score total": score})
    outputs: Layer = {formula.score_name: Name(f"{prefix}score total")}
    if formula.predicts != "none":
        odds = Name(f"{prefix}odds")
        layers.append({odds.name: _odds(outputs[formula.score_name], formula)})
        outputs[formula.predicts] = sigmoid(odds) if formula.predicts == "probability" else odds
    if formula.categories:
        outputs[UNSEEN] = count_new_levels(formula.categories)
    return Program(_without_empty(columns), tuple(map(tuple, rows)), _without_empty(layers), outputs)


def _without_empty(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    return tuple(layer for layer in layers if layer)


def _part(part: Part, prefix: str, values: Sequence[Expression], layers: list[Layer]) -> Expression:
    row: list[tuple[Expression, float]] = []
    for place, (value, term) in enumerate(zip(values, part.terms, strict=True), 1):
        name = f"{prefix}.{place}"
        layers[0][f"{name} scaled"] = standardise(value, term.mean, term.std, part.limit)
        layers[1][name] = _step(Name(f"{name} scaled"), part)
        row.append((Name(name), term.weight))
    if part.constant is not None:
        row.append((Number(part.step_of_constant), part.constant))
    if part.longest is not None:
        row = _shorten(row, part, prefix, layers[2:])
    total = add_all(call("*", step, weight) for step, weight in row)
    if not part.rounding:
        return total
    unit = 2.0**part.rounding
    return call("*", call("floor", call("/", call("+", total, unit / 2), unit)), unit)


def standardise(value: Expression, mean: float, std: float, limit: float) -> Expression:
    """Return (value - mean) / std, or a number beyond the limit where that is so large that it could overflow."""
    scaled = call("/", call("-", value, mean), std)
    reach = 2 * limit * std
    if mean + reach < LARGEST_NUMBER:
        scaled = call("if", call("<", mean + reach, value), 2 * limit, scaled)
    if mean - reach > -LARGEST_NUMBER:
        scaled = call("if", call("<", value, mean - reach), -2 * limit, scaled)
    if abs(mean) < TINY or std > 1 / TINY:  # PostgreSQL refuses a quotient that is too small for a double
        near = std * NEARLY_ZERO
        is_near = call("and", call("<=", mean - near, value), call("<=", value, mean + near))
        scaled = call("if", is_near, 0.0, scaled)
    return scaled


def _step(scaled: Expression, part: Part) -> Expression:
    if part.refuses:
        return keep_within(scaled, -part.limit, part.limit)
    clipped = clip(scaled, part.limit)
    return nearest_whole(call("*", clipped, 2.0**FEATURE_BITS)) if part.on_grid else clipped


def _shorten(
    row: list[tuple[Expression, float]], part: Part, prefix: str, layers: list[Layer]
) -> list[tuple[Expression, float]]:
    """Shorten a row that is longer than `longest`."""
    shorten = _shorten_on_grid if part.on_grid else _shorten_reals
    steps = shorten([step for step, _ in row], float(part.longest or 0.0), prefix, layers)
    return [(step, weight) for step, (_, weight) in zip(steps, row, strict=True)]


def _shorten_on_grid(
    steps: Sequence[Expression], longest: float, prefix: str, layers: list[Layer]
) -> Iterator[Expression]:
    """Yield whole steps, which are cut toward zero."""
    square, length = Name(f"{prefix} square"), Name(f"{prefix} length")
    layers[0][square.name] = add_all(call("*", step, step) for step in steps)
    layers[1][length.name] = call("+", call("floor", call("sqrt", square)), 1.0)
    for step in steps:
        cut = call("floor", call("/", call("*", absolute(step), longest), length))
        signed = call("if", call("<", step, 0.0), call("-", 0.0, cut), cut)
        yield call("if", call("<=", square, longest * longest), step, signed)


def _shorten_reals(
    steps: Sequence[Expression], longest: float, prefix: str, layers: list[Layer]
) -> Iterator[Expression]:
    """Yield numbers. They are divided by their size first, as squares of large numbers overflow a double."""
    size, length = Name(f"{prefix} size"), Name(f"{prefix} length")
    layers[0][size.name] = add_all([Number(1.0), *map(absolute, steps)])
    is_small = [call("<=", absolute(step), call("*", size, NEARLY_NOTHING)) for step in steps]
    of_size = [call("if", small, 0.0, call("/", step, size)) for small, step in zip(is_small, steps, strict=True)]
    layers[1] |= {f"{prefix}.{place} of size": each for place, each in enumerate(of_size, 1)}
    names = [Name(f"{prefix}.{place} of size") for place in range(1, len(steps) + 1)]
    layers[2][length.name] = call("sqrt", add_all(call("*", name, name) for name in names))
    for step, name in zip(steps, names, strict=True):
        is_short = call("<=", length, call("/", longest, size))
        yield call("if", is_short, step, call("*", name, call("/", longest, length)))


def absolute(value: Expression) -> Expression:
    return call("if", call("<", value, 0.0), call("-", 0.0, value), value)


def _odds(score: Expression, formula: Formula) -> Expression:
    sloped = score if formula.slope == 1.0 else call("*", score, formula.slope)
    return sloped if formula.offset == 0.0 else call("+", sloped, formula.offset)


def sigmoid(odds: Expression) -> Expression:
    """Return 1 / (1 + exp(-odds)), without loss of digits for small odds."""
    low = call("exp", call("if", call("<", odds, -LARGEST_ODDS), -LARGEST_ODDS, odds))
    high = call("exp", call("if", call("<", LARGEST_ODDS, odds), -LARGEST_ODDS, call("-", 0.0, odds)))
    return call("if", call("<=", 0.0, odds), call("/", 1.0, call("+", 1.0, high)), call("/", low, call("+", 1.0, low)))
