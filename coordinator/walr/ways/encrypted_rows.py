"""Sentences of the privacy statement if the rows are hidden from the measurement server.

Source: the docstring of algorithms/protocols/walr/encrypted_rows.py; see docs/guides/hide_labels_or_rows.md.
"""

from __future__ import annotations

from blindfit.coordinator.measured import report as measured
from blindfit.coordinator.report import label_privacy
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import figure, quantity
from blindfit.coordinator.walr.figures import Figures


def two_sentences(facts: Figures) -> str:
    return (
        f"{label_privacy.protects(facts.privacy)}, if "
        f"{facts.active} follows the protocol: it learnt only one noisy sum for each column. "
        f"{facts.server} saw the ids that were trained on and no feature, and could not check the rows."
    )


def trust(facts: Figures) -> list[Section]:
    return [
        Section(
            "trust",
            "Against whom",
            (
                f"Against {facts.active}, if it follows the protocol: epsilon {figure(facts.privacy.epsilon)}. If it "
                f"sends rows longer than it states, {facts.server} cannot see this, and epsilon no longer holds.",
                f"{facts.server}'s operator has allowed this (policy.unsafe, unchecked-rows).",
            ),
        )
    ]


def mechanism(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.active} clips every row to the norm {figure(facts.privacy.norm_bound)}; nobody checks it.",
        f"{facts.active} encrypts its rows under its own Paillier key. {facts.server} multiplies the rows whose label "
        "is 1, which adds them up, and adds noise once to the encrypted sum.",
    )


def server_learnt(facts: Figures) -> tuple[str, ...]:
    sent = quantity(facts.rows.sent, "row")
    return (
        f"The ids of the {sent} sent for training, how many columns they have, and the norm bound; no feature.",
        "It holds the labels already. Held-out rows were not sent to it.",
        "It knows neither the noisy sum nor the weights: both are encrypted, or never sent to it. (The file for "
        "auditors has the noisy sum: do not give it to the operator of this server.)",
    )


def collusion(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.server} is trusted with the labels: it draws the noise and keeps the ledger. If it colludes with "
        f"{facts.active}, labels and rows are known to both.",
        f"{facts.active} is trusted to send rows as short as it states. Then the budget, {measured.budget(facts)}, "
        f"bounds what it, the coordinator and any other active parties of {facts.server} learn together about the "
        f"labels of {facts.privacy.population}.",
        f"A server that answers anything but the sum may learn about the rows from the reaction of {facts.active}.",
    )
