"""The privacy statement of a dp-lr report: what is protected, how strongly, from whom, and what is not.

Source: the docstrings of algorithms/statistics/dp_lr/descent.py and algorithms/privacy/noisy_iterations.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blindfit.algorithms.privacy.ledger import LedgerEntry
from blindfit.coordinator.dp_lr.cautions import UNDECLARED
from blindfit.coordinator.dp_lr.figures import Figures, figures_of
from blindfit.coordinator.report import label_privacy
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import count, figure, quantity
from blindfit.parties.dp_lr.budget import UNIT
from blindfit.parties.dp_lr.report import PrivacyFigures
from blindfit.parties.store.answers import StoredLabels


def privacy_statement(report: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the statement.

    Raises:
        DataError: a figure is missing, so nothing can be promised.
    """
    facts = figures_of(report)
    return [
        _unit(facts),
        _neighbours(facts),
        label_privacy.epsilon(facts.privacy),
        label_privacy.delta(facts.privacy, facts.public_trained),
        _mechanism(facts),
        _noise(facts),
        _composition(facts),
        _public(facts),
        _active_learnt(facts),
        _coordinator_learnt(facts, all_here=bool(report["parties_here"])),
        _collusion(facts),
        _not_covered(facts),
    ]


def two_sentences(facts: Figures) -> str:
    privacy = facts.privacy
    return (
        f"Epsilon {figure(privacy.epsilon)} at delta {figure(privacy.delta)} protects {privacy.unit}, in the model. "
        f"Figures on held-out rows have no such promise: {facts.active} keeps them."
    )


# --- the promise ---------------------------------------------------------------------------------------


def _unit(facts: Figures) -> Section:
    return Section(
        "unit",
        "What is protected",
        (
            f"The protected unit is {facts.privacy.unit}, against anyone who gets the model.",
            label_privacy.ROWS_OF_A_PERSON,
        ),
    )


def _neighbours(facts: Figures) -> Section:
    said = f"Two sets of rows are neighbours if {facts.privacy.neighbours}."
    return Section("neighbours", "Neighbouring data", (said,))


def _mechanism(facts: Figures) -> Section:
    chosen = facts.settings
    sentences = [
        f"{facts.privacy.mechanism}.",
        f"Each row's gradient, with the part of the intercept, is clipped to the norm {figure(chosen.clip_norm)} "
        "before it is summed. Sums are of integers, and exact.",
        "Iterations are fixed beforehand: nothing that depends on the rows decides when to stop.",
    ]
    if chosen.batch_fraction < 1:
        sentences.append(f"Each iteration takes each row with probability {chosen.batch_fraction:g}, in secret.")
    return Section("mechanism", "Mechanism", tuple(sentences))


def _noise(facts: Figures) -> Section:
    std, summed = figure(facts.fit.gradient_noise_std), round(facts.public_trained * facts.settings.batch_fraction)
    is_expected = facts.settings.batch_fraction < 1 or facts.settings.public_rows is not None
    rows = quantity(summed, "row") + (", the expected number" if is_expected else "")
    if facts.settings.public_rows is not None:
        rows += " by dp_lr.public_rows"
    loss = (
        f"A share of {facts.settings.loss_share:g} of the budget paid for the training loss of each iteration."
        if facts.settings.loss_share
        else "The training rows' loss was not released."
    )
    return Section(
        "noise",
        "Noise",
        (
            f"Its standard deviation is {figure(facts.privacy.noise_multiplier)} times what one row can change, drawn "
            f"for each coordinate by itself: {std} on the mean gradient over {rows}.",
            loss,
            "It is drawn from the operating system's generator; no seed of the job enters it.",
        ),
    )


def _describe_mixed_units(privacy: PrivacyFigures) -> Iterator[str]:
    if privacy.spent_neighbours != privacy.neighbours:
        yield (
            f"Not all of them protect whole rows: together they protect where {privacy.spent_neighbours}. "
            "No budget covers what the label-DP releases reveal about features."
        )


