"""The page of a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from blindfit.coordinator.report.page import render_template
from blindfit.coordinator.simulate import pictures, shown
from blindfit.coordinator.simulate.recommendation import RULES
from blindfit.version import __version__

if TYPE_CHECKING:
    from blindfit.coordinator.simulate.results import Results


def render(results: Results, recommendation: Sequence[str], about: Sequence[str], asked: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        about: sentences about the conditions of the figures.
        asked: values of options, by name.
    """
    return render_template(
        "simulate/page.html.j2",
        title=f"Simulation of {asked['label']}",
        version=__version__,
        recommendation=recommendation,
        rules=RULES,
        about=about,
        heads=shown.heads(results),
        lines=list(shown.cells(results)),
        failures=shown.failures(results),
        limits=shown.limits_passed(results),
        rows=results.done,
        plots=list(pictures.draw(results)),
        asked=[(name, _as_text(value)) for name, value in sorted(asked.items())],
    )


def _as_text(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_as_text(each)}" for name, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_as_text, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
