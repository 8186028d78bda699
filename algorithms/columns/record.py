"""A model's record of the columns of its tables: their kinds, levels and rules for missing values.

    kind       a value in the table       the model's columns
    number     a finite number            age
    boolean    true or false              smokes: 1 or 0
    date       a date or a moment         born: days since 1970-01-01, in UTC
    category   a text, one of few         region=north, region=south, ...: 1 in a row with that level, else 0

A column whose rule is "indicator" has one more column, `age=` or `region=`: 1 in a row without a value, else 0.
Recipes compute further columns from numbers, booleans and dates (recipes.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from blindfit.algorithms.columns.recipes import Recipe, is_finite, read_recipe
from blindfit.algorithms.errors import DataError

Kind = Literal["number", "boolean", "date", "category"]
MissingRule = Literal["refuse", "mean", "indicator"]
UNIT_OF_DATES = "days since 1970-01-01"

#: What pandas, R and spreadsheets write without quotes for "no value" in a csv file.
MISSING_WORDS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "<NA>", "NaN", "nan")


def column_of_level(column: str, level: str) -> str:
    """Return the name of the model's column for one level; the level "" marks the rows without a value."""
    return f"{column}={level}"


@dataclass(frozen=True)
class TableColumn:
    """One column of a table, as training read it.

    Args:
        levels: levels of a category that have a column of their own.
        reference: levels of a category that training met and that have no column; None if nobody recorded them.
        base: the reference level that the party's file chose. It has no column, and scorers know it.
        declared: True if the party's file names the levels; a declared level is never taken for "no value".
        is_feature: True if the column's value is a column of the model; otherwise only recipes read it.
        missing: a scorer's treatment of a row without a value. It refuses the row, puts the recorded mean, or puts the
            mean (for a category: nothing) and marks the row in a column of its own.
    """

    name: str
    kind: Kind = "number"
    levels: tuple[str, ...] = ()
    reference: tuple[str, ...] | None = None
    missing: MissingRule = "refuse"
    declared: bool = False
    base: str | None = None
    is_feature: bool = True

    @property
    def valued(self) -> tuple[str, ...]:
        """Encoded columns that hold the column's value."""
        if self.kind != "category":
            return (self.name,)
        return tuple(column_of_level(self.name, level) for level in self.levels)

    @property
    def encoded(self) -> tuple[str, ...]:
        """All columns of numbers that come from this column, before recipes."""
        return (*self.valued, column_of_level(self.name, "")) if self.missing == "indicator" else self.valued

    @property
    def made(self) -> tuple[str, ...]:
        """The encoded columns that are columns of the model."""
        return self.encoded if self.is_feature else self.encoded[1:]

    @property
    def chosen(self) -> tuple[str, ...]:
        """The levels that have a column, and the reference level."""
        return self.levels if self.base is None else (*self.levels, self.base)

    @cached_property
    def known(self) -> frozenset[str]:
        """The levels that training met, as far as they were recorded."""
        return frozenset((*self.chosen, *(self.reference or ())))

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {"name": self.name, "kind": self.kind, "missing": self.missing}
        if self.kind == "date":
            content["unit"] = UNIT_OF_DATES
        if self.kind == "category":
            reference = None if self.reference is None else list(self.reference)
            content |= {"levels": list(self.levels), "declared": self.declared, "reference": reference}
            content |= {} if self.base is None else {"base": self.base}
        return content if self.is_feature else content | {"feature": False}

    @classmethod
    def from_dict(cls, stored: Any) -> TableColumn:
        """Restore a column; raise DataError, which names the wrong field."""
        if not isinstance(stored, Mapping) or not isinstance(stored.get("name"), str):
            raise DataError("table.columns: not a list of tables with a name each")
        kind: Any = stored.get("kind")
        missing: Any = stored.get("missing")
        name = stored["name"]
        if kind not in get_args(Kind):
            raise DataError(f"table.columns: {name}: kind is not one of {', '.join(get_args(Kind))}")
        if missing not in get_args(MissingRule):
            raise DataError(f"table.columns: {name}: missing is not one of {', '.join(get_args(MissingRule))}")
        if kind == "date" and stored.get("unit") != UNIT_OF_DATES:
            raise DataError(f"table.columns: {name}: unit is not {UNIT_OF_DATES}")
        is_feature = stored.get("feature", True)
        if type(is_feature) is not bool or (kind == "category" and not is_feature):
            raise DataError(
                f"table.columns: {name}: feature must be true, or false for a column that is not a category"
            )
        if kind != "category":
            return cls(name, kind, missing=missing, is_feature=is_feature)
        levels, reference = stored.get("levels"), stored.get("reference")
        if type(stored.get("declared")) is not bool:
            raise DataError(f"table.columns: {name}: declared is neither true nor false")
        met = None if reference is None else _texts(reference, f"table.columns: {name}: reference")
        of_it, base = _texts(levels, f"table.columns: {name}: levels"), stored.get("base")
        if base is not None and (not isinstance(base, str) or base in of_it):
            raise DataError(f"table.columns: {name}: base is not a text, or has a column")
        return cls(name, kind, of_it, met, missing, stored["declared"], base)


