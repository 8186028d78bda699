"""A logistic model fitted to public rows, as the start of a private fit, or what it shrinks towards.

For a convex fit that runs to its optimum a warm start changes nothing: there pre-training acts as shrinkage towards the
public weights. Noisy gradient descent does not run to its optimum, so there the start counts.

The file (`to_json`, `from_json`) holds names, means, standard deviations and weights; no row of the public data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.digest_format import DigestFormat
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.linear import fields, solvers
from blindfit.algorithms.statistics.linear.logistic import Floats, RealRows, weighted_aggregate
from blindfit.algorithms.statistics.linear.named_columns import Features, in_order, names_in, record_of
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.linear.standardised_logistic import StandardisedLogistic

FORMAT = "blindfit-pretrained-1"
DIGEST = DigestFormat()
"""Format of a model's fields in its identity."""


@dataclass(frozen=True)
class PublicRows:
    """A dataset that its owner's party file declares public.

    Attributes:
        party: name of the owner.
        dataset: name of the dataset in the owner's file.
    """

    party: str
    dataset: str


@dataclass(frozen=True)
class Pretrained(StandardisedLogistic):
    """A logistic model that was fitted to public rows, with the scale of these rows.

    Args:
        public: dataset that a party declares public, to which the model was fitted; None if no party declares it. Two
            models that differ only here are equal.

    Attributes:
        standardiser: scale of the public rows.
        weights: weight of each column, for standardised features.
        intercept: constant, for standardised features.

    Example:
        >>> model = blindfit.pretrain(pd.DataFrame(X, columns=["a", "b", "c"]), y)
        >>> model.predict(X[:5]).shape
        (5,)
        >>> private = blindfit.DPLogisticRegression(epsilon=1.0, init=model)
    """

    public: PublicRows | None = field(default=None, compare=False)

    def raw_weights(self) -> tuple[dict[str, float], float]:
        """Return the weights by column and the intercept, for features as they were read."""
        return self.standardiser.raw_weights(self.weights, self.intercept)

    def weights_for(self, standardiser: Standardiser, *, intercept: bool = True) -> Floats:
        """Return the same model for rows of another standardiser: its kept columns in their order, then the intercept.

        Args:
            standardiser: the other scale, of the same features.
            intercept: False to leave out the intercept.

        Raises:
            DataError: the features are not the same, or a weight overflows.
        """
        self.check_columns(standardiser.columns, standardiser.table)
        raw, constant = self.raw_weights()
        names = standardiser.kept_columns
        weights = [raw[name] * std for name, std in zip(names, standardiser.std, strict=True)]
        constant += sum(raw[name] * mean for name, mean in zip(names, standardiser.mean, strict=True))
        converted = np.array([*weights, constant] if intercept else weights)
        if not np.isfinite(converted).all():
            raise DataError("the pre-trained model's weights overflow in the scale of these rows")
        return converted

    def in_order(self, columns: Sequence[str]) -> Pretrained:
        """Return the same model for the same features in another order.

        Args:
            columns: names of all features, in the new order.

        Raises:
            DataError: the features are not the same.
        """
        self.check_columns(columns)
        scaler = self.standardiser
        by_name = dict(zip(scaler.kept_columns, zip(scaler.mean, scaler.std, self.weights, strict=True), strict=True))
        kept = tuple(j for j, name in enumerate(columns) if name in by_name)
        mean, std, weights = zip(*(by_name[columns[j]] for j in kept), strict=True)
        ordered = Standardiser(tuple(columns), kept, mean, std, scaler.table)
        return replace(self, standardiser=ordered, weights=weights)

    def check_columns(self, columns: Sequence[str], table: TableRecord | None = None) -> None:
        """Check that these are the model's features, in any order.

        Args:
            columns: names of the features.
            table: kinds of columns from which the features were made; None if they are not known.

        Raises:
            DataError: features are missing, are not the model's, or are of another kind.
        """
        missing, foreign = sorted(set(columns) - set(self.columns)), sorted(set(self.columns) - set(columns))
        if missing or foreign:
            found = [f"{text} {', '.join(names)}" for text, names in (("it lacks", missing), ("only it has", foreign))
                    if names]  # fmt: skip
            raise DataError(
                f"the pre-trained model has other features than the data: {'; '.join(found)}",
                hint="fit it to the same columns, under the same names",
            )
        if table is None or self.standardiser.table is None:
            return
        recipes = set(self.standardiser.table.recipes) ^ set(table.recipes)
        if recipes:
            raise DataError(
                f"the pre-trained model does not compute {min(recipe.name for recipe in recipes)} as the data do",
                hint="derive the same columns in both, and give the numbers of the recipes: low and high, edges, knots",
            )
        for name in table.encoded:
            mine, theirs = self.standardiser.table.behind[name].kind, table.behind[name].kind
            if mine != theirs and {mine, theirs} != {"number", "boolean"}:
                raise DataError(
                    f"the pre-trained model reads {name} as a {mine}, and the data have a {theirs}",
                    hint="fit it to the same columns, described in the same way",
                )

    def to_dict(self) -> dict[str, Any]:
        """Return the content of its file, without the declaration of public rows."""
        return {
            "format": FORMAT,
            "standardiser": self.standardiser.to_dict(),
            "weights": dict(zip(self.standardiser.kept_columns, self.weights, strict=True)),
            "intercept": self.intercept,
        }

    def to_json(self) -> str:
        """Return the text of its file, pretrained.json."""
        declared = {"public": asdict(self.public)} if self.public else {}
        return _encode({**self.to_dict(), **declared})

    def identity(self) -> str:
        """Return the text that distinguishes one model from another in a digest."""
        return _encode(DIGEST.fields(self.to_dict()))

    @classmethod
    def from_json(cls, content: str | bytes) -> Pretrained:
        """Return the model of the text of a pretrained.json.

        Args:
            content: the text.

        Raises:
            DataError: the text is not such a model; the message names the first wrong field.
        """
        try:
            stored = json.loads(content)
        except (ValueError, RecursionError):
            raise DataError("not JSON") from None
        return cls.from_dict(stored)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Pretrained:
        """Return the model of the content of a pretrained.json.

        Args:
            stored: the content, as JSON gives it.

        Raises:
            DataError: the content is not such a model; the message names the first wrong field.
        """
        fields.check_format(stored, FORMAT)
        unknown = sorted(set(stored) - {"format", "standardiser", "weights", "intercept", "public"})
        if unknown:
            raise DataError(f"unknown: {', '.join(unknown)}")
        standardiser = Standardiser.from_dict(fields.table(stored, "standardiser"))
        weights = fields.weights(stored, standardiser.kept_columns)
        return cls(standardiser, weights, fields.number(stored, "intercept"), public=_read_declaration(stored))


