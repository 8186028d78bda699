"""The part of a report about the promise and the budget of a release under label DP."""

from __future__ import annotations

import math
from collections.abc import Iterator

from blindfit.coordinator.report.page import Card
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import count, figure, quantity
from blindfit.parties.training.report import LabelPrivacy


def cards(privacy: LabelPrivacy) -> Iterator[Card]:
    yield Card("Epsilon", figure(privacy.epsilon), f"at delta {figure(privacy.delta)}")
    yield Card("Budget left", figure(privacy.left_epsilon), f"of {figure(privacy.budget_epsilon)}")


def summary(privacy: LabelPrivacy) -> tuple[str, str]:
    """Return the terminal's line about epsilon."""
    return "privacy", f"epsilon {figure(privacy.epsilon)}, delta {figure(privacy.delta)}, {privacy.unit}"


def budget_summary(privacy: LabelPrivacy) -> tuple[str, str]:
    spent, budget = figure(privacy.spent_epsilon), figure(privacy.budget_epsilon)
    return "budget", f"{spent} of {budget} spent on {privacy.population}, {figure(privacy.left_epsilon)} left"


def warn_of_large_delta(delta: float, rows: int) -> str:
    if delta * rows < 1:
        return ""
    return (
        f"delta = {figure(delta)} is not below one in the number of rows ({count(rows)}): "
        "a mechanism that reveals some row outright would meet it. Choose a smaller privacy.delta."
    )


def protects(privacy: LabelPrivacy) -> str:
    return f"Epsilon {figure(privacy.epsilon)} at delta {figure(privacy.delta)} protects {privacy.unit}"


# --- sections of the statement ------------------------------------------------------------------------


def neighbours(privacy: LabelPrivacy) -> Section:
    return Section("neighbours", "Neighbouring data", (f"Two sets of labels are neighbours if {privacy.neighbours}.",))


def epsilon(privacy: LabelPrivacy) -> Section:
    return Section(
        "epsilon",
        "Epsilon",
        (
            f"epsilon = {figure(privacy.epsilon)}.",
            "For every pair of neighbours and every set of outcomes, the probability under one is at most e^epsilon "
            f"times the probability under the other, plus delta; e^epsilon = {figure(math.exp(privacy.epsilon))}.",
        ),
    )


def delta(privacy: LabelPrivacy, rows: int) -> Section:
    return Section(
        "delta",
        "Delta",
        (
            f"delta = {figure(privacy.delta)}.",
            f"It should be far below one in the number of rows, here 1/{count(rows)} = {figure(1 / max(1, rows))}.",
        ),
    )


def budget(privacy: LabelPrivacy) -> str:
    return (
        f"All releases about the population {privacy.population} share one budget: epsilon "
        f"{figure(privacy.budget_epsilon)} at delta {figure(privacy.budget_delta)}."
    )


def spent(privacy: LabelPrivacy, releases: int) -> str:
    """Return a sentence about the spent budget.

    Args:
        releases: number of releases in the ledger, with this job's.
    """
    held = quantity(releases, "release") + (", which" if releases == 1 else ", which together")
    return (
        f"After this job the ledger holds {held} spent epsilon {figure(privacy.spent_epsilon)}; "
        f"{figure(privacy.left_epsilon)} is left."
    )


ROWS_OF_A_PERSON = (
    "A person with several rows is protected only row by row. For k rows of one person, epsilon is up to k "
    "times as large and delta grows as well."
)
COMPOSED = "Epsilons are composed by an accountant, not added. A release that would exceed the budget is refused."
