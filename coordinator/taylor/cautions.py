"""Cautions that a reader needs before trusting a vertical training; each caution names what to do."""

from __future__ import annotations

from blindfit.coordinator.report import quality
from blindfit.coordinator.report.label_privacy import warn_of_large_delta
from blindfit.coordinator.taylor.defences import GIVEN_UP
from blindfit.coordinator.taylor.figures import Figures
from blindfit.coordinator.terminal.wording import figure, join_names, quantity
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.vertical.selection import name_the_grid


def cautions_of(facts: Figures) -> list[str]:
    found = (
        *joint.warn_of_unsafe("taylor.unsafe", facts.job.taylor.unsafe, GIVEN_UP),
        _warn_of_early_end(facts),
        _warn_of_rising_loss(facts),
        _warn_of_unsettled(facts),
        quality.warn_of_no_gain(
            facts.evaluation, "Lower taylor.learning_rate, raise taylor.epochs, or take other columns."
        ),
        joint.warn_of_few_test_rows(facts),
        *joint.warn_of_shrunk_rows(facts),
        _warn_of_clipped_labels(facts),
        _warn_of_delta(facts),
    )
    return [name_the_grid(caution, facts.job, "taylor") for caution in found if caution]


def _warn_of_early_end(facts: Figures) -> str:
    """Warn of a loss that still fell noticeably when the epochs ran out."""
    losses = facts.losses
    if len(losses) < 2 or facts.fit.epochs < facts.job.taylor.epochs:
        return ""
    fell = min(losses[:-1]) - losses[-1]
    if fell <= max(facts.job.taylor.tolerance, 0.01 * abs(losses[-1])):
        return ""
    return (
        f"The hold-out loss still fell by {figure(fell)} in the last of {quantity(facts.fit.epochs, 'epoch')}: "
        "training is unfinished. Raise taylor.epochs or taylor.learning_rate."
    )


def _warn_of_rising_loss(facts: Figures) -> str:
    losses = facts.losses
    if not losses or losses[-1] <= 1.1 * min(losses) + facts.job.taylor.tolerance:
        return ""
    best = losses.index(min(losses))
    return (
        f"The hold-out loss was {figure(losses[best])} after epoch {best + 1} and {figure(losses[-1])} at the end, "
        "and the model is from the end. Lower taylor.learning_rate, or raise taylor.l2."
    )


def _warn_of_unsettled(facts: Figures) -> str:
    if not facts.unsettled:
        return ""
    return (
        f"The training has not settled at {join_names(facts.unsettled)}: every step of the last epoch was "
        "shortened. Lower taylor.learning_rate."
    )


def _warn_of_clipped_labels(facts: Figures) -> str:
    labels = facts.labels
    if labels is None or not labels.clipped:
        return ""
    where = f"outside {figure(labels.range[0])} to {figure(labels.range[1])}" if labels.range else "far from their mean"
    return (
        f"{quantity(labels.clipped, 'label')} of {facts.roles.active} lay {where}, and training used their clipped "
        "values: the model learns nothing of how far out they are. This number comes from labels: do not publish it."
    )


def _warn_of_delta(facts: Figures) -> str:
    return warn_of_large_delta(facts.privacy.delta, facts.shared_rows.trained) if facts.privacy else ""
