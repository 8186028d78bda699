"""One party's part of a vertical model: the weights of its own columns. A small JSON file, readable.

A part's score of a row is an exact integer, independent of the order of operations. Features are standardised, clipped
and rounded to their grid; weights are rounded to 2^-30. The sum of the products is rounded to as few bits as the
party's rows need (score_leaks.py). So parts of several parties add without rounding, and a scorer without any library
(docs/scorer.py) gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import DataError, RangeError
from blindfit.algorithms.fixed_point import clip_integer_rows
from blindfit.algorithms.rehearsal import stamp_of, with_stamp
from blindfit.algorithms.statistics.linear import fields
from blindfit.algorithms.statistics.linear.fitted_model import LinearModel
from blindfit.algorithms.statistics.linear.named_columns import Features
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant

Floats = npt.NDArray[np.float64]
FORMAT = "blindfit vertical model part v1"
FEATURE_BITS = 12
WEIGHT_BITS = 30
SCORE_BITS = FEATURE_BITS + WEIGHT_BITS
GRID = {"feature_bits": FEATURE_BITS, "weight_bits": WEIGHT_BITS}
LARGEST_FEATURE_BOUND = 2.0**10  # squares of integer rows stay below 2^62
MOST_ROUNDING = 60
LARGEST_SCORE = 2.0**14  # of a part: the parts of 17 parties add to less than 2^61 steps


@dataclass(frozen=True, slots=True)
class VerticalModelPart(LinearModel):
    """One party's part of a vertical model. The scores of all parties' parts are added and give the prediction.

    Args:
        party: name of the party.
        role: "active" or "passive".
        model: "logistic" or "linear".
        data_parties: names of all parties with a part: the active one first, then the passive ones.
        standardiser: standardiser of the party's columns, fitted to its rows.
        weights: float64 array of shape (columns,), for standardised features.
        intercept: the active party's intercept; None for a model without one, and for a passive party.
        feature_bound: bound to which standardised features are clipped, above 0 and at most 1,024.
        row_bound: largest L2 norm of a row, in steps of 2^-12; longer rows are shortened, as in training under label
            DP. None for no bound.
        score_rounding: number of bits to which the part of a score is rounded: it is a multiple of 2^score_rounding
            steps, halves upwards. 0 for no rounding.
        label_mean, label_scale: mean and scale of a linear model's labels, at the active party.
        slope, offset: calibration of a logistic model, at the active party: p = sigmoid(slope z + offset).
        trained_in: name of the session that began the training; empty in a file of an earlier version.
        options: options that the training chose from a grid, by name.
        rehearsal: stamp of a model that was rehearsed; empty for a trained model.

    Raises:
        DataError: a field is wrong, or does not fit another one; the message names it.
        RangeError: a number is out of its range, or scores could overflow.

    Example:
        >>> part = blindfit.load_model("models/taylor.json")  # that of the only party, so its scores are complete
        >>> new_rows = pd.DataFrame({"age": [30.0, 60.0], "income": [20.0, 50.0]})
        >>> part.predictions(part.score_parts(new_rows)).round(2).tolist()
        [0.12, 0.88]
    """

    party: str
    role: str
    model: str
    data_parties: tuple[str, ...]
    standardiser: Standardiser
    weights: Floats
    intercept: float | None = None
    feature_bound: float = 8.0
    row_bound: int | None = None
    score_rounding: int = 0
    label_mean: float = 0.0
    label_scale: float = 1.0
    slope: float = 1.0
    offset: float = 0.0
    trained_in: str = ""
    options: Mapping[str, float | int | str] = field(default_factory=dict)
    rehearsal: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        self._check_seat()
        if len(self.weights) != len(self.standardiser.kept):
            raise DataError("weights: another number than of columns")
        numbers = [*self._all_weights(), self.feature_bound, self.label_mean, self.label_scale, self.slope, self.offset]
        if not all(map(math.isfinite, numbers)):
            raise DataError("a number of the model is not finite")
        if not 0 < self.feature_bound <= LARGEST_FEATURE_BOUND:
            raise RangeError(f"feature_bound: not above 0 and at most {LARGEST_FEATURE_BOUND:g}")
        if self.row_bound is not None and self.row_bound < 1:
            raise RangeError("row_bound: not above 0")
        if not 0 <= self.score_rounding <= MOST_ROUNDING:
            raise RangeError(f"score_rounding: not from 0 to {MOST_ROUNDING}")
        if self.label_scale <= 0:
            raise RangeError("label_scale: not above 0")
        if self.slope <= 0:
            raise RangeError("slope: not above 0")
        if sum(abs(float(weight)) for weight in self._all_weights()) * self.feature_bound > LARGEST_SCORE:
            raise RangeError(f"weights: so large that a score could pass {LARGEST_SCORE:g}")

    def _check_seat(self) -> None:
        if self.model not in ("logistic", "linear"):
            raise DataError("model: neither logistic nor linear")
        if self.role not in ("active", "passive"):
            raise DataError("role: neither active nor passive")
        if self.party not in self.data_parties or len(set(self.data_parties)) != len(self.data_parties):
            raise DataError(f"data_parties: {self.party} is not among them, or a name comes twice")
        if (self.party == self.data_parties[0]) != (self.role == "active"):
            raise DataError("data_parties: the active party is not the first")
        if self.role == "passive" and self.intercept is not None:
            raise DataError("intercept: only the active party may have one")

    def standardised_weights(self) -> tuple[Floats, float]:
        """Return the weights of the party's kept columns, and its intercept, 0 without one."""
        return self.weights, self.intercept or 0.0

    def _all_weights(self) -> Floats:
        """Return all weights, the intercept last."""
        return self.weights if self.intercept is None else np.append(self.weights, self.intercept)

    @property
    def largest_steps(self) -> int:
        """Largest part of a score before it is rounded, in steps of 2^-42."""
        bound = round(math.ldexp(self.feature_bound, FEATURE_BITS))
        return bound * int(np.abs(self.integer_weights()).sum())

    def integer_weights(self) -> npt.NDArray[np.int64]:
        """Return all weights in steps of 2^-30, the intercept last: int64 array."""
        return np.rint(np.ldexp(self._all_weights(), WEIGHT_BITS)).astype(np.int64)

    def score_parts(self, features: Features) -> npt.NDArray[np.int64]:
        """Return this party's part of each row's score, in steps of 2^-42: int64 array of shape (rows,).

        Args:
            features: a data frame or another table, whose other columns are ignored, or an array of shape (rows,
                columns) in the order of `feature_names_in_`.

        Raises:
            DataError: a column is missing or comes twice, or a feature is not finite.
        """
        rows = rows_on_grid(self.standardiser, features, self.feature_bound, intercept=self.intercept is not None)
        if self.row_bound is not None:
            rows = clip_integer_rows(rows, self.row_bound)
        half = (1 << self.score_rounding) >> 1
        return np.asarray((rows @ self.integer_weights() + half) >> self.score_rounding << self.score_rounding)

    def predictions(self, scores: npt.NDArray[np.int64]) -> Floats:
        """Return the probabilities of label 1, or the numbers that a linear model predicts: shape (rows,).

        Args:
            scores: sums of the parts of all parties, in steps of 2^-42: int64 array of shape (rows,).

        Raises:
            DataError: this is a passive party's part, which does not have the labels' scale.
        """
        if self.role != "active":
            raise DataError("only the active party's part turns scores into predictions")
        if self.model == "linear":
            return np.array([real * self.label_scale + self.label_mean for real in real_scores(scores).tolist()])
        return probabilities(scores, self.slope, self.offset)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of its model.json."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "party": self.party,
            "role": self.role,
            "data_parties": list(self.data_parties),
            "model": self.model,
            "standardiser": self.standardiser.to_dict(),
            "weights": dict(zip(self.standardiser.kept_columns, self.weights.tolist(), strict=True)),
            "feature_bound": self.feature_bound,
            "row_bound": self.row_bound,
            "score_rounding": self.score_rounding,
            "grid": GRID,
        }
        if self.trained_in:
            content["trained_in"] = self.trained_in
        if self.options:
            content["options"] = dict(self.options)
        if self.role == "active":
            content |= {"intercept": self.intercept, "label_mean": self.label_mean, "label_scale": self.label_scale}
            content |= {"slope": self.slope, "offset": self.offset}
        return with_stamp(content, self.rehearsal)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> VerticalModelPart:
        """Return the part of the content of a model.json.

        Args:
            stored: the content, as JSON gives it.

        Raises:
            DataError, RangeError: a field is missing or wrong; the message names it.
        """
        fields.check_format(stored, FORMAT)
        if fields.table(stored, "grid") != GRID:
            raise DataError("grid: not that of this version")
        standardiser = Standardiser.from_dict(fields.table(stored, "standardiser"))
        weights = np.array(fields.weights_by_name(stored, standardiser.kept_columns))
        own = _of_the_active_party(stored) if stored.get("role") == "active" else {}
        return cls(
            party=fields.text(stored, "party"),
            role=fields.text(stored, "role"),
            model=fields.text(stored, "model"),
            data_parties=fields.texts(stored, "data_parties"),
            standardiser=standardiser,
            weights=weights,
            feature_bound=fields.number(stored, "feature_bound"),
            row_bound=None if fields.optional_number(stored, "row_bound") is None else _whole(stored, "row_bound"),
            score_rounding=_whole(stored, "score_rounding"),
            trained_in=fields.text(stored, "trained_in") if "trained_in" in stored else "",
            options=_options(stored),
            rehearsal=stamp_of(stored),
            **own,
        )


