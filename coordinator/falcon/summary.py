"""The terminal output of a training on secret shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.falcon import privacy
from blindfit.coordinator.falcon.defences import list_defences
from blindfit.coordinator.falcon.figures import Figures, figures_of
from blindfit.coordinator.report import page, quality
from blindfit.coordinator.terminal.wording import duration, figure, quantity
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.vertical import selection


def summary(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    facts = figures_of(report)
    yield "job", f"{report['name']} ({report['session']})"
    yield from joint.row_lines(facts, "validation")
    yield from selection.lines(facts.selected)
    yield "fit", f"{facts.job.falcon.model}, in shares {facts.macs}, {quantity(facts.fit.epochs, 'epoch')}"
    yield "test", quality.in_short(facts.evaluation) or why_none(facts)
    yield from privacy.lines(facts)
    yield "defences", list_defences(facts)
    if facts.most_told is not None:
        yield (
            "weights",
            f"{facts.weight_bits} bits each: a passive party has at most {figure(facts.most_told)} bits of each label",
        )
    if facts.stays_shared:
        yield "weights", "in shares: nobody has the model; `blindfit predict` scores with it"
    yield "time", duration(page.total_seconds(report, facts.first_timing))


def why_none(facts: Figures) -> str:
    """Explain why there are no figures of test rows, or who has them."""
    if not facts.shared_rows.test:
        return "no test rows"
    if facts.job.falcon.model == "linear":
        return f"known only to {facts.roles.active}"
    return f"known only to {facts.roles.active}, if its test rows have both classes"
