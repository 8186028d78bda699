"""Write a formula as one SELECT of SQL, for SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.model_export.about import comment_lines
from blindfit.algorithms.model_export.expressions import (
    Expression,
    Function,
    IsText,
    Name,
    Number,
    program_of,
)
from blindfit.algorithms.model_export.formula import PREFIX, Formula, Input
from blindfit.algorithms.model_export.postgresql import PostgreSQL
from blindfit.algorithms.model_export.sql_names import quote
from blindfit.algorithms.model_export.sqlite import SQLite

TABLE = "rows_to_score"
ROW = f"{PREFIX}row"
OPERATORS: Mapping[Function, str] = {
    "+": "+",
    "-": "-",
    "*": "*",
    "/": "/",
    "<": "<",
    "<=": "<=",
    "=": "=",
    "and": "AND",
    "or": "OR",
}


class Dialect(Protocol):
    """Differences between databases."""

    needs: str
    ignores_case: bool
    """True if the database takes two names that differ only in the case of ASCII letters for one column."""

    def number(self, value: float) -> str:
        """Return a double."""

    def text(self, value: str) -> str:
        """Return any text in quotes."""

    def convert(self, source: Input, name: str) -> Sequence[Mapping[str, str]]:
        """Return layers of expressions, by name, that convert a column of the table; the last one has `name`.

        A number is a double, an infinite one where the value is refused. A category is a text, an empty one where the
        value is refused. NULL is a missing value.
        """


DIALECTS: Mapping[str, Dialect] = {"sqlite": SQLite(), "postgresql": PostgreSQL()}


def write_sql(formula: Formula, dialect: str) -> str:
    """Return the statement, with the name `rows_to_score` for the table.

    Raises:
        DataError: the database would take two names for one, or doubles cannot compute the formula.
    """
    formula.refuse_inexact("SQL")
    if DIALECTS[dialect].ignores_case:
        _refuse_names_alike(formula, dialect)
    return "\n".join(_Statement(formula, DIALECTS[dialect]).lines()) + "\n"


def _refuse_names_alike(formula: Formula, dialect: str) -> None:
    taken = {_fold(name): f"the output {name}" for name in formula.outputs}
    for name in (each.name for each in formula.inputs):
        folded = _fold(name)
        other = "a name that the export makes up" if folded.startswith(PREFIX) else taken.get(folded)
        if other is not None:
            raise DataError(
                f"column {name!a} cannot be exported to {dialect}, which ignores case: it would be {other}",
                hint="rename it in the table and train again, or take another format or dialect",
            )
        taken[folded] = f"column {name!a}"


def _fold(name: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


class _Statement:
    def __init__(self, formula: Formula, dialect: Dialect) -> None:
        self._formula, self._dialect = formula, dialect
        self._converted = {each.name: f"{PREFIX}column {place}" for place, each in enumerate(formula.inputs, 1)}

    def lines(self) -> Iterator[str]:
        """Yield the statement: a common table expression for each layer, so that nothing is computed twice."""
        rows, layers = quote(f"{PREFIX}rows"), self._layers()
        yield from (f"-- {line}" for line in comment_lines(self._formula))
        yield f"-- {self._dialect.needs}"
        yield f'-- Put the name of your table in the place of "{TABLE}".'
        yield f"WITH {rows} AS MATERIALIZED ("
        yield f'    SELECT row_number() OVER () AS {quote(ROW)}, t.* FROM "{TABLE}" AS t'  # noqa: S608 - nothing is run
        before, known = rows, list[str]()
        for place, layer in enumerate(layers):
            later = "\n".join(text for after in layers[place + 1 :] for text in after.values())
            carried = [name for name in known if f"t.{quote(name)}" in later]
            name = quote(f"{PREFIX}step {place + 1}")
            yield f"), {name} AS MATERIALIZED ("
            yield "    SELECT"
            columns = [f"t.{quote(each)}" for each in (ROW, *carried)]
            columns += [f"{text} AS {quote(each)}" for each, text in layer.items()]
            yield ",\n".join(f"        {column}" for column in columns)
            yield f"    FROM {before} AS t"
            before, known = name, [*carried, *layer]
        outputs = ", ".join(f"s.{quote(PREFIX + each)} AS {quote(each)}" for each in self._formula.outputs)
        yield ")"
        yield f"SELECT r.*, {outputs}"
        yield f"FROM {rows} AS r JOIN {before} AS s ON s.{quote(ROW)} = r.{quote(ROW)}"
        yield f"ORDER BY r.{quote(ROW)}"

    def _layers(self) -> list[dict[str, str]]:
        program = program_of(self._formula, PREFIX, marks_refused=True)
        layers: list[dict[str, str]] = []
        for source in self._formula.inputs:
            for place, layer in enumerate(self._dialect.convert(source, self._converted[source.name])):
                if place == len(layers):
                    layers.append({})
                layers[place].update(layer)
        layers.extend({name: self._render(each) for name, each in layer.items()} for layer in program.all_layers)
        layers.append({PREFIX + name: self._render(each) for name, each in program.outputs.items()})
        return layers

    def _render(self, expression: Expression) -> str:
        if isinstance(expression, Number):
            return self._dialect.number(expression.value)
        if isinstance(expression, Name):
            return self._column(expression.name)
        if isinstance(expression, IsText):
            return f"{self._column(expression.name)} = {self._dialect.text(expression.text)}"
        arguments = [self._render(each) for each in expression.arguments]
        if expression.function == "if":
            otherwise = f" ELSE {arguments[2]}" if len(arguments) > 2 else ""
            return f"CASE WHEN {arguments[0]} THEN {arguments[1]}{otherwise} END"
        if expression.function == "is missing":
            return f"{arguments[0]} IS NULL"
        if expression.function == "not":
            return f"NOT ({arguments[0]})"
        if operator := OPERATORS.get(expression.function):
            return f"({arguments[0]} {operator} {arguments[1]})"
        return f"{expression.function}({', '.join(arguments)})"

    def _column(self, name: str) -> str:
        return f"t.{quote(self._converted.get(name, name))}"
