"""Sentences of the privacy statement if several parties hold columns of the same people.

Source: the docstring of algorithms/protocols/walr/several_parties.py; see docs/guides/several_passive_parties.md.
"""

from __future__ import annotations

from blindfit.coordinator.measured import report as measured
from blindfit.coordinator.report import label_privacy
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import count, figure, join_names, quantity
from blindfit.coordinator.walr.figures import Figures


def in_words(facts: Figures) -> str:
    """Return the names of the passive parties."""
    return join_names(facts.privacy.holders)


def _all(facts: Figures) -> str:
    return join_names([facts.active, *facts.privacy.holders])


def two_sentences(facts: Figures) -> str:
    return (
        f"{label_privacy.protects(facts.privacy)}: "
        f"{_all(facts)} each learnt only the weights of their own columns, {facts.active} also "
        f"one noisy sum for each of its own. {facts.server} saw the ids and the clipped rows of all of them, and is "
        "trusted: if it colludes with anyone, labels and rows are known."
    )


def trust(facts: Figures) -> list[Section]:
    return [
        Section(
            "trust",
            "Whose columns",
            (
                f"{_all(facts)} hold columns of the same people; {facts.server} joined them by "
                f"id: {quantity(facts.rows.trained, 'row')} that all of them have.",
                f"{facts.server} fitted the model once for this release, and sent each party the weights of its own "
                "columns. No party with columns has a whole model: `blindfit predict` scores new rows jointly.",
            ),
        )
    ]


def mechanism(facts: Figures) -> tuple[str, ...]:
    return (
        f"Each party clips its part of a row to its own norm. Whole rows have a norm of at most "
        f"{figure(facts.privacy.norm_bound)}, and {facts.server} enforces each part.",
        f"{facts.server} leaves out columns with fewer than 20 effective rows. It shortens rows that stand out in the "
        "columns of all parties except any one, so that no party reads one row's score.",
        f"{facts.server} adds up the rows whose label is 1, exactly, and adds noise once to the sum.",
    )


def active_learnt(facts: Figures) -> Section:
    return measured.active_learnt(
        facts,
        "One noisy sum for each of its own columns, and the weights of its own columns, rounded to a quarter of "
        "their statistical error at least.",
        f"About {in_words(facts)}: the number of columns of each and its norm bound; the number of common rows "
        f"({count(facts.rows.trained)}); and whether a column of its own has 20 effective rows among them.",
        "It also received the description of the dataset, and the list of earlier releases about this population.",
    )


def passive_learnt(facts: Figures) -> Section:
    return Section(
        "learnt-passive",
        f"What {in_words(facts)} (passive parties) learnt",
        (
            "Each: the weights of its own columns, rounded in the same way; the grid of the rows, which reveals the "
            "norm of whole rows within a factor of two; and the number of common rows.",
            "Weights depend on the columns of the other parties. Over all fits of the same rows, weights may reveal at "
            "most one bit for every four rows about the columns of a party.",
        ),
    )


def server_learnt(facts: Figures) -> tuple[str, ...]:
    return (
        f"The ids and the standardised, clipped, rounded features that {_all(facts)} sent "
        "for training, and the whole model.",
        "It holds the labels already. Held-out rows were not sent to it.",
    )


def collusion(facts: Figures) -> tuple[str, ...]:
    return measured.describe_trust(
        facts,
        revealed=f"every label is revealed to them, and every row that {_all(facts)} sent",
        despite="no matter what it sends, also together with the other parties that have columns",
    )
