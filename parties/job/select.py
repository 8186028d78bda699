"""The table [select] of a job: cross-validation and a grid of options, for the systems that have both."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from blindfit.algorithms.statistics.vertical.selection import Point, Selection, SelectionFigure
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.tables import Settings

if TYPE_CHECKING:
    from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings

MOST_POINTS = 100
Options = Mapping[str, float | int | str]


class GridSettings(Settings):
    """Values that the selection tries: each option is a list, and every combination is one grid point."""

    l2: tuple[float, ...] = Field((), max_length=MOST_POINTS)
    """Strengths of the ridge penalty to try, such as [0.001, 0.01, 0.1]."""
    l1: tuple[float, ...] = Field((), max_length=MOST_POINTS)
    """Strengths of the lasso penalty to try."""
    learning_rate: tuple[float, ...] = Field((), max_length=MOST_POINTS)
    """Learning rates of the first epoch to try."""
    epochs: tuple[int, ...] = Field((), max_length=MOST_POINTS)
    """Numbers of epochs to try. Every training of a fold runs all of its epochs."""
    optimiser: tuple[str, ...] = Field((), max_length=MOST_POINTS)
    """Optimisers to try, such as ["sgd", "momentum"]."""

    @model_validator(mode="before")
    @classmethod
    def _reads_what_parties_send(cls, given: Any) -> Any:
        """Return a grid with lists: a job that one party sends to another, or keeps in its report, has its lists as
        texts.
        """
        if not isinstance(given, Mapping):
            return given
        return {name: _numbers(value) if name != "optimiser" else value for name, value in given.items()}

    @field_validator("*", mode="after")
    @classmethod
    def _tries_nothing_twice(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(values)) < len(values):
            raise ValueError("a value occurs twice, remove one")
        return values

    def combine(self) -> list[Options]:
        """Return the options of every grid point, in the order of the lists."""
        lists = {name: getattr(self, name) for name in type(self).model_fields if getattr(self, name)}
        return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


class SelectSettings(Settings):
    """Choice of options by cross-validation, before the final training."""

    folds: Literal[3, 5, 10] = 5
    """Number of folds: each training row is tested by the training that leaves its fold out. More folds take longer and
    leave more rows to train on."""
    by: Literal["auto", "log_loss", "accuracy", "auc", "mse"] = "auto"
    """Figure that decides. "auto" takes "log_loss" for a logistic model and "mse", the mean squared error, for a linear
    one. The first of the best grid points is chosen."""
    grid: GridSettings

    @model_validator(mode="after")
    def _has_points(self) -> SelectSettings:
        points = len(self.grid.combine())
        if points < 2:
            raise ValueError("grid: it has one point, so there is nothing to choose: list more values, or remove it")
        if points > MOST_POINTS:
            raise ValueError(f"grid: it has {points:,} points, more than {MOST_POINTS}: list fewer values")
        return self


class SelectingParameters(TrainingParameters):
    """Options of a job that may choose other options by cross-validation."""

    select: SelectSettings | None = None

    @property
    def can_resume(self) -> bool:
        """True if a training can be resumed. Nothing of the folds is kept, so a job with [select] cannot."""
        return super().can_resume and self.select is None

    @property
    @abstractmethod
    def trained(self) -> Any:
        """Table of the system's own options, which the grid varies."""

    def with_options(self, options: Options) -> Any:
        """Return the system's own options at a grid point.

        Raises:
            ValueError: the system does not accept them.
        """
        table = self.trained
        return type(table).model_validate({**table.model_dump(exclude_unset=True), **options})

    @property
    def by(self) -> SelectionFigure:
        """Figure that decides."""
        asked = "auto" if self.select is None else self.select.by
        if asked == "auto":
            return "mse" if self.trained.model == "linear" else "log_loss"
        return asked

    @property
    def selection(self) -> Selection | None:
        if self.select is None:
            return None
        return Selection(self.select.folds, self.by, tuple(map(self._point, self.select.grid.combine())))

    @property
    @abstractmethod
    def trained_table(self) -> str:
        """Name of that table."""

    def choose(self, point: int) -> Self:
        """Return the job with the options of a grid point."""
        if self.select is None:
            return self
        return self.model_copy(update={self.trained_table: self.with_options(self.select.grid.combine()[point])})

    def _point(self, options: Options) -> Point:
        table = self.with_options(options)
        settings: OptimiserSettings = table.optimiser_settings()
        return Point(tuple(options.items()), settings, table.epochs)

    @property
    def most_epochs(self) -> int:
        """Epochs of the longest training that the job may have."""
        if self.selection is None:
            return int(self.trained.epochs)
        return max(point.epochs for point in self.selection.points)

    @model_validator(mode="after")
    def _selects_what_it_can(self) -> SelectingParameters:
        if self.select is None:
            return self
        if (self.by == "mse") != (self.trained.model == "linear"):
            fits = '"mse"' if self.trained.model == "linear" else '"log_loss", "accuracy" or "auc"'
            raise ValueError(f'select.by: a {self.trained.model} model takes {fits}, not "{self.by}"')
        for options in self.select.grid.combine():
            try:
                self.with_options(options)
            except ValidationError as error:
                where = ", ".join(f"{name} = {value}" for name, value in options.items())
                wrong = "; ".join(_describe(mistake) for mistake in error.errors(include_url=False))
                raise ValueError(f"select.grid: {where}: {wrong}") from None
        return self


def _numbers(value: Any) -> Any:
    return tuple(map(_number, value)) if isinstance(value, list | tuple) else value


def _number(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return text


def _describe(mistake: Mapping[str, Any]) -> str:
    where = ".".join(map(str, mistake["loc"]))
    message = str(mistake["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
