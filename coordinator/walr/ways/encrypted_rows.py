"""What the privacy statement says otherwise where the rows were hidden from the measurement server.

Source: the docstring of algorithms/protocols/walr/encrypted_rows.py; docs/walr_trust.md says more.
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
        f"Epsilon {figure(privacy.epsilon)} at delta {figure(privacy.delta)} protects {privacy.unit}, if "
        f"{facts.active} follows the protocol: it learnt only one noisy sum for each column. "
        f"{facts.server} saw the ids that were trained on and no feature, and could not check the rows."
    )


def trust(facts: Figures) -> list[Section]:
    return [
        Section(
            "trust",
            "Against whom",
            (
                f"Against {facts.active}, if it follows the protocol: epsilon {figure(facts.privacy.epsilon)}. Should "
                f"it send rows longer than it says, {facts.server} cannot see that, and epsilon is not what it says.",
                f"{facts.server}'s operator has allowed that (policy.unsafe, unchecked-rows).",
            ),
        )
    ]


def mechanism(facts: Figures) -> Section:
    privacy = facts.privacy
    return Section(
        "mechanism",
        "Mechanism",
        (
            f"{capitalised(privacy.mechanism)}.",
            f"{facts.active} clips every row to the norm {figure(privacy.norm_bound)}; nobody checks it.",
            f"{facts.active} encrypts its rows under a Paillier key of its own; {facts.server} multiplies those whose "
            "label is 1, which adds them up, and adds noise once to the encrypted sum.",
            sensitivity(privacy),
        ),
    )


def server_learnt(facts: Figures) -> Section:
    sent = counted(facts.rows.sent, "row")
    return Section(
        "learnt-measurement",
        f"What {facts.server} (measurement server) learnt",
        (
            f"The ids of the {sent} sent for training, how many columns they have, and the norm bound; no feature.",
            "It holds the labels already. Held-out rows were not sent to it.",
            "It knows neither the noisy sum nor the weights: both are encrypted, or never sent to it. (The file for "
            "auditors has the noisy sum: it is not for the operator of this server.)",
        ),
    )


def collusion(facts: Figures) -> Section:
    privacy = facts.privacy
    budget = f"epsilon {figure(privacy.budget_epsilon)} at delta {figure(privacy.budget_delta)}"
    return Section(
        "collusion",
        "Who may collude with whom",
        (
            f"{facts.server} is trusted with the labels: it draws the noise and keeps the ledger. If it colludes with "
            f"{facts.active}, labels and rows are known to both.",
            f"{facts.active} is trusted to send rows as short as it says. Then what it, the coordinator and any other "
            f"clients of {facts.server} learn together about the labels of {privacy.population} is bounded by the "
            f"budget, {budget}.",
            f"A server that answers anything but the sum may learn of the rows from how {facts.active} takes it.",
            measured.WATCHED,
        ),
    )
