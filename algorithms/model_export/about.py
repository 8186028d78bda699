"""Say in an exported file what it is: whose model, of which training, and how private."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from blindfit.algorithms.model_export.formula import Formula
from blindfit.algorithms.texts import printable


def facts(formula: Formula) -> dict[str, str]:
    """Return each fact by its name, in the order in which files show them."""
    parties = ", ".join(part.party for part in formula.parts if part.party)
    outputs = ", ".join(formula.outputs)
    return {**formula.about, **({"parties in this file": parties} if parties else {}), "outputs": outputs}


def comment_lines(formula: Formula) -> Iterator[str]:
    """Yield lines without control characters, which nothing in the model can end before their time."""
    yield "A model that Blindfit fitted."
    for name, text in facts(formula).items():
        yield from textwrap.wrap(printable(f"{name}: {text}"), 110, subsequent_indent="    ")
