"""What a reader must know before trusting a training in shares; each caution says what to do."""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.algorithms.protocols.falcon import WEIGHT_BOUND
from blindfit.algorithms.statistics.vertical.gradient_leaks import MOST_BITS_PER_ROW
from blindfit.coordinator.falcon import privacy, trust
from blindfit.coordinator.falcon.defences import GIVEN_UP
from blindfit.coordinator.falcon.figures import Figures
from blindfit.coordinator.report import quality
from blindfit.coordinator.terminal.wording import counted, figure, listed
from blindfit.coordinator.vertical import report as joint


def cautions_of(facts: Figures) -> list[str]:
    found = (
        *joint.unsafe("falcon.unsafe", facts.job.falcon.unsafe, GIVEN_UP),
        _pooled(facts),
        _unfinished(facts),
        quality.no_better(facts.evaluation, "Lower falcon.learning_rate, raise falcon.epochs, or take other columns."),
        *_clipped(facts),
        *privacy.cautions(facts),
        joint.few_test_rows(facts),
        *joint.shrunk(facts),
    )
    return [caution for caution in found if caution]


def _pooled(facts: Figures) -> str:
    """The limit holds for each party's weights by themselves."""
    pooled = facts.pooled
    if pooled is None or pooled.of_each_label <= MOST_BITS_PER_ROW:
        return ""
    return (
        f"{listed(facts.roles.passives)} together have up to {figure(pooled.of_each_label)} bits of each "
        f"training label in their weights, more than the {MOST_BITS_PER_ROW:g} that one of them may have: if they may "
        "pool them, train on more rows or on fewer columns."
    )


def _unfinished(facts: Figures) -> str:
    """Where a loss decides when to stop, and had not."""
    settings = facts.job.falcon
    if not trust.judges(facts.job) or facts.fit.epochs < settings.epochs:
        return ""
    return (
        f"Training ended after {counted(facts.fit.epochs, 'epoch')}, as many as were asked for, and not for "
        f"{counted(settings.patience, 'epoch')} without a better validation loss: the model may be unfinished. Raise "
        "falcon.epochs or falcon.learning_rate."
    )


def _clipped(facts: Figures) -> Iterator[str]:
    unit = " deviations of the label" if facts.job.falcon.model == "linear" else " deviations' worth of log odds"
    for party, number in facts.at_bound.items():
        yield (
            f"{counted(number, 'weight')} of {party} lay beyond {WEIGHT_BOUND:g}{unit}, and "
            "came out clipped: the model that the parties have is not the one that was trained. Raise falcon.l2, or "
            "leave out columns that nearly repeat each other."
        )
