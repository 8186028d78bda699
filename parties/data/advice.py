"""Advice to a table's owner about a column or a value, in the words of the party file that describes the table."""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.parties.data.settings import DatasetSettings, is_csv
from blindfit.parties.tables import toml_of


@dataclass(frozen=True)
class Advice:
    """Hints for one table.

    Attributes:
        dataset: the name of the dataset in the party file; empty if no party file describes the table, as where a model
            reads it.
        settings: settings of that dataset.
    """

    dataset: str = ""
    settings: DatasetSettings | None = None

    @property
    def table(self) -> str:
        return f"datasets.{self.dataset}"

    def leave_out(self, column: str) -> str:
        """Return how to train without a column."""
        settings = self.settings
        if settings is None:
            return "fill it in: the model needs this column"
        quoted = toml_of(column)
        encoded = [f"{self.table}.{name}" for name in ("categories", "dates") if column in getattr(settings, name)]
        recipes = [name for name, recipe in settings.derive.items() if column in recipe.sources]
        steps = [f"remove {self.table}.derive.{name}" for name in recipes]
        is_feature = settings.is_feature(column) or not recipes
        if settings.features == "rest" and is_feature:
            without = f"set {self.table}.except = {toml_of([*settings.left_out, column])}"
            return " and ".join([without, *(f"remove {quoted} from {option}" for option in encoded), *steps])
        lists = [*([f"{self.table}.features"] if is_feature else []), *encoded]
        if not lists:
            return " and ".join(steps)
        named = f"remove {quoted} from {' and '.join(lists)}"
        return " and ".join([named, *steps])

    def without_recipe(self, name: str) -> str:
        """Return how to train without a recipe."""
        if self.settings is None:
            return "leave out the row: the model computes with this number"
        return f"remove {self.table}.derive.{name}"

    def no_number(self, column: str) -> str:
        """Return what to do about a value that is not of the column's kind."""
        settings = self.settings
        if settings is None:
            return "correct it: the model needs numbers in this column"
        if column in settings.dates:
            return f"correct it, or {self.leave_out(column)}"
        named = f"add {toml_of(column)} to {self.table}.categories or {self.table}.dates"
        return f"correct it, or {named}, or {self.leave_out(column)}{self._form_of_numbers()}"

    def no_date(self) -> str:
        """Return what to do about a text that is not a date, in addition to the correction of it."""
        is_plain_csv = self.settings is not None and is_csv(self.settings.url) and self.settings.date_format is None
        return f", or set {self.table}.date_format to the form that it has" if is_plain_csv else ""

    def _form_of_numbers(self) -> str:
        if self.settings is None or not is_csv(self.settings.url):
            return ""
        return f", or set {self.table}.decimal and {self.table}.thousands as the file has them"

    def levels(self) -> str:
        """Return how to name the levels of each category."""
        named = ", ".join(f"{toml_of(name)} = [...]" for name in (self.settings.categories if self.settings else ()))
        return f"{self.table}.categories = {{ {named} }}"

    def missing(self, *, of_category: bool) -> str:
        """Return what to do about a missing value."""
        if self.settings is None:
            return "fill it in, or remove the row: the model needs this column"
        ways = ["fill it in"]
        if not self.settings.quasi_identifiers:  # records keep their rows
            ways.append(f'set {self.table}.missing = "drop" to leave such rows out')
        if of_category:
            ways.append(f'set {self.table}.missing = "indicator" to make a level of it')
        else:
            ways.append(f'set {self.table}.missing = "mean" to put the column\'s mean in their place')
        return ", or ".join(ways)

    def near_positive(self) -> str:
        """Return what to do about a label that differs only in spelling from the text of label 1."""
        alike = "write this label in one way in all rows"
        return alike if self.settings is None else f"{alike}, or correct {self.table}.positive"

    def labels(self, *, binary: bool) -> str:
        """Return what to do about a label that is not a number."""
        if not binary:
            return "write labels as numbers"
        if self.settings is None:
            return "write labels as 0 and 1"
        return f'write labels as 0 and 1, or name the text of label 1: {self.table}.positive = "yes"'
