"""The page of a training on secret shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from blindfit.coordinator.falcon import privacy, trust
from blindfit.coordinator.falcon.cautions import cautions_of
from blindfit.coordinator.falcon.defences import defences_of
from blindfit.coordinator.falcon.figures import Figures, figures_of
from blindfit.coordinator.report import page
from blindfit.coordinator.report.page import Card, PartyRow
from blindfit.coordinator.terminal.wording import count, figure
from blindfit.coordinator.vertical import page as joint


def render(report: Mapping[str, Any]) -> str:
    facts = figures_of(report)
    return joint.render(
        "falcon/page.html.j2",
        report,
        facts,
        cautions=cautions_of(facts),
        cards=list(joint.cards(facts, report, ended=_describe_end(facts), promise=list(_promise(facts)))),
        fitted=_describe_fit(facts),
        no_evaluation=_why_no_evaluation(facts),
        opened=list(_list_opened_weights(facts)),
        defences=list(defences_of(facts)),
        steps=page.steps(
            report,
            {
                "read rows": facts.first_timing.read_s,
                "align": facts.first_timing.align_s,
                "scale": facts.first_timing.prepare_s,
                "put in": facts.first_timing.put_in_s,
                "train folds": facts.first_timing.select_s,
                "train": facts.first_timing.train_s,
                "evaluate, open weights": facts.first_timing.evaluate_s,
            },
        ),
        parties=list(_parties(facts, report)),
    )


# --- the fit -----------------------------------------------------------------------------------------


def _describe_fit(facts: Figures) -> str:
    """Return two sentences that describe the training."""
    settings, roles, rows = facts.job.falcon, facts.roles, facts.shared_rows
    penalties = [f"{name} {figure(value)}" for name, value in (("l2", settings.l2), ("l1", settings.l1)) if value]
    penalty = ", ".join(penalties) or "no penalty"
    weighted = ", equal total weight for both classes" if settings.class_weights == "balanced" else ""
    drawn = ", each drawn from all rows" if settings.sampling == "replacement" else ""
    return (
        f"{settings.model.capitalize()} regression in secret shares {facts.macs}, on {count(rows.common)} rows that "
        f"all parties have: {roles.active} has the labels, {count(len(roles.chain))} parties have features, "
        f"{roles.key_node} "
        f"deals. Optimiser {settings.optimiser}, batches of {count(facts.batch_rows)} rows{drawn}, {penalty}{weighted}."
    )


def _describe_end(facts: Figures) -> str:
    stopped = trust.judges(facts.job) and facts.fit.epochs < facts.job.falcon.epochs
    return "the validation loss no longer fell" if stopped else "the number that the job asked for"


def _promise(facts: Figures) -> Iterator[Card]:
    if facts.job.privacy is not None:
        yield from privacy.cards(facts)
        return
    yield Card("Epsilon", "none", "no differential privacy")
    if facts.stays_shared:
        yield Card("Bits of a label", "0", "in weights: nobody has a weight")
    elif facts.kept_bits is None:
        yield Card("Bits of a label", "no limit", "weights were not rounded")
    elif facts.most_told is not None:
        yield Card("Bits of a label", figure(facts.most_told), "at most, in a passive party's weights")


# --- opened values -------------------------------------------------------------------------------------


def _list_opened_weights(facts: Figures) -> Iterator[tuple[str, str, str, str, str]]:
    """List for each passive party: name, weights, bits of each weight, of all, of a label."""
    for name, own in facts.opened.items():
        yield name, count(own.weights), count(own.bits), count(own.all_bits), figure(own.of_each_label)
    if (pooled := facts.pooled) is not None:
        yield (
            "together",
            count(pooled.weights),
            count(pooled.bits),
            count(pooled.all_bits),
            figure(pooled.of_each_label),
        )


# --- the rest --------------------------------------------------------------------------------------------


def _why_no_evaluation(facts: Figures) -> str:
    if facts.job.privacy is not None:
        return "None: epsilon does not pay for figures of test rows, so they are not opened."
    if facts.shared_rows.test == 0:
        return "None: no rows were kept for a test (split.test_fraction)."
    if facts.job.falcon.model == "linear":
        return f"{facts.roles.active} keeps the evaluation in its own report."
    return (
        f"{facts.roles.active} keeps the evaluation in its own report. If all test rows have one class, nothing is "
        "evaluated."
    )


def _parties(facts: Figures, report: Mapping[str, Any]) -> Iterator[PartyRow]:
    for row in joint.party_rows(facts, report):
        yield replace(row, model="its shares") if facts.stays_shared and row.name in facts.roles.chain else row
