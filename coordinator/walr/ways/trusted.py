"""What the privacy statement says where one measurement server is trusted with labels and rows.

Source: the docstring of algorithms/protocols/walr; docs/walr_trust.md says more.
"""

from __future__ import annotations

from blindfit.coordinator.measured import report as measured
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import capitalised, counted, figure
from blindfit.coordinator.walr.figures import Figures
from blindfit.coordinator.walr.ways.words import sensitivity


def two_sentences(facts: Figures) -> str:
    privacy = facts.privacy
    return (
        f"Epsilon {figure(privacy.epsilon)} at delta {figure(privacy.delta)} protects {privacy.unit}: "
        f"{facts.active} learnt only one noisy sum for each column. "
        f"{facts.server} saw the ids and the clipped rows that were trained on, and is trusted: "
        "if it colludes with anyone, the labels are known."
    )


def trust(facts: Figures) -> list[Section]:  # noqa: ARG001 - in one way alone
    return []


def mechanism(facts: Figures) -> Section:
    privacy = facts.privacy
    return Section(
        "mechanism",
        "Mechanism",
        (
            f"{capitalised(privacy.mechanism)}.",
            f"{facts.active} clips every row to the norm {figure(privacy.norm_bound)}, and {facts.server} enforces it.",
            f"{facts.server} adds up the rows whose label is 1, exactly, and adds noise once to the sum.",
            sensitivity(privacy),
        ),
    )


def server_learnt(facts: Figures) -> Section:
    sent = counted(facts.rows.sent, "row")
    return Section(
        "learnt-measurement",
        f"What {facts.server} (measurement server) learnt",
        (
            f"The ids and the standardised, clipped, rounded features of the {sent} sent for training.",
            "It holds the labels already. Held-out rows were not sent to it.",
            "Nobody sends it the weights, but it could compute them: it knows the rows, the noisy sum and the job.",
        ),
    )


def collusion(facts: Figures) -> Section:
    return measured.collusion(
        facts,
        revealed=f"every label is revealed to them, and so is every row that {facts.active} sent",
        whatever="whatever it sends",
    )
