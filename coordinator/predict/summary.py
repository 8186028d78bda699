"""The terminal output of a prediction."""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.coordinator.predict.figures import figures_of
from blindfit.coordinator.report import page
from blindfit.coordinator.report.kind import Report
from blindfit.coordinator.terminal.wording import duration, figure, quantity


def summary(report: Report) -> Iterator[tuple[str, str]]:
    facts = figures_of(report)
    yield "job", f"{report['name']} ({report['session']})"
    yield "model", f"from the training {facts.training}{', in shares: nobody has it' if facts.in_shares else ''}"
    yield "rows", f"{quantity(facts.common, 'row')} scored, which every data party has"
    if facts.scores is not None and facts.scores.mean is not None and facts.scores.median is not None:
        yield facts.scores.of, f"mean {figure(facts.scores.mean)}, median {figure(facts.scores.median)}"
    yield "time", duration(page.total_seconds(report, facts.timing))


def places(report: Report) -> Iterator[tuple[str, str]]:
    facts = figures_of(report)
    kept = f"kept by {facts.roles.active}, with its own report"
    yield "scores", kept if facts.scores is None else facts.scores.where
