"""Write a formula as an ONNX graph in double precision.

Each column of the table is an input of shape (rows, 1). A number is a double, NaN where it is missing. A category is a
text, empty where it is missing. A date counts days since 1970-01-01 in UTC. True and false are 1 and 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from blindfit.algorithms.columns.record import UNIT_OF_DATES
from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.model_export.about import facts
from blindfit.algorithms.model_export.expressions import (
    Expression,
    Function,
    IsText,
    Name,
    Number,
    program_of,
)
from blindfit.algorithms.model_export.formula import PREFIX, SCORE_UNIT, UNSEEN, Formula, Part
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS

OPSET, IR_VERSION = 19, 9  # the first that compares texts; onnxruntime 1.15 and newer read them
OPERATORS: dict[Function, str] = {
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "/": "Div",
    "floor": "Floor",
    "sqrt": "Sqrt",
    "exp": "Exp",
    "ln": "Log",
    "<": "Less",
    "<=": "LessOrEqual",
    "=": "Equal",
    "and": "And",
    "or": "Or",
    "not": "Not",
    "is missing": "IsNaN",
}


def write_onnx(formula: Formula) -> bytes:
    """Return the model.

    Raises:
        ConfigError: the package onnx is not installed.
        DataError: a level of a column cannot stand in the graph.
    """
    formula.refuse_inexact("ONNX")
    return _Graph(formula, _load_onnx()).to_bytes()


def _load_onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ConfigError(
            "an export to ONNX needs the package onnx, which is not installed",
            hint="run `pip install 'onnx>=1.17'`",
        ) from None
    return onnx


class _Graph:
    """Nodes in the order in which they are computed; the name of each result is the next free number."""

    def __init__(self, formula: Formula, onnx: Any) -> None:
        self._formula, self._onnx = formula, onnx
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._rendered: dict[Expression, str] = {}
        self._names = {each.name: each.name for each in formula.inputs}
        self._categories = {each.name for each in formula.categories}

    def to_bytes(self) -> bytes:
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        self._compute()
        inputs = []
        for source in self._formula.inputs:
            kind = kinds.STRING if source.name in self._categories else kinds.DOUBLE
            unit = UNIT_OF_DATES if source.column.kind == "date" else source.column.kind
            inputs.append(helper.make_tensor_value_info(source.name, kind, ["rows", 1], unit))
        outputs = [helper.make_tensor_value_info(name, kinds.DOUBLE, ["rows", 1]) for name in self._formula.outputs]
        constants = list(self._constants.values())
        graph = helper.make_graph(self._nodes, "blindfit", inputs, outputs, constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="blindfit"
        )
        helper.set_model_props(model, facts(self._formula))
        self._onnx.checker.check_model(model)
        encoded: bytes = model.SerializeToString()
        return encoded

    # --- parts of the graph ---------------------------------------------------------------------------

    def _add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or f"{PREFIX}{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def _constant(self, value: Any) -> str:
        array = np.asarray(value)
        key = repr((array.shape, array.dtype.str, array.tolist()))
        if key not in self._constants:
            name = f"{PREFIX}constant {len(self._constants)}"
            self._constants[key] = self._onnx.numpy_helper.from_array(array, name)
        return str(self._constants[key].name)

    def _compute(self) -> None:
        program = program_of(self._formula, PREFIX)
        for layer in program.columns:
            for name, expression in layer.items():
                self._names[name] = self._render(expression)
        parts = [
            self._part(part, [self._render(value) for value in row])
            for part, row in zip(self._formula.parts, program.rows, strict=True)
        ]
        total = parts[0] if len(parts) == 1 else self._add("Sum", *parts)
        if self._formula.parts[0].on_grid:
            total = self._add("Mul", total, self._constant(SCORE_UNIT))
        score = self._add("Identity", total, output=self._formula.score_name)
        if self._formula.predicts != "none":
            self._names[f"{PREFIX}score total"] = score
            odds = self._render(program.layers[-1][f"{PREFIX}odds"])
            last = "Sigmoid" if self._formula.predicts == "probability" else "Identity"
            self._add(last, odds, output=self._formula.predicts)
        if UNSEEN in program.outputs:
            self._add("Identity", self._render(program.outputs[UNSEEN]), output=UNSEEN)

    def _part(self, part: Part, values: list[str]) -> str:
        """Return a party's part of the scores, from values before standardisation, each of shape (rows, 1)."""
        is_one = 0.0 if part.constant is None else 1.0
        rows = self._add("Concat", *values, axis=1)
        rows = self._add("Pad", rows, self._constant([0, 0, 0, 1]), self._constant(is_one))
        rows = self._add("Sub", rows, self._constant([*(term.mean for term in part.terms), 0.0]))
        rows = self._add("Div", rows, self._constant([*(term.std for term in part.terms), 1.0]))
        low, high = self._constant(-part.limit), self._constant(part.limit)
        if part.refuses:
            inside = self._add("And", self._add("LessOrEqual", low, rows), self._add("LessOrEqual", rows, high))
            rows = self._add("Where", inside, rows, self._constant(math.nan))
        else:
            rows = self._add("Clip", rows, low, high)
        if part.on_grid:
            rows = self._add("Round", self._add("Mul", rows, self._constant(2.0**FEATURE_BITS)))
        weights = [*(term.weight for term in part.terms), part.constant or 0.0]
        if part.longest is not None:
            rows = self._shorten(rows, part, float(part.longest))
        total = self._add("MatMul", rows, self._constant([[weight] for weight in weights]))
        if part.rounding:
            unit = self._constant(2.0**part.rounding)
            steps = self._add("Div", self._add("Add", total, self._constant(2.0**part.rounding / 2)), unit)
            total = self._add("Mul", self._add("Floor", steps), unit)
        return total

    def _shorten(self, rows: str, part: Part, longest: float) -> str:
        bound = self._constant(longest)
        if part.on_grid:
            square = self._add_row(self._add("Mul", rows, rows))
            is_short = self._add("LessOrEqual", square, self._constant(longest * longest))
            length = self._add("Add", self._add("Floor", self._add("Sqrt", square)), self._constant(1.0))
            cut = self._add("Floor", self._add("Div", self._add("Mul", self._add("Abs", rows), bound), length))
            shortened = self._add("Mul", self._add("Sign", rows), cut)
        else:  # the squares of large numbers overflow a double
            size = self._add("Add", self._add_row(self._add("Abs", rows)), self._constant(1.0))
            of_size = self._add("Div", rows, size)
            length = self._add("Sqrt", self._add_row(self._add("Mul", of_size, of_size)))
            is_short = self._add("LessOrEqual", length, self._add("Div", bound, size))
            shortened = self._add("Mul", of_size, self._add("Div", bound, length))
        return self._add("Where", is_short, rows, shortened)

    def _add_row(self, rows: str) -> str:
        return self._add("ReduceSum", rows, self._constant([1]), keepdims=1)

    def _render(self, expression: Expression) -> str:
        if expression not in self._rendered:
            self._rendered[expression] = self._compute_one(expression)
        return self._rendered[expression]

    def _compute_one(self, expression: Expression) -> str:
        if isinstance(expression, Number):
            return self._constant(expression.value)
        if isinstance(expression, Name):
            return self._names[expression.name]
        if isinstance(expression, IsText):
            return self._add("Equal", expression.name, self._constant(np.array(expression.text, dtype=object)))
        first = expression.arguments[0]
        if expression.function == "is missing" and isinstance(first, Name) and first.name in self._categories:
            return self._render(IsText(first.name, ""))
        arguments = [self._render(each) for each in expression.arguments]
        if expression.function == "if":
            otherwise = arguments[2] if len(arguments) > 2 else self._constant(math.nan)
            return self._add("Where", arguments[0], arguments[1], otherwise)
        last = expression.arguments[-1]
        if expression.function in ("*", "/") and isinstance(last, Number) and _is_nearly_one(last.value):
            doubled = self._add(OPERATORS[expression.function], arguments[0], self._constant(2 * last.value))
            return self._add("Mul", doubled, self._constant(0.5 if expression.function == "*" else 2.0))
        return self._add(OPERATORS[expression.function], *arguments)


def _is_nearly_one(factor: float) -> bool:
    """Return whether onnxruntime would leave out this factor: it compares it with 1 in single precision."""
    return factor != 1.0 and float(np.float32(factor)) == 1.0
