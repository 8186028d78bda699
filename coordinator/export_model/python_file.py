"""Write a model as one file of Python that needs no package: docs/scorer.py, with the model in it."""

from __future__ import annotations

import pprint
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from blindfit.algorithms.model_export.about import comment_lines
from blindfit.algorithms.model_export.formula import Formula, Part

FIRST, LAST = "import argparse\n", "# --- the command"
NOT_NEEDED = ("signature", "trained_in", "training", "privacy")

HEAD = '''"""Scores rows by the model in this file, with Python 3.11 or newer and no other package.

    python FILE.py ROWS.csv > scores.csv

The id of a row is in the column `id`, or in another: --id NAME. In Python `score(row)` scores a dict of one row.
"""

'''
TAIL = '''# --- the model ------------------------------------------------------------------------------------

{about}
MODELS = {models}
#: For each party, what the table calls a column, where two parties have one of the same name.
NAMES = {names}


# --- the command ----------------------------------------------------------------------------------


def score(row, unseen=None):
    """{{column: value}} -> {{{outputs}}}.

    A value is a number, a text, True or False, a date or moment, or None. `unseen`, a collections.Counter, counts
    levels that training did not meet, by (column, level, what it looks like).

    Raises:
        KeyError: a column is missing.
        ValueError: a value is not what the column needs; names the column.
    """
    scores = []
    for model, names in zip(MODELS, NAMES, strict=True):
        columns = record(model)["columns"]
        texts = {{c["name"]: text_of(row[names.get(c["name"], c["name"])], c) for c in columns}}
        scores.append(score_of(model, texts, unseen))
    return outcome(MODELS, scores)


def text_of(value, column):
    """A value -> the text that a csv file would have for it, None for no value."""
    if isinstance(value, str):
        return value if value.strip() else None
    if value is None or value != value:
        return None
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, dt.date):
        text = value.isoformat()
    elif isinstance(value, int):
        text = str(value)
    else:
        number = float(value)
        text = str(int(value)) if number.is_integer() else repr(number)
    if column["kind"] != "category" or text in (known := [*chosen(column), *(column["reference"] or [])]):
        return text
    same = [level for level in known if loosely(level) == loosely(text)]
    return same[0] if len(same) == 1 else text


def main(arguments):
    parser = argparse.ArgumentParser(description="Score the rows of a csv file.")
    parser.add_argument("--id", default="id", metavar="COLUMN", help="the column that names a row")
    parser.add_argument("--refuse-unseen", action="store_true", help="refuse a level that training did not meet")
    add_options_of_forms(parser)
    parser.add_argument("rows", metavar="ROWS", help="a csv file with the columns of the model")
    asked = parser.parse_args(arguments)
    forms = forms_of(asked, 1) * len(MODELS)
    tables = [read(asked.rows, asked.id, model, forms[0], names) for model, names in zip(MODELS, NAMES, strict=True)]
    write([asked.rows] * len(MODELS), MODELS, tables, forms, refuses_unseen=asked.refuse_unseen)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BrokenPipeError:  # who reads the scores has read enough
        sys.stderr.close()
    except (KeyError, OSError, TypeError, ValueError) as error:
        sys.exit(f"error: {{error if not isinstance(error, KeyError) else f'no field {{error}}'}}")
'''


def write_python(formula: Formula, models: Sequence[Mapping[str, Any]]) -> str:
    """Return the file.

    Args:
        models: the contents of the models' files, in the order of the formula's parts.
    """
    scorer = files(__package__).joinpath("scorer.py.txt").read_text("utf-8")
    functions = scorer[scorer.index(FIRST) : scorer.index(LAST)]
    kept = [_keep_needed(model, formula, part) for model, part in zip(models, formula.parts, strict=True)]
    tail = TAIL.format(
        about="\n".join(f"# {line}" for line in comment_lines(formula)),
        models=pprint.pformat(kept, width=110, sort_dicts=False),
        names=[_other_names(formula, part.party) for part in formula.parts],
        outputs=", ".join(f'"{name}": number' for name in formula.predictions),
    )
    return HEAD + functions + tail


def _keep_needed(model: Mapping[str, Any], formula: Formula, part: Part) -> dict[str, Any]:
    """Return the content without what no score needs, such as columns that were constant in training."""
    kept = {name: value for name, value in model.items() if name not in NOT_NEEDED}
    where = "scale" if "scale" in model else "standardiser"
    scaling = dict(model[where])
    scaling["columns"] = [name for name in scaling["columns"] if name in scaling["mean"]]
    if "table" in scaling:
        columns = {each.column.name for each in formula.inputs if each.party == part.party}
        recipes = {term.recipe.name for term in part.terms if term.recipe}
        table = dict(scaling["table"])
        table["columns"] = [column for column in table["columns"] if column["name"] in columns]
        table["recipes"] = [recipe for recipe in table.get("recipes", []) if recipe["name"] in recipes]
        scaling["table"] = table
    return kept | {where: scaling}


def _other_names(formula: Formula, party: str) -> dict[str, str]:
    return {
        each.column.name: each.name for each in formula.inputs if each.party == party and each.name != each.column.name
    }
