"""Cautions that a reader needs before trusting a WALR fit; each caution names what to do."""

from __future__ import annotations

from blindfit.coordinator.report.label_privacy import warn_of_large_delta
from blindfit.coordinator.terminal.wording import count, figure, join_names, percent, quantity
from blindfit.coordinator.walr.figures import Figures

MOST_CLIPPED = 0.05


def cautions_of(facts: Figures) -> list[str]:
    found = (
        _warn_of_infeasible(facts),
        _warn_of_no_convergence(facts),
        _warn_of_uncounted_rows(facts),
        _warn_of_unknown_ids(facts),
        _warn_of_clipped_rows(facts),
        warn_of_large_delta(facts.privacy.delta, facts.rows.trained),
    )
    return [caution for caution in found if caution]


def _warn_of_infeasible(facts: Figures) -> str:
    fit = facts.fit
    if fit.feasible is not False:
        return ""
    reason = f": {fit.feasibility}" if fit.feasibility else ""  # only the active party knows it
    treated = {"clip": "it was clipped before the fit", "project": "it was projected before the fit"}
    return (
        f"No labels could give the released noisy mean{reason}. The noise is large for these rows; "
        f"{treated.get(fit.mu, 'only the regulariser keeps the weights finite')} (l2 = {figure(fit.l2)}). "
        "More rows, fewer features or a larger epsilon would help."
    )


def _warn_of_no_convergence(facts: Figures) -> str:
    fit = facts.fit
    if fit.converged:
        return ""
    norm = "" if fit.gradient_norm is None else f" (gradient norm {figure(fit.gradient_norm)})"
    return (
        f"The solver {fit.solver} did not converge in {quantity(fit.iterations, 'iteration')}: {fit.reason}{norm}. "
        "Raise walr.max_iterations or walr.l2."
    )


def _warn_of_uncounted_rows(facts: Figures) -> str:
    rows, most = facts.rows, facts.privacy.max_rows_per_person
    if not rows.not_counted:
        return ""
    if facts.privacy.holders:
        why = f"not all of {join_names([facts.active, *facts.privacy.holders])} have them"
        many = ", or their person already had enough rows" if most else ""
        return f"{quantity(rows.not_counted, 'row')} of {count(rows.sent)} did not count: {why}{many}."
    why = f"their person already had {quantity(most, 'row')}" if most else f"{facts.server} left them out"
    return f"{quantity(rows.not_counted, 'row')} of {count(rows.sent)} did not count, nor in the model: {why}."


def _warn_of_unknown_ids(facts: Figures) -> str:
    rows = facts.rows
    if not rows.unknown:
        return ""
    return (
        f"{facts.server} does not have the ids of {quantity(rows.unknown, 'row')} of {count(rows.sent)}. Training used "
        'label 0 for them (its dataset sets unknown_rows = "zero"). If a missing id does not mean label 0, leave '
        f'these rows out, or ask {facts.server} to set unknown_rows = "refuse".'
    )


def _warn_of_clipped_rows(facts: Figures) -> str:
    rows = facts.rows
    if rows.clipped is None or rows.clipped <= MOST_CLIPPED * rows.sent:
        return ""
    return (
        f"{quantity(rows.clipped, 'row')} ({percent(rows.clipped / rows.sent)}) were longer than the norm bound "
        f"{figure(facts.privacy.norm_bound)} and were clipped. A larger walr.norm_bound clips fewer rows and adds more "
        "noise."
    )
