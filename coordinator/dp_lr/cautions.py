"""Cautions that a reader needs before trusting a dp-lr model; each caution names what to do."""

from __future__ import annotations

import math

from blindfit.coordinator.dp_lr.figures import Figures
from blindfit.coordinator.report import quality
from blindfit.coordinator.report.evaluation import FEW_TEST_ROWS
from blindfit.coordinator.report.label_privacy import warn_of_large_delta
from blindfit.coordinator.terminal.wording import figure, quantity

UNDECLARED = (
    "epsilon does not cover what the start reveals about the rows that it was fitted to. If these rows are public, "
    "their owner sets datasets.NAME.public = true and makes the file by `blindfit pretrain`"
)
WEAK = 1 / 3  # of the clip norm: length of the noise in the mean of all iterations


def cautions_of(facts: Figures) -> list[str]:
    found = (
        _warn_of_noise(facts),
        _warn_of_undeclared_start(facts),
        _warn_of_scale(facts),
        _warn_of_iteration_budget(facts),
        _warn_of_few_test_rows(facts),
        quality.warn_of_no_gain(
            facts.evaluation, "Take more rows, fewer features, a larger epsilon or scaled features."
        ),
        warn_of_large_delta(facts.privacy.delta, facts.public_trained),
    )
    return [caution for caution in found if caution]


def noise_of_mean(facts: Figures) -> float:
    """Return the length of the noise in the mean of all iterations' gradients."""
    columns, iterations = facts.rows.features + 1, facts.settings.iterations
    return facts.fit.gradient_noise_std * math.sqrt(columns / iterations)


def _warn_of_noise(facts: Figures) -> str:
    noise, clip = noise_of_mean(facts), facts.settings.clip_norm
    if noise <= WEAK * clip:
        return ""
    return (
        f"Averaged over all iterations, the noise has length {figure(noise)}; a gradient has at most {figure(clip)}. "
        f"The model is hardly more than its start ({facts.start}). More rows, fewer features or a larger epsilon help."
    )


def _warn_of_undeclared_start(facts: Figures) -> str:
    return f"Descent starts at {facts.start}: {UNDECLARED}." if facts.fit.start == "undeclared" else ""


def _warn_of_scale(facts: Figures) -> str:
    if facts.fit.scale != "none":
        return ""
    return (
        "Features were used as they were read. A feature with large numbers takes up the whole of a clipped gradient. "
        "Declare dp_lr.feature_bounds, or scale by public rows (dp_lr.init, dp_lr.public_dataset)."
    )


def _warn_of_iteration_budget(facts: Figures) -> str:
    if facts.settings.budget == "run":
        return ""
    return (
        f"The job asked for epsilon {figure(facts.epsilon_asked)} in each iteration. All {facts.settings.iterations} "
        f"iterations spent {figure(facts.privacy.epsilon)}, and this is the promise."
    )


def _warn_of_few_test_rows(facts: Figures) -> str:
    classes = None if facts.evaluation is None else facts.evaluation.classes
    if classes is None or classes.rows >= FEW_TEST_ROWS:
        return ""
    rows = quantity(classes.rows, "row")
    return f"Only {rows} were held out: the figures of the evaluation are rough. Raise split.test_fraction."
