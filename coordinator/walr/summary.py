"""The terminal output of a WALR job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.coordinator.report import fitted_rows, label_privacy, page
from blindfit.coordinator.terminal.wording import count, duration, figure, quantity
from blindfit.coordinator.walr.figures import figures_of


def summary(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    facts = figures_of(report)
    rows, privacy, fit = facts.rows, facts.privacy, facts.fit
    ended = "converged" if fit.converged else "did not converge"
    yield "job", f"{report['name']} ({report['session']})"
    yield fitted_rows.summary(rows)
    yield "features", count(rows.features)
    yield label_privacy.summary(privacy)
    yield "noise", f"{figure(privacy.noise_std_of_mean)} in each mean, {figure(privacy.noise_std_of_sum)} in each sum"
    yield "fit", f"{fit.solver}, {quantity(fit.iterations, 'iteration')}, {ended}, l2 {figure(fit.l2)}"
    yield label_privacy.budget_summary(privacy)
    yield "time", duration(page.total_seconds(report, facts.timing))
