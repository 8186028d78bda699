"""The terminal output of a vertical training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.report import label_privacy, page, quality
from blindfit.coordinator.taylor.defences import list_defences
from blindfit.coordinator.taylor.figures import Figures, figures_of
from blindfit.coordinator.terminal.wording import duration, quantity
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.vertical import selection


def summary(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    facts = figures_of(report)
    yield "job", f"{report['name']} ({report['session']})"
    yield from joint.row_lines(facts, "hold-out")
    yield from selection.lines(facts.selected)
    loss = f", {facts.newest_loss}" if facts.losses else ""
    yield "fit", f"{facts.job.taylor.model}, {quantity(facts.fit.epochs, 'epoch')}{loss}"
    yield "test", _quality(facts)
    if facts.privacy is not None:
        yield label_privacy.summary(facts.privacy)
        yield label_privacy.budget_summary(facts.privacy)
    else:
        yield "defences", list_defences(facts)
    yield "time", duration(page.total_seconds(report, facts.first_timing))


def _quality(facts: Figures) -> str:
    elsewhere = f"known only to {facts.roles.active}" if facts.shared_rows.test else "no test rows"
    return quality.in_short(facts.evaluation) or elsewhere
