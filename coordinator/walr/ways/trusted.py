"""Sentences of the privacy statement if one measurement server is trusted with labels and rows.

Source: the docstring of algorithms/protocols/walr; see docs/guides/hide_labels_or_rows.md.
"""

from __future__ import annotations

from blindfit.coordinator.measured import report as measured
from blindfit.coordinator.report import label_privacy
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import figure, quantity
from blindfit.coordinator.walr.figures import Figures


def two_sentences(facts: Figures) -> str:
    return (
        f"{label_privacy.protects(facts.privacy)}: "
        f"{facts.active} learnt only one noisy sum for each column. "
        f"{facts.server} saw the ids and the clipped rows that were trained on, and is trusted: "
        "if it colludes with anyone, the labels are known."
    )


def trust(facts: Figures) -> list[Section]:  # noqa: ARG001 - other ways need it
    return []


def mechanism(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.active} clips every row to the norm {figure(facts.privacy.norm_bound)}, and {facts.server} "
        "enforces it.",
        f"{facts.server} adds up the rows whose label is 1, exactly, and adds noise once to the sum.",
    )


def server_learnt(facts: Figures) -> tuple[str, ...]:
    sent = quantity(facts.rows.sent, "row")
    return (
        f"The ids and the standardised, clipped, rounded features of the {sent} sent for training.",
        "It holds the labels already. Held-out rows were not sent to it.",
        "No party sends it the weights, but it could compute them: it knows the rows, the noisy sum and the job.",
    )


def collusion(facts: Figures) -> tuple[str, ...]:
    return measured.describe_trust(
        facts,
        revealed=f"every label is revealed to them, and so is every row that {facts.active} sent",
        despite="no matter what it sends",
    )
