"""A vertical training in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.report import label_privacy, page
from blindfit.coordinator.report.vertical.defences import switched_on
from blindfit.coordinator.report.vertical.figures import Figures, figures_of
from blindfit.coordinator.report.wording import count, counted, duration, figure


def summary(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    facts = figures_of(report)
    rows = facts.shared_rows
    yield "job", f"{report['name']} ({report['session']})"
    held_out = f"{count(rows.validation)} hold-out, {count(rows.test)} test"
    yield "rows", f"{count(rows.common)} in common: {count(rows.trained)} trained on, {held_out}"
    yield "features", ", ".join(f"{count(own.features)} of {party}" for party, own in facts.rows.items())
    loss = f", hold-out loss {figure(facts.losses[-1])}" if facts.losses else ""
    yield "fit", f"{facts.job.taylor.model}, {counted(facts.fit.epochs, 'epoch')}{loss}"
    yield "test", _quality(facts)
    if facts.privacy is not None:
        yield label_privacy.summary(facts.privacy)
        yield label_privacy.budget_summary(facts.privacy)
    else:
        yield "defences", switched_on(facts)
    yield "time", duration(page.total_seconds(report, facts.first_timing))


def _quality(facts: Figures) -> str:
    found = facts.evaluation
    if found is not None and found.classes is not None:
        c = found.classes
        return f"AUC {c.auc:.4f}, KS {c.ks:.4f}, log loss {c.log_loss:.4f}, accuracy {c.accuracy:.4f}"
    if found is not None and found.values is not None:
        return f"R squared {found.values.r2:.4f}, mean squared error {figure(found.values.mse)}"
    return f"known to {facts.roles.active} alone" if facts.shared_rows.test else "no test rows"