def rows_on_grid(
    standardiser: Standardiser, features: Features, bound: float, *, intercept: bool
) -> npt.NDArray[np.int64]:
    """Standardise and clip raw features; return steps of 2^-12, with the intercept's 1 last.

    Raises:
        DataError: a column is missing or comes twice, or a feature is not finite.
    """
    with np.errstate(over="ignore"):  # a number infinitely far from the mean is clipped
        columns = standardiser.transform(features)
    if intercept:
        columns = append_constant(columns)
    return np.rint(np.ldexp(np.clip(columns, -bound, bound), FEATURE_BITS)).astype(np.int64)


def probabilities(scores: npt.NDArray[np.int64], slope: float = 1.0, offset: float = 0.0) -> Floats:
    """Return the probabilities of a logistic model's scores."""
    return np.array([_sigmoid(real * slope + offset) for real in real_scores(scores).tolist()])


def real_scores(scores: npt.NDArray[np.int64]) -> Floats:
    """Convert steps of 2^-42 to reals; below 2^11 without rounding."""
    return np.ldexp(scores.astype(np.float64), -SCORE_BITS)


def _of_the_active_party(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "intercept": fields.optional_number(stored, "intercept"),
        "label_mean": fields.number(stored, "label_mean"),
        "label_scale": fields.number(stored, "label_scale"),
        "slope": fields.number(stored, "slope"),
        "offset": fields.number(stored, "offset"),
    }


def _options(stored: Mapping[str, Any]) -> dict[str, float | int | str]:
    options = fields.table(stored, "options") if "options" in stored else {}
    if not all(isinstance(value, str | int | float) and not isinstance(value, bool) for value in options.values()):
        raise DataError("options: a value is neither a number nor a text")
    return dict(options)


def _whole(stored: Mapping[str, Any], name: str) -> int:
    fields.number(stored, name)
    if not isinstance(stored[name], int):
        raise DataError(f"{name}: not a whole number")
    return int(stored[name])


def _sigmoid(score: float) -> float:
    """Compute with Python's own exp: a scorer without numpy gives the same bits."""
    if score >= 0:
        return 1.0 / (1.0 + math.exp(-score))
    power = math.exp(score)
    return power / (1.0 + power)
