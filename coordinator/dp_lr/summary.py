"""The lines of the terminal after a dp-lr job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.dp_lr.figures import Figures, figures_of
from blindfit.coordinator.report import fitted_rows, label_privacy, page, quality
from blindfit.coordinator.terminal.wording import count, duration, figure, quantity


def summary(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    facts = figures_of(report)
    rows = facts.rows
    yield "job", f"{report['name']} ({report['session']})"
    yield fitted_rows.summary(rows)
    yield "features", f"{count(rows.features)}, {facts.scale}"
    yield label_privacy.summary(facts.privacy)
    yield "noise", f"standard deviation {figure(facts.fit.gradient_noise_std)} on each coordinate of a mean gradient"
    yield "fit", f"{quantity(facts.settings.iterations, 'iteration')} from {facts.start}"
    yield "test", _quality(facts)
    yield label_privacy.budget_summary(facts.privacy)
    if not facts.privacy.charged_now:
        yield "charged", "before; the same job on the same rows has the same model"
    yield "time", duration(page.total_seconds(report, facts.timing))


def _quality(facts: Figures) -> str:
    if told := quality.in_short(facts.evaluation):
        return told
    return f"known only to {facts.active}" if facts.rows.held_out else "no test rows"