@dataclass(frozen=True)
class TableRecord:
    """All columns of a table that a model needs.

    Args:
        fill: encoded column -> the mean that stands for a missing value.
        missing_words: words that stood for "no value" in the csv file of training, if it was a csv file.
        recipes: rules that compute columns of the model from columns of the table.

    Raises:
        DataError: two columns of the model would have one name, or a recipe reads a column that is not there.
    """

    columns: tuple[TableColumn, ...]
    fill: Mapping[str, float] = field(default_factory=dict, hash=False)
    missing_words: tuple[str, ...] = MISSING_WORDS
    recipes: tuple[Recipe, ...] = ()

    def __post_init__(self) -> None:
        categories = {column.name for column in self.columns if column.kind == "category"}
        names = [*categories, *self.encoded, *(name for recipe in self.recipes for name in recipe.made)]
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise DataError(f"table.columns: {twice[0]} comes twice", hint="rename one of the two columns")
        read = {source for recipe in self.recipes for source in recipe.of}
        for recipe in self.recipes:
            if strange := [source for source in recipe.of if source in categories or source not in self.by_name]:
                raise DataError(f"table.recipes: {recipe.name}: {strange[0]} is not a column of numbers or dates")
        if unread := [name for name in self.sources if name not in read]:
            raise DataError(f"table.columns: {unread[0]} is not a feature, and no recipe reads it")

    @classmethod
    def of_numbers(cls, names: Iterable[str]) -> TableRecord:
        return cls(tuple(TableColumn(name) for name in names))

    @cached_property
    def encoded(self) -> tuple[str, ...]:
        """The columns of numbers that come from the table's, in their order, before recipes."""
        return tuple(name for column in self.columns for name in column.encoded)

    @cached_property
    def made(self) -> tuple[str, ...]:
        """The model's columns: those of the table in its order, then those of the recipes."""
        of_recipes = (name for recipe in self.recipes for name in recipe.made)
        return (*(name for column in self.columns for name in column.made), *of_recipes)

    @property
    def sources(self) -> tuple[str, ...]:
        """The table's columns that only recipes read."""
        return tuple(column.name for column in self.columns if not column.is_feature)

    @property
    def is_fitted(self) -> bool:
        """True if all recipes have their numbers and all sources their means, so columns can be computed."""
        return all(recipe.has_numbers for recipe in self.recipes) and all(name in self.fill for name in self.sources)

    @property
    def names(self) -> tuple[str, ...]:
        """The table's columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def by_name(self) -> Mapping[str, TableColumn]:
        return {column.name: column for column in self.columns}

    @cached_property
    def behind(self) -> Mapping[str, TableColumn]:
        """Map each encoded column to the column of the table that it comes from."""
        return {name: column for column in self.columns for name in column.encoded}

    @cached_property
    def recipe_of(self) -> Mapping[str, Recipe]:
        """Map each column that a recipe makes to the recipe."""
        return {name: recipe for recipe in self.recipes for name in recipe.made}

    def level_of(self, name: str) -> str | None:
        """Return the level that an encoded column stands for, "" for no value; None where it is a number."""
        column = self.behind[name]
        is_level = column.kind == "category" or name != column.name
        return name.removeprefix(column_of_level(column.name, "")) if is_level else None

    def read_for(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the encoded columns that these columns of the model, or encoded columns, are computed from."""
        found: dict[str, None] = {}
        for name in names:
            found |= dict.fromkeys(self.recipe_of[name].of if name in self.recipe_of else (name,))
        return tuple(found)

    def select(self, names: Sequence[str]) -> tuple[TableColumn, ...]:
        """Return the table's columns that these encoded columns come from."""
        wanted = dict.fromkeys(self.behind[name].name for name in names)
        return tuple(self.by_name[name] for name in wanted)

    def with_fill(self, fill: Mapping[str, float]) -> TableRecord:
        return replace(self, fill=dict(fill))

    def public(self) -> TableRecord:
        """Return the record without levels that were found in rows, for models that protect whole rows."""
        return replace(self, columns=tuple(replace(column, reference=None) for column in self.columns))

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "columns": [column.to_dict() for column in self.columns],
            "fill": dict(self.fill),
            "missing_words": list(self.missing_words),
        }
        return content | {"recipes": [recipe.to_dict() for recipe in self.recipes]} if self.recipes else content

    @classmethod
    def from_dict(cls, stored: Any) -> TableRecord:
        """Restore a record; raise DataError, which names the wrong field."""
        if not isinstance(stored, Mapping) or not isinstance(stored.get("columns"), list):
            raise DataError("table: not a table with a list of columns")
        columns = tuple(TableColumn.from_dict(column) for column in stored["columns"])
        fill = stored.get("fill")
        if not isinstance(fill, Mapping) or not all(map(is_finite, fill.values())):
            raise DataError("table.fill: does not map columns to finite numbers")
        recipes = stored.get("recipes", [])
        if not isinstance(recipes, list):
            raise DataError("table.recipes: not a list of tables with a name each")
        words = _texts(stored.get("missing_words"), "table.missing_words")
        means = {name: float(mean) for name, mean in fill.items()}
        record = cls(columns, means, words, tuple(map(read_recipe, recipes)))
        if lacking := [name for name in (*record.filled, *record.sources) if name not in record.fill]:
            raise DataError(f"table.fill: {lacking[0]} is missing")
        return record

    @property
    def filled(self) -> tuple[str, ...]:
        """The encoded columns in which a scorer puts a mean for a missing value."""
        return tuple(
            name
            for column in self.columns
            for name in column.valued
            if column.missing == "mean" or (column.missing == "indicator" and column.kind != "category")
        )


def _texts(stored: Any, name: str) -> tuple[str, ...]:
    if not isinstance(stored, list) or not all(isinstance(text, str) for text in stored):
        raise DataError(f"{name}: not a list of texts")
    return tuple(stored)
