"""What the privacy statement says otherwise where labels and rows were in shares between two servers.

Source: the docstring of algorithms/protocols/walr/shared_rows.py; docs/guides/hide_labels_or_rows.md says more.
"""

from __future__ import annotations

from blindfit.coordinator.measured import report as measured
from blindfit.coordinator.report import label_privacy
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import figure, quantity
from blindfit.coordinator.walr.figures import Figures
from blindfit.coordinator.walr.ways import two_servers


def two_sentences(facts: Figures) -> str:
    return (
        f"{label_privacy.protects(facts.privacy)}: "
        f"{facts.active} learnt only one noisy sum for each column, even if it colludes with one of {facts.server}. "
        f"{facts.server} saw the ids that were trained on, no feature and no label: if both collude, or one of them "
        "with the key node, all are known."
    )


def trust(facts: Figures) -> list[Section]:
    return two_servers.trust(facts)


def mechanism(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.active} clips every row to the norm {figure(facts.privacy.norm_bound)}, and proves to both servers, "
        "in shares with MACs, that no row is longer: else neither answers.",
        "Rows times labels are added up in shares, exactly and modulo 2^61 - 1; each server adds noise to its "
        f"share, and {facts.active} adds both answers. The variance of the noise is so twice that of one trusted "
        "server.",
    )


def server_learnt(facts: Figures) -> tuple[str, ...]:
    sent = quantity(facts.rows.sent, "row")
    return (
        f"Each: the ids of the {sent} sent for training, how many columns they have, and the norm bound.",
        "What each got of rows and labels are uniform numbers, which alone tell nothing.",
        "Held-out rows were not sent.",
        "Neither knows the noisy sum, the weights or a score.",
    )


def key_node_learnt(facts: Figures) -> Section:
    return Section(
        "learnt-key-node",
        "What the key node learnt",
        (
            "For how many rows and columns it dealt masks, their norm bound, and for whom; no id, feature, label, sum "
            "or weight.",
            f"It knows every mask: with one of {facts.server} it would know rows and labels. With {facts.active} it "
            "learns no more than the noisy sum, if both follow the protocol.",
        ),
    )


def collusion(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.server} must not collude with each other, nor either of them with the key node, which deals the "
        "masks: together they know rows and labels.",
        f"One of the servers may collude with {facts.active}, the coordinator and any other clients: what they "
        f"learn together about the labels of {facts.privacy.population} is bounded by the budget of the other, "
        f"{measured.budget(facts)}.",
        *two_servers.about_parties(facts),
    )
