"""Write a model as one file of Python that needs no package: docs/scorer.py, the model, and tail.py.txt."""

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


def write_python(formula: Formula, models: Sequence[Mapping[str, Any]]) -> str:
    """Return the file.

    Args:
        models: the contents of the models' files, in the order of the formula's parts.
    """
    scorer, tail = (files(__package__).joinpath(name).read_text("utf-8") for name in ("scorer.py.txt", "tail.py.txt"))
    functions = scorer[scorer.index(FIRST) : scorer.index(LAST)]
    kept = [_keep_needed(model, formula, part) for model, part in zip(models, formula.parts, strict=True)]
    tail = tail.format(
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
