"""Cautions that a reader needs before trusting a training on secret shares; each caution names what to do."""

from __future__ import annotations

from collections.abc import Iterator

from blindfit.algorithms.protocols.falcon import WEIGHT_BOUND
from blindfit.algorithms.statistics.vertical.gradient_leaks import MOST_BITS_PER_ROW
from blindfit.coordinator.falcon import privacy, trust
from blindfit.coordinator.falcon.defences import GIVEN_UP
from blindfit.coordinator.falcon.figures import Figures
from blindfit.coordinator.report import quality
from blindfit.coordinator.terminal.wording import figure, join_names, quantity
from blindfit.coordinator.vertical import report as joint
from blindfit.coordinator.vertical.selection import name_the_grid


def cautions_of(facts: Figures) -> list[str]:
    found = (
        *joint.warn_of_unsafe("falcon.unsafe", facts.job.falcon.unsafe, GIVEN_UP),
        _warn_of_pooling(facts),
        _warn_of_early_end(facts),
        quality.warn_of_no_gain(
            facts.evaluation, "Lower falcon.learning_rate, raise falcon.epochs, or take other columns."
        ),
        *_warn_of_clipped_weights(facts),
        *privacy.cautions(facts),
        joint.warn_of_few_test_rows(facts),
        *joint.warn_of_shrunk_rows(facts),
    )
    return [name_the_grid(caution, facts.job, "falcon") for caution in found if caution]


def _warn_of_pooling(facts: Figures) -> str:
    """Warn of parties that pool their weights: the limit holds for each party's weights by themselves."""
    pooled = facts.pooled
    if pooled is None or pooled.of_each_label <= MOST_BITS_PER_ROW:
        return ""
    return (
        f"The weights of {join_names(facts.roles.passives)} together have up to {figure(pooled.of_each_label)} bits of "
        f"each training label. The limit for one of them is {MOST_BITS_PER_ROW:g}. If they may pool their weights, "
        "train on more rows or on fewer columns."
    )


def _warn_of_early_end(facts: Figures) -> str:
    """Warn of a training that reached its last epoch before the loss ended it."""
    settings = facts.job.falcon
    if not trust.judges(facts.job) or facts.fit.epochs < settings.epochs:
        return ""
    return (
        f"Training ran all {quantity(facts.fit.epochs, 'epoch')} of the job. It did not end by "
        f"{quantity(settings.patience, 'epoch')} without a better validation loss, so the model may be unfinished. "
        "Raise falcon.epochs or falcon.learning_rate."
    )


def _warn_of_clipped_weights(facts: Figures) -> Iterator[str]:
    unit = " deviations of the label" if facts.job.falcon.model == "linear" else " deviations' worth of log odds"
    for party, number in facts.at_bound.items():
        yield (
            f"{quantity(number, 'weight')} of {party} lay beyond {WEIGHT_BOUND:g}{unit} and "
            "came out clipped: the model that the parties have is not the model that was trained. Raise falcon.l2, or "
            "leave out columns that nearly repeat each other."
        )
