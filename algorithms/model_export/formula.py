"""Describe a fitted linear model as a formula, which every format of an export writes down.

table's columns -> values, one for each weight -> standardised, clipped, on a grid -> a score -> what is predicted
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from blindfit.algorithms.columns.recipes import Recipe
from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.label_dp.model import LabelRegressionModel
from blindfit.algorithms.statistics.linear.scaling import LARGEST, Standardiser
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS, SCORE_BITS, VerticalModelPart
from blindfit.algorithms.statistics.walr.model import WALRModel

FARTHEST = 1e300  # largest standardised value of a model that does not clip; a row beyond it has no score
LARGEST_EXACT = 2.0**53  # whole numbers up to here are doubles
PREFIX = "blindfit "  # of each name that an export makes up
SCORE, SCORE_PART, PROBABILITY, VALUE, UNSEEN = "score", "score_part", "probability", "value", "unseen_levels"

Prediction = Literal["probability", "value", "none"]


@dataclass(frozen=True)
class Input:
    """One column of the table to be scored.

    Args:
        name: name in the exported model; it includes the party's name if two parties have a column of this name.
        column: the column as training read it.
        party: the column's party; "" if the model does not name a party.
        fill: the number that stands for a missing value; None: the row has no score.
    """

    name: str
    column: TableColumn
    party: str = ""
    fill: float | None = None


@dataclass(frozen=True)
class Term:
    """One number that has a weight.

    Args:
        sources: columns of the table that the term comes from: one, or the columns that a recipe reads.
        level: the level that the term marks with 1; "" marks a missing value; None: the number itself.
        fill: for a level, the number that stands for a missing value; None: the row has no score.
        weight: the weight, in steps of 2^-30 if the part is on a grid.
        recipe, place: the recipe and the position among its columns, counted from 0.
    """

    sources: tuple[Input, ...]
    level: str | None
    fill: float | None
    mean: float
    std: float
    weight: float
    recipe: Recipe | None = None
    place: int = 0


@dataclass(frozen=True)
class Part:
    """One party's addition to the score.

    Args:
        constant: the weight of the constant 1; None: the part has no constant.
        limit: standardised values are clipped to [-limit, limit].
        refuses: a value beyond the limit is not clipped: its row has no score.
        on_grid: standardised values are rounded to whole steps, and the score is a number of steps of 2^-42.
        longest: a longer row is shortened to this length, in the unit of its values.
        rounding: the part is rounded to multiples of 2^rounding steps.
    """

    party: str
    terms: tuple[Term, ...]
    constant: float | None
    limit: float
    refuses: bool = False
    on_grid: bool = False
    longest: float | None = None
    rounding: int = 0

    @property
    def step_of_constant(self) -> float:
        """Value of the constant next to the values of the columns."""
        return float(round(min(self.limit, 1.0) * 2.0**FEATURE_BITS)) if self.on_grid else 1.0


@dataclass(frozen=True)
class Formula:
    """
    Args:
        inputs: the table's columns that have a weight.
        predicts: result made from the score: probability = 1 / (1 + exp(-odds)) or value = odds, where
            odds = score slope + offset; "none" for one party's part of a score.
        about: the sessions, parties and the privacy statement, for the exported file.
    """

    parts: tuple[Part, ...]
    inputs: tuple[Input, ...]
    predicts: Prediction
    slope: float = 1.0
    offset: float = 0.0
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def score_name(self) -> str:
        """Name of the score; one party's part of it has another name."""
        return SCORE_PART if self.predicts == "none" else SCORE

    @property
    def predictions(self) -> tuple[str, ...]:
        return (self.score_name,) if self.predicts == "none" else (self.score_name, self.predicts)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of all results, with the count of levels that training did not meet."""
        return (*self.predictions, UNSEEN) if self.categories else self.predictions

    @property
    def categories(self) -> tuple[Input, ...]:
        return tuple(each for each in self.inputs if each.column.kind == "category")

    @property
    def numbers(self) -> tuple[Input, ...]:
        return tuple(each for each in self.inputs if each.column.kind != "category")

    def refuse_inexact(self, format_name: str) -> Formula:
        """Return the formula if doubles compute it.

        Raises:
            DataError: whole numbers of the formula can be too large for a double to be exact.
        """
        for part in self.parts:
            steps = part.limit * 2.0**FEATURE_BITS
            largest = steps * math.fsum(abs(w) for w in (*(term.weight for term in part.terms), part.constant or 0.0))
            squares = (len(part.terms) + 1) * steps * steps
            too_large = (part.rounding and largest >= LARGEST_EXACT) or (part.longest and squares >= LARGEST_EXACT / 2)
            if part.on_grid and too_large:
                raise DataError(
                    f"{part.party}: its part of the score can be too large for the double precision of {format_name}",
                    hint="export it as python, whose whole numbers have no limit",
                )
        return self


def formula_of(models: Sequence[Any], about: Mapping[str, str] | None = None) -> Formula:
    """Describe one model, or the parts of one vertical model.

    Raises:
        DataError: a model is not linear, or these are not all parts of one model.
    """
    if len(models) > 1 or any(isinstance(model, VerticalModelPart) for model in models):
        return _of_parts(_all_of_one_training(models), about or {})
    (model,) = models
    part, predicts = _plain_part(model)
    return Formula((part,), _inputs_of([part]), predicts, about=about or {})


def _plain_part(model: Any) -> tuple[Part, Prediction]:
    if isinstance(model, WALRModel):
        weights, constant = model.standardised_weights()
        constant_or_none = constant if model.intercept else None
        terms = _terms(model.standardiser, weights.tolist())
        return Part("", terms, constant_or_none, FARTHEST, refuses=True, longest=model.norm_bound), "probability"
    if isinstance(model, DPLogisticModel):
        terms = _terms(model.standardiser, model.weights)
        return Part("", terms, model.intercept, LARGEST), "probability"
    if isinstance(model, LabelRegressionModel) and model.feature_weights is not None:
        weights, constant = model.standardised_weights()
        return Part("", _terms(model.standardiser, weights.tolist()), constant, FARTHEST, refuses=True), "value"
    name = model.regressor if isinstance(model, LabelRegressionModel) else type(model).__name__
    raise DataError(
        f"a {name} cannot be exported: it is not a linear model",
        hint="`predict` of `blindfit.load_model` scores with it",
    )


# --- parts of a vertical model ----------------------------------------------------------------------


def _all_of_one_training(models: Sequence[Any]) -> list[VerticalModelPart]:
    """Return the parts in the order of their parties.

    Raises:
        DataError: these are several whole models, some parts but not all, or parts of several trainings.
    """
    parts = [model for model in models if isinstance(model, VerticalModelPart)]
    if len(parts) != len(models):
        raise DataError("only parts of one model can be merged", hint="export each whole model by itself")
    names, order = Counter(part.party for part in parts), parts[0].data_parties
    if len({(part.data_parties, part.model, part.trained_in) for part in parts}) > 1:
        raise DataError("the parts are not of one training", hint="take the files of one session")
    if twice := [name for name, count in names.items() if count > 1]:
        raise DataError(f"{twice[0]}: its part is given twice", hint="give each party's part once")
    if len(parts) > 1 and (lacking := [name for name in order if name not in names]):
        raise DataError(f"the part of {', '.join(lacking)} is missing", hint="give one part, or the parts of all")
    return sorted(parts, key=lambda part: order.index(part.party))


def _of_parts(models: Sequence[VerticalModelPart], about: Mapping[str, str]) -> Formula:
    shared = Counter(name for model in models for name in model.standardiser.record.names)
    parts = [_grid_part(model, shared) for model in models]
    active, inputs = models[0], _inputs_of(parts)
    if len(models) < len(active.data_parties):
        return Formula(tuple(parts), inputs, "none", about=about)
    if active.model == "linear":
        return Formula(tuple(parts), inputs, "value", active.label_scale, active.label_mean, about)
    return Formula(tuple(parts), inputs, "probability", active.slope, active.offset, about)


def _grid_part(model: VerticalModelPart, shared: Mapping[str, int]) -> Part:
    weights: list[float] = model.integer_weights().astype(float).tolist()
    constant = None if model.intercept is None else weights.pop()
    terms = _terms(model.standardiser, weights, model.party, shared)
    steps = model.feature_bound * 2.0**FEATURE_BITS
    longest = model.row_bound
    if longest is not None and longest >= steps * math.sqrt(len(terms) + 1) + 1:
        longest = None  # no row is as long
    return Part(
        model.party,
        terms,
        constant,
        model.feature_bound,
        on_grid=True,
        longest=longest,
        rounding=model.score_rounding,
    )


# --- columns ----------------------------------------------------------------------------------------


def _terms(
    standardiser: Standardiser, weights: Sequence[float], party: str = "", shared: Mapping[str, int] | None = None
) -> tuple[Term, ...]:
    record, counts = standardiser.record, shared or {}
    inputs = {column.name: _input_of(column, record, party, counts) for column in record.columns}
    kept = zip(standardiser.kept_columns, standardiser.mean, standardiser.std, weights, strict=True)
    found = []
    for name, mean, std, weight in kept:
        if recipe := record.recipe_of.get(name):
            sources, place = tuple(inputs[each] for each in recipe.of), recipe.made.index(name)
            found.append(Term(sources, None, None, mean, std, weight, recipe, place))
        else:
            column = record.behind[name]
            fill = _fill_of(column, name, record)
            found.append(Term((inputs[column.name],), record.level_of(name), fill, mean, std, weight))
    return tuple(found)


def _input_of(column: TableColumn, record: TableRecord, party: str, counts: Mapping[str, int]) -> Input:
    name = f"{party}.{column.name}" if counts.get(column.name, 0) > 1 else column.name
    return Input(name, column, party, None if column.missing == "refuse" else record.fill.get(column.name))


def _fill_of(column: TableColumn, name: str, record: TableRecord) -> float | None:
    if column.kind != "category" or column.missing == "refuse":
        return None
    return record.fill[name] if column.missing == "mean" else 0.0


def _inputs_of(parts: Sequence[Part]) -> tuple[Input, ...]:
    """Return all columns of the table, each once; raise DataError, which names a column that cannot be exported."""
    inputs = tuple(dict.fromkeys(source for part in parts for term in part.terms for source in term.sources))
    names = Counter(each.name for each in inputs)
    names.update((SCORE, SCORE_PART, PROBABILITY, VALUE, UNSEEN))
    for each in inputs:
        if names[each.name] > 1 or each.name.startswith(PREFIX):
            reason = "another column or an output of the exported model has this name"
        elif not each.name or any("\0" in text for text in (each.name, *each.column.known)):
            reason = "an empty name or a NUL character cannot be written in every format"
        elif not all(_is_unicode(text) for text in (each.name, *each.column.known)):
            reason = "its name or a level is not valid Unicode"
        else:
            continue
        raise DataError(
            f"column {each.name!a} cannot be exported: {reason}", hint="rename it in the table, and train again"
        )
    return inputs


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


SCORE_UNIT = 2.0**-SCORE_BITS
