"""Write a formula as PMML 4.4: a regression model, with a derived field for every step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as ET

from blindfit.algorithms.columns.record import UNIT_OF_DATES
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.model_export.about import facts
from blindfit.algorithms.model_export.expressions import Expression, Function, IsText, Name, Number, program_of
from blindfit.algorithms.model_export.formula import PREFIX, PROBABILITY, Formula, Input
from blindfit.version import __version__

NAMESPACE = "http://www.dmg.org/PMML-4_4"
FUNCTIONS: Mapping[Function, str] = {
    "<": "lessThan",
    "<=": "lessOrEqual",
    "=": "equal",
    "is missing": "isMissing",
}
NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\t\n\r]")  # a parser changes white space


def write_pmml(formula: Formula) -> bytes:
    """Return the document.

    Raises:
        DataError: a column's name or a level cannot stand in XML.
    """
    formula.refuse_inexact("PMML")
    for source in formula.inputs:
        if any(NOT_IN_XML.search(text) for text in (source.name, *source.column.known)):
            raise DataError(
                f"column {source.name!a}: its name or a level has a control character, which cannot stand in PMML",
                hint="rename it in the table, and train again",
            )
    root = ET.Element("PMML", {"version": "4.4", "xmlns": NAMESPACE})
    header = ET.SubElement(root, "Header", {"description": "A model that Blindfit fitted."})
    ET.SubElement(header, "Application", {"name": "Blindfit", "version": __version__})
    for name, text in facts(formula).items():
        ET.SubElement(header, "Annotation").text = NOT_IN_XML.sub(" ", f"{name}: {text}")
    dictionary = ET.SubElement(root, "DataDictionary", {"numberOfFields": str(len(formula.inputs))})
    for source in formula.inputs:
        field = ET.SubElement(dictionary, "DataField", _field(source))
        if source.column.kind == "category":
            ET.SubElement(field, "Value", {"value": "", "property": "missing"})
    _add_model(root, formula)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _field(source: Input) -> dict[str, str]:
    if source.column.kind == "category":
        return {"name": source.name, "optype": "categorical", "dataType": "string"}
    unit = {"displayName": f"{source.name}, {UNIT_OF_DATES}"} if source.column.kind == "date" else {}
    return {"name": source.name, "optype": "continuous", "dataType": "double", **unit}


def _add_model(root: ET.Element, formula: Formula) -> None:
    program = program_of(formula, PREFIX)
    is_probability = formula.predicts == PROBABILITY
    model = ET.SubElement(
        root,
        "RegressionModel",
        {"functionName": "regression", "normalizationMethod": "logit" if is_probability else "none"},
    )
    schema = ET.SubElement(model, "MiningSchema")
    for source in formula.inputs:
        ET.SubElement(schema, "MiningField", {"name": source.name, "invalidValueTreatment": "asIs"})
    output = ET.SubElement(model, "Output")
    steps = ET.SubElement(model, "LocalTransformations")
    for layer in program.all_layers:
        for name, expression in layer.items():
            _add_step(steps, name, expression)
    score = formula.score_name
    for name in formula.outputs:
        is_number = {"name": name, "optype": "continuous", "dataType": "double"}
        if name == formula.predicts:
            ET.SubElement(output, "OutputField", {**is_number, "feature": "predictedValue"})
        else:
            field = ET.SubElement(output, "OutputField", {**is_number, "feature": "transformedValue"})
            ET.SubElement(field, "FieldRef", {"field": f"{PREFIX}{name} of the row"})
            _add_step(steps, f"{PREFIX}{name} of the row", program.outputs[name])
    table = ET.SubElement(model, "RegressionTable", {"intercept": repr(formula.offset)})
    ET.SubElement(
        table, "NumericPredictor", {"name": f"{PREFIX}{score} of the row", "coefficient": repr(formula.slope)}
    )


def _add_step(steps: ET.Element, name: str, expression: Expression) -> None:
    field = ET.SubElement(steps, "DerivedField", {"name": name, "optype": "continuous", "dataType": "double"})
    _add(field, expression)


def _add(parent: ET.Element, expression: Expression) -> None:
    if isinstance(expression, Number):
        ET.SubElement(parent, "Constant", {"dataType": "double"}).text = repr(expression.value)
    elif isinstance(expression, Name):
        ET.SubElement(parent, "FieldRef", {"field": expression.name})
    elif isinstance(expression, IsText):
        applied = ET.SubElement(parent, "Apply", {"function": "equal"})
        # As an attribute: readers of PMML have lost an & in the text of an element.
        ET.SubElement(applied, "NormDiscrete", {"field": expression.name, "value": expression.text})
        _add(applied, Number(1.0))
    else:
        function = FUNCTIONS.get(expression.function, expression.function)
        applied = ET.SubElement(parent, "Apply", {"function": function})
        for argument in expression.arguments:
            _add(applied, argument)
