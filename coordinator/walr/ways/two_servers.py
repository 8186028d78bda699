"""What the privacy statement says otherwise where the labels were split between two servers.

Source: the docstring of algorithms/protocols/walr/two_servers.py; docs/guides/hide_labels_or_rows.md says more.
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
        f"{facts.active} learnt only one noisy sum for each column, even if it colludes with one of {facts.server}. "
        f"{facts.server} saw the ids and the clipped rows that were trained on, and no label: "
        "if both collude, the labels are known."
    )


def trust(facts: Figures) -> list[Section]:
    privacy = facts.privacy
    together = (
        f"Against {facts.active} together with one of {facts.server}: epsilon {figure(privacy.epsilon)}. This is "
        "what both ledgers charge; it holds if the other server is honest."
    )
    alone = (
        f"Against {facts.active} alone: epsilon {figure(privacy.epsilon_of_both or privacy.epsilon)} at the same "
        "delta, as both servers have answered the same request, each with a whole noise of its own."
    )
    return [Section("trust", "Against whom", (together, alone))]


def mechanism(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.active} clips every row to the norm {figure(facts.privacy.norm_bound)}, and each server enforces it.",
        "Each server adds up the rows times its shares of the labels, exactly and modulo 2^61 - 1, and adds noise "
        f"to the sum; {facts.active} adds both answers. The variance of the noise is so twice that of one trusted "
        "server.",
    )


def server_learnt(facts: Figures) -> tuple[str, ...]:
    sent = quantity(facts.rows.sent, "row")
    return (
        f"Each: the ids and the standardised, clipped, rounded features of the {sent} sent for training.",
        "Each holds one share of every label, a uniform number which alone tells nothing of it.",
        "They compared the id of their split, a digest of their ids and what they were asked; no share and no sum "
        "went between them. Held-out rows were not sent to them.",
    )


def collusion(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.server} must not collude with each other: their shares together are the labels.",
        f"One of them may collude with {facts.active}, the coordinator and any other clients: what they learn "
        f"together about the labels of {facts.privacy.population} is bounded by the budget of the other, "
        f"{measured.budget(facts)}.",
        *about_parties(facts),
    )


def about_parties(facts: Figures) -> tuple[str, str]:
    """Return what the active party, and those who give shares of labels, can do with them."""
    return (
        f"{facts.active} is not trusted with labels: whatever it sends, and to whichever server, it learns no more "
        "than the budget allows.",
        "Whoever split the labels knows them. A server or a label holder that gives other numbers spoils the "
        "model, and nobody's privacy.",
    )
