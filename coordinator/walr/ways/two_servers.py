"""What the privacy statement says otherwise where the labels were split between two servers.

Source: the docstring of algorithms/protocols/walr/two_servers.py; docs/walr_trust.md says more.
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


def mechanism(facts: Figures) -> Section:
    privacy = facts.privacy
    return Section(
        "mechanism",
        "Mechanism",
        (
            f"{capitalised(privacy.mechanism)}, once at each of {facts.server}.",
            f"{facts.active} clips every row to the norm {figure(privacy.norm_bound)}, and each server enforces it.",
            "Each server adds up the rows times its shares of the labels, exactly and modulo 2^61 - 1, and adds noise "
            f"to the sum; {facts.active} adds both answers. The variance of the noise is so twice that of one trusted "
            "server.",
            sensitivity(privacy),
        ),
    )


def server_learnt(facts: Figures) -> Section:
    sent = counted(facts.rows.sent, "row")
    return Section(
        "learnt-measurement",
        f"What {facts.server} (measurement servers) learnt",
        (
            f"Each: the ids and the standardised, clipped, rounded features of the {sent} sent for training.",
            "Each holds one share of every label, a uniform number which alone tells nothing of it.",
            "They compared the id of their split, a digest of their ids and what they were asked; no share and no sum "
            "went between them. Held-out rows were not sent to them.",
        ),
    )


def collusion(facts: Figures) -> Section:
    privacy = facts.privacy
    budget = f"epsilon {figure(privacy.budget_epsilon)} at delta {figure(privacy.budget_delta)}"
    return Section(
        "collusion",
        "Who may collude with whom",
        (
            f"{facts.server} must not collude with each other: their shares together are the labels.",
            f"One of them may collude with {facts.active}, the coordinator and any other clients: what they learn "
            f"together about the labels of {privacy.population} is bounded by the budget of the other, {budget}.",
            f"{facts.active} is not trusted with labels: whatever it sends, and to whichever server, it learns no more "
            "than the budget allows.",
            "Whoever split the labels knows them. A server or a label holder that gives other numbers spoils the "
            "model, and nobody's privacy.",
            measured.WATCHED,
        ),
    )
