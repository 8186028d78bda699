"""The page of a vertical training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blindfit.coordinator.report import label_privacy, page, quality
from blindfit.coordinator.report.page import Card
from blindfit.coordinator.taylor.cautions import cautions_of
from blindfit.coordinator.taylor.defences import defences_of
from blindfit.coordinator.taylor.figures import Figures, figures_of
from blindfit.coordinator.taylor.plots import loss_plot
from blindfit.coordinator.terminal.wording import count, figure
from blindfit.coordinator.vertical import page as joint
from blindfit.parties.taylor.report import Calibration


def render(report: Mapping[str, Any]) -> str:
    facts = figures_of(report)
    return joint.render(
        "taylor/page.html.j2",
        report,
        facts,
        cautions=cautions_of(facts),
        cards=list(joint.cards(facts, report, ended=_describe_end(facts), promise=_promise(facts))),
        fitted=_describe_fit(facts),
        loss=loss_plot(facts.losses, facts.shared_rows.validation, relative=facts.relative_losses),
        curves=quality.plots(facts.evaluation),
        no_evaluation=_why_no_evaluation(facts),
        defences=defences_of(facts),
        steps=page.steps(
            report,
            {
                "read rows": facts.first_timing.read_s,
                "make keys, align": facts.first_timing.align_s,
                "scale, check what would leak": facts.first_timing.prepare_s,
                "train folds": facts.first_timing.select_s,
                "train": facts.first_timing.train_s,
                "score the test rows": facts.first_timing.evaluate_s,
            },
        ),
        parties=joint.party_rows(facts, report),
    )


# --- the fit ---- -----------------------------------------------------------------------------------


def _describe_fit(facts: Figures) -> str:
    """Return two sentences that describe the training."""
    settings, roles, rows = facts.job.taylor, facts.roles, facts.shared_rows
    which = (
        "slots, of which only the matches count"
        if facts.job.align.method == "linkage"
        else "rows that all parties have"
    )
    penalties = [f"{name} {figure(value)}" for name, value in (("l2", settings.l2), ("l1", settings.l1)) if value]
    return (
        f"{settings.model.capitalize()} regression on the Taylor loss, on {count(rows.common)} {which}: {roles.active} "
        f"has the labels, {count(len(roles.chain))} parties have features, {roles.key_node} has the key "
        f"({settings.key_bits} bits). Optimiser {settings.optimiser}, batches of {count(facts.batch_rows)} rows, "
        f"{', '.join(penalties) or 'no penalty'}."
    )


def _describe_end(facts: Figures) -> str:
    """Describe how training ended: only the key node reports losses, but the number of epochs shows an early stop."""
    stopped = facts.fit.epochs < facts.job.taylor.epochs
    if facts.losses:
        return facts.newest_loss + (", no longer falling" if stopped else "")
    return "the hold-out loss no longer fell" if stopped else "the number that the job asked for"


def _promise(facts: Figures) -> list[Card]:
    if facts.job.privacy is None:
        return [Card("Epsilon", "none", "no differential privacy")]
    if facts.privacy is None:  # in a passive party's own report
        return [Card("Epsilon", figure(facts.job.epsilon), f"at delta {figure(facts.job.privacy.delta)}")]
    return list(label_privacy.cards(facts.privacy))


# --- the rest ---------------------------------------------------------------------------------------


def _why_no_evaluation(facts: Figures) -> str:
    if facts.job.align.method == "linkage":
        none = "None: after linkage nobody learns which rows match, so no row can be evaluated by itself."
        return none if facts.calibration is None else f"{none} {_describe_calibration(facts.calibration)}"
    if facts.shared_rows.test == 0:
        return "None: no rows were kept for a test (split.test_fraction)."
    return f"{facts.roles.active} keeps the evaluation in its own report" + (
        ": under label DP figures made from labels are not published." if facts.job.privacy else "."
    )


def _describe_calibration(found: Calibration) -> str:
    if (found.slope, found.offset) == (1.0, 0.0):
        return "Hold-out rows were too few, or carried too little information, to calibrate the log odds."
    told = quality.calibration(found.slope, found.offset)
    return f"From five sums over the hold-out rows that match, {told}."
