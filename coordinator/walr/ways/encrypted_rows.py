"""What the privacy statement says otherwise where the rows were hidden from the measurement server.

Source: the docstring of algorithms/protocols/walr/encrypted_rows.py; docs/guides/hide_labels_or_rows.md says more.
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
                f"Against {facts.active}, if it follows the protocol: epsilon {figure(facts.privacy.epsilon)}. Should "
                f"it send rows longer than it says, {facts.server} cannot see that, and epsilon is not what it says.",
                f"{facts.server}'s operator has allowed that (policy.unsafe, unchecked-rows).",
            ),
        )
    ]


def mechanism(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.active} clips every row to the norm {figure(facts.privacy.norm_bound)}; nobody checks it.",
        f"{facts.active} encrypts its rows under a Paillier key of its own; {facts.server} multiplies those whose "
        "label is 1, which adds them up, and adds noise once to the encrypted sum.",
    )


def server_learnt(facts: Figures) -> tuple[str, ...]:
    sent = quantity(facts.rows.sent, "row")
    return (
        f"The ids of the {sent} sent for training, how many columns they have, and the norm bound; no feature.",
        "It holds the labels already. Held-out rows were not sent to it.",
        "It knows neither the noisy sum nor the weights: both are encrypted, or never sent to it. (The file for "
        "auditors has the noisy sum: it is not for the operator of this server.)",
    )


def collusion(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.server} is trusted with the labels: it draws the noise and keeps the ledger. If it colludes with "
        f"{facts.active}, labels and rows are known to both.",
        f"{facts.active} is trusted to send rows as short as it says. Then what it, the coordinator and any other "
        f"clients of {facts.server} learn together about the labels of {facts.privacy.population} is bounded by the "
        f"budget, {measured.budget(facts)}.",
        f"A server that answers anything but the sum may learn of the rows from how {facts.active} takes it.",
    )
