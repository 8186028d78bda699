"""Sentences of the privacy statement if the labels are split between two servers.

Source: the docstring of algorithms/protocols/walr/two_servers.py; see docs/guides/hide_labels_or_rows.md.
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
    against_active = (
        f"Against only {facts.active}: epsilon {figure(privacy.epsilon_of_both or privacy.epsilon)} at the same "
        "delta, because both servers have answered the same request, each with its own full noise."
    )
    return [Section("trust", "Against whom", (together, against_active))]


def mechanism(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.active} clips every row to the norm {figure(facts.privacy.norm_bound)}, and each server enforces it.",
        "Each server adds up the rows times its shares of the labels, exactly and modulo 2^61 - 1, and adds noise to "
        f"the sum; {facts.active} adds both answers. The noise therefore has twice the variance of one trusted server.",
    )


def server_learnt(facts: Figures) -> tuple[str, ...]:
    sent = quantity(facts.rows.sent, "row")
    return (
        f"Each: the ids and the standardised, clipped, rounded features of the {sent} sent for training.",
        "Each holds one share of every label, a uniform number that reveals nothing by itself.",
        "They compared the id of their split, a digest of their ids, and the request. They exchanged no share and no "
        "sum. Held-out rows were not sent to them.",
    )


def collusion(facts: Figures) -> tuple[str, ...]:
    return (
        f"{facts.server} must not collude with each other: their shares together are the labels.",
        f"One of them may collude with {facts.active}, the coordinator and any other active parties: the budget of the "
        f"other server, {measured.budget(facts)}, bounds what they learn together about the labels of "
        f"{facts.privacy.population}.",
        *about_parties(facts),
    )


def about_parties(facts: Figures) -> tuple[str, str]:
    """Return what the active party can do with labels, and what parties that give shares of labels can do."""
    return (
        f"{facts.active} is not trusted with labels: no matter what it sends, and to which server, it learns no more "
        "than the budget allows.",
        "The party that split the labels knows them. A server or a splitting party that gives other numbers spoils the "
        "model, but nobody's privacy.",
    )
