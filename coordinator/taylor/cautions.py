"""What a reader must know before trusting a vertical training; each caution says what to do."""

from __future__ import annotations

from blindfit.coordinator.report import quality
from blindfit.coordinator.report.label_privacy import large_delta
from blindfit.coordinator.taylor.defences import GIVEN_UP
from blindfit.coordinator.taylor.figures import Figures
from blindfit.coordinator.terminal.wording import counted, figure, listed
from blindfit.coordinator.vertical import report as joint


def cautions_of(facts: Figures) -> list[str]:
    found = (
        *joint.unsafe("taylor.unsafe", facts.job.taylor.unsafe, GIVEN_UP),
        _unfinished(facts),
        _rising(facts),
        _unsettled(facts),
        quality.no_better(facts.evaluation, "Lower taylor.learning_rate, raise taylor.epochs, or take other columns."),
        joint.few_test_rows(facts),
        *joint.shrunk(facts),
        _clipped(facts),
        _delta(facts),
    )
    return [caution for caution in found if caution]


def _unfinished(facts: Figures) -> str:
    """The loss still fell by more than what counts when the epochs ran out."""
    losses = facts.losses
    if len(losses) < 2 or facts.fit.epochs < facts.job.taylor.epochs:
        return ""
    fell = min(losses[:-1]) - losses[-1]
    if fell <= max(facts.job.taylor.tolerance, 0.01 * abs(losses[-1])):
        return ""
    return (
        f"The hold-out loss still fell, by {figure(fell)} in the last of {counted(facts.fit.epochs, 'epoch')}: "
        "the model is unfinished. Raise taylor.epochs or taylor.learning_rate."
    )


def _rising(facts: Figures) -> str:
    losses = facts.losses
    if not losses or losses[-1] <= 1.1 * min(losses) + facts.job.taylor.tolerance:
        return ""
    best = losses.index(min(losses))
    return (
        f"The hold-out loss was {figure(losses[best])} after epoch {best + 1} and {figure(losses[-1])} in the end, "
        "and the model is that of the end. Lower taylor.learning_rate, or raise taylor.l2."
    )


def _unsettled(facts: Figures) -> str:
    if not facts.unsettled:
        return ""
    return (
        f"The training has not settled at {listed(facts.unsettled)}: every step of the last epoch was "
        "shortened. Lower taylor.learning_rate."
    )


def _clipped(facts: Figures) -> str:
    labels = facts.labels
    if labels is None or not labels.clipped:
        return ""
    where = f"outside {figure(labels.range[0])} .. {figure(labels.range[1])}" if labels.range else "far from their mean"
    return (
        f"{counted(labels.clipped, 'label')} of {facts.roles.active} lay {where}, and entered the training clipped: "
        "the model learns nothing of how far out they are. This figure was made from labels; it is not for publishing."
    )


def _delta(facts: Figures) -> str:
    return large_delta(facts.privacy.delta, facts.shared_rows.trained) if facts.privacy else ""