def _composition(facts: Figures) -> Section:
    privacy, chosen = facts.privacy, facts.settings
    composed = "by privacy loss distributions, rounded up" if chosen.batch_fraction < 1 else "exactly"
    asked = (
        f"Each iteration is ({figure(facts.epsilon_asked)}, {figure(privacy.delta)})-DP by itself; "
        if chosen.budget == "iteration"
        else ""
    )
    return Section(
        "composition",
        "Composition",
        (
            f"{asked}{count(chosen.iterations)} iterations are composed {composed} to epsilon "
            f"{figure(privacy.epsilon)}.",
            label_privacy.budget(privacy),
            label_privacy.spent(privacy, privacy.releases),
            label_privacy.COMPOSED,
            *_describe_mixed_units(privacy),
            "The release was charged in the transaction that keeps its answer: the same job on the same rows gives the "
            "same model, without new noise or charge."
            if privacy.charged_now
            else "This model was released, and charged, before: the same job on the same rows has the same answer.",
            f"{facts.active} keeps the ledger. Releases of the same rows outside this ledger are not counted.",
        ),
    )


def _public(facts: Figures) -> Section:
    start, public = f"Descent started at {facts.start}; features are {facts.scale}.", facts.settings.public_rows
    job = "The job with all its numbers, names of features, how many rows there are, and that both classes occur."
    if public is not None:
        job = (
            f"The job with all its numbers, and names of features. How many rows there are is protected: "
            f"dp_lr.public_rows, {count(public)}, stands for it."
        )
    return Section(
        "public",
        "What is taken to be public",
        (
            start,
            job,
            "Rows that a start was fitted to, and declared bounds, have no privacy at all: they must not come from the "
            "private rows.",
        ),
    )


# --- knowledge ---------------------------------------------------------------------------------------


def _active_learnt(facts: Figures) -> Section:
    kept = f", and with them {facts.active} computed the figures of the evaluation" if facts.rows.held_out else ""
    return Section(
        "learnt-active",
        f"What {facts.active} (active party) learnt",
        (f"It holds all rows{kept}. Nothing came from anyone else.",),
    )


def _coordinator_learnt(facts: Figures, *, all_here: bool) -> Section:
    are_public = facts.settings.public_rows is None
    counts = "counts of rows and columns" if are_public else "how many columns there are"
    sentences = [
        f"Names of the party, its dataset, population and dropped columns; the job's parameters; {counts}; the noise; "
        "times and memory.",
        "No row, label, score, weight or figure on held-out rows"
        + ("." if are_public else ", nor how many rows there are: numbers of rows here follow from dp_lr.public_rows."),
    ]
    if all_here:
        sentences.append(
            "In this run, however, the party ran on this machine: anyone who can read its files sees all of them. "
            f"This report shows the model of {facts.active} and its figures on held-out rows."
        )
    return Section("learnt-coordinator", "What the coordinator learnt", tuple(sentences))


def _collusion(facts: Figures) -> Section:
    return Section(
        "collusion",
        "Who may collude with whom",
        (
            f"{facts.active} is trusted: it holds the rows in the clear, draws the noise and keeps the ledger.",
            "All who get its models may collude, and may know every row but one: what they learn of that row is "
            "bounded by the budget.",
        ),
    )


def _not_covered(facts: Figures) -> Section:
    held_out = (
        (
            f"Figures on held-out rows, and their scores: they were made from private rows without noise. "
            f"{facts.active} keeps them, and publishing them is a separate release.",
        )
        if facts.rows.held_out
        else ()
    )
    return Section(
        "not-covered",
        "What epsilon does not cover",
        (
            *held_out,
            *([f"Descent started at {facts.start}: {UNDECLARED}."] if facts.fit.start == "undeclared" else []),
            "Conclusions from a true correlation: a good model predicts labels, even of people outside the data.",
            "The duration of a computation.",
        ),
    )


def describe_release(entry: LedgerEntry, _labels: StoredLabels | None) -> str:
    """Name what a ledger's entry paid for if it was a model of whole rows; else return an empty text."""
    return "model" if entry.unit.startswith(UNIT) else ""