def _read_declaration(stored: Mapping[str, Any]) -> PublicRows | None:
    if "public" not in stored:
        return None
    declared = fields.table(stored, "public")
    return PublicRows(fields.text(declared, "party"), fields.text(declared, "dataset"))


def _encode(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def pretrain(
    features: Features,
    labels: ArrayLike,
    *,
    columns: Sequence[str] | None = None,
    table: TableRecord | None = None,
    l2: float | None = None,
) -> Pretrained:
    """Fit a logistic model to public rows, without noise. The rows have no privacy afterwards.

    Args:
        features: a data frame of numbers, booleans and dates, or an array of numbers, shape (rows, columns).
        labels: array of 0 and 1, shape (rows,).
        columns: names of a data frame's columns to take, in this order, all by default; names of an array's columns,
            x0, x1, ... by default.
        table: kinds of columns from which an array was made; None if they are numbers. A data frame has its own.
        l2: strength of the l2 penalty on standardised weights, not on the intercept; 1 / rows by default.

    Returns:
        The model; `init=` of the estimators and of a dp-lr or walr job takes it.

    Raises:
        DataError: a column is missing, a value is not finite, a label is neither 0 nor 1, or there is only one class.

    Example:
        >>> model = blindfit.pretrain(pd.DataFrame(X, columns=["a", "b", "c"]), y)
        >>> weights, intercept = model.raw_weights()
        >>> sorted(weights)
        ['a', 'b', 'c']
    """
    matrix: Any = features
    if (own := names_in(features)) is not None:
        columns = own if columns is None else columns
        table = record_of(features, columns)
        matrix = in_order(features, columns, table)
    standardiser = Standardiser.fit([matrix], columns, table=table).require_columns()
    rows = RealRows(append_constant(standardiser.transform(matrix)))
    happened = _check_labels(labels, rows.n_rows)
    found = solvers.fit(
        rows, weighted_aggregate(rows, happened), SolverSettings(l2=1 / rows.n_rows if l2 is None else l2)
    )
    if not found.converged:
        raise DataError(f"the public rows have no finite fit: {found.reason}", hint="set l2 above 0")
    *weights, intercept = map(float, found.weights)
    return Pretrained(standardiser, tuple(weights), intercept)


def _check_labels(labels: ArrayLike, n_rows: int) -> NDArray[np.bool_]:
    given = np.asarray(labels)
    if given.shape != (n_rows,):
        raise DataError(f"{n_rows} public rows need as many labels, not shape {given.shape}")
    if not np.isin(given, (0, 1)).all():
        raise DataError(f"public row {int(np.argmin(np.isin(given, (0, 1))))}: the label is neither 0 nor 1")
    happened = given.astype(bool)
    if happened.all() or not happened.any():
        raise DataError("the public rows have one class only: there is nothing to learn from them")
    return happened
