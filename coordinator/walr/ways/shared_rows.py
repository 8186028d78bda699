"""Sentences of the privacy statement if labels and rows are in shares between two servers.

Source: the docstring of algorithms/protocols/walr/shared_rows.py; see docs/guides/hide_labels_or_rows.md.
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
        "in shares with MACs, that no row is longer. Without the proof neither server answers.",
        "Rows times labels are added up in shares, exactly and modulo 2^61 - 1. Each server adds noise to its "
        f"share, and {facts.active} adds both answers. The noise therefore has twice the variance of one trusted "
        "server.",
    )


def server_learnt(facts: Figures) -> tuple[str, ...]:
    sent = quantity(facts.rows.sent, "row")
    return (
        f"Each: the ids of the {sent} sent for training, their number of columns, and the norm bound.",
        "In place of rows and labels each has uniform numbers, which reveal nothing by themselves.",
        "Held-out rows were not sent.",
        "Neither knows the noisy sum, the weights or a score.",
    )


def key_node_learnt(facts: Figures) -> Section:
    return Section(
        "learnt-key-node",
        "What the key node learnt",
        (
            "The numbers of rows and columns for which it dealt masks, their norm bound, and the parties; no id, "
            "feature, label, sum or weight.",
            f"It knows every mask: together with one of {facts.server} it would know rows and labels. Together with "
            f"{facts.active} it learns no more than the noisy sum, if both follow the protocol.",
        ),
    )


def collusion(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.server} must not collude with each other, nor either of them with the key node, which deals the "
        "masks: together they know rows and labels.",
        f"One of the servers may collude with {facts.active}, the coordinator and any other active parties: the budget "
        f"of the other server, {measured.budget(facts)}, bounds what they learn together about the labels of "
        f"{facts.privacy.population}.",
        *two_servers.about_parties(facts),
    )
