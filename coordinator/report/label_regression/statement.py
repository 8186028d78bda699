"""The privacy statement of a label-dp report: what is protected, how well, who learnt what, who must not collude.

Source: the docstring of algorithms/protocols/release_labels.py (model, what each role learns).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blindfit.algorithms.privacy.ledger import LedgerEntry
from blindfit.coordinator.report import label_dp
from blindfit.coordinator.report.label_regression.figures import Figures, figures_of
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.report.wording import count, counted, figure
from blindfit.parties.store.store import StoredLabels


def privacy_statement(report: Mapping[str, Any]) -> list[Section]:
    """Raises:
    DataError: a figure is missing, so nothing can be promised.
    """
    facts = figures_of(report)
    return [
        _unit(facts),
        label_dp.neighbours(facts.privacy),
        label_dp.epsilon(facts.privacy),
        _delta(facts),
        _mechanism(facts),
        _noise(facts),
        _composition(facts),
        _active_learnt(facts),
        _server_learnt(facts),
        _coordinator_learnt(facts, all_here=bool(report["parties_here"])),
        Section("learnt-key-node", "What a key node learnt", ("Nothing. This protocol uses none.",)),
        _collusion(facts),
        _not_covered(),
    ]


def two_sentences(facts: Figures) -> str:
    privacy = facts.privacy
    return (
        f"Epsilon {figure(privacy.epsilon)} at delta {figure(privacy.delta)} protects {privacy.unit}: "
        f"{facts.active} learnt a noisy label of each of its rows. "
        f"{facts.server} saw their ids, and is trusted: if it colludes with anyone, the labels are known."
    )


# --- the promise ---------------------------------------------------------------------------------------


def _unit(facts: Figures) -> Section:
    most = facts.privacy.max_rows_per_person
    if most:
        scope = (
            f"The protected unit is {facts.privacy.unit}, taken together.",
            f"{facts.server} releases at most {counted(most, 'row')} of a person; further rows get no label.",
        )
    else:
        scope = (f"The protected unit is {facts.privacy.unit}: its whole value.", label_dp.ROWS_OF_A_PERSON)
    return Section("unit", "What is protected", scope)


def _delta(facts: Figures) -> Section:
    if facts.privacy.delta:
        return label_dp.delta(facts.privacy, facts.rows.sent)
    return Section("delta", "Delta", ("delta = 0: the promise holds for every outcome, without exception.",))


def _mechanism(facts: Figures) -> Section:
    privacy = facts.privacy
    sentences = [
        f"{privacy.mechanism}, on each label by itself.",
        f"Labels are clipped to the declared range [{privacy.label_lo:g}, {privacy.label_hi:g}] and rounded to a "
        f"public grid of {count(privacy.grid_cells)} cells; outputs are integers of that grid, drawn exactly.",
    ]
    if privacy.max_rows_per_person:
        sentences.append(
            f"Each row's label costs epsilon {figure(privacy.epsilon_of_row)}; those of a person's rows add up."
        )
    if privacy.prior_mechanism:
        sentences.append(
            f"Epsilon {figure(privacy.epsilon_prior)} of each row went into an estimate of how the labels are "
            f"distributed ({privacy.prior_mechanism}), which chose the mechanism; the rest into the labels."
        )
    return Section("mechanism", "Mechanism", tuple(sentences))


def _noise(facts: Figures) -> Section:
    privacy = facts.privacy
    treated = "The mean of what is released is the label, as clipped and rounded."
    if privacy.has_a_bias and facts.fit.debiased:
        treated = "Its bias was removed by a public map, which is post-processing; what clipping does remains."
    elif privacy.has_a_bias:
        treated = f"Its bias, of up to {figure(privacy.largest_bias)}, was not removed."
    return Section(
        "noise",
        "Noise",
        (
            f"Its standard deviation is about {figure(privacy.noise_std)} on each label"
            + (", after debiasing." if facts.fit.debiased else "."),
            treated,
            "It is drawn from the operating system's generator; no seed of the job enters it.",
        ),
    )


def _composition(facts: Figures) -> Section:
    privacy = facts.privacy
    releases = counted(privacy.releases, "release") + (", which" if privacy.releases == 1 else ", which together")
    return Section(
        "composition",
        "What it was composed with",
        (
            "Labels of different units are randomised apart, so one release of all of them costs what one costs.",
            label_dp.budget(privacy),
            f"After this job the ledger holds {releases} spent epsilon {figure(privacy.spent_epsilon)}; "
            f"{figure(privacy.left_epsilon)} is left.",
            label_dp.COMPOSED,
            "The noisy labels are remembered: the same release again, of any rows and to anyone, gives the same ones. "
            "No new noise, no new charge, and nothing that averages out.",
            f"{facts.server} keeps the ledger; these figures are as {facts.active} was told them. "
            "Releases of the same labels outside this ledger are not counted.",
        ),
    )


# --- who learnt what ---------------------------------------------------------------------------------------


def _active_learnt(facts: Figures) -> Section:
    missed = facts.rows.withheld
    which = f", and which {counted(missed, 'row')} got none" if missed else ""
    return Section(
        "learnt-active",
        f"What {facts.active} (active party) learnt",
        (
            f"A noisy label of each of its {counted(facts.rows.sent - missed, 'row')}, held-out ones included{which}.",
            "The mechanism with all its parameters, and what was released about this population before.",
            "Everything after it, the model, its predictions and its estimated error, is computed from the noisy "
            "labels and its own rows: post-processing, which costs no further privacy.",
            "That all the ids it sent are in the dataset.",
            *(
                (f"Its own true labels, with which it evaluated the model; they are not {facts.server}'s.",)
                if facts.fit.evaluated_on_true_labels
                else ()
            ),
        ),
    )


def _server_learnt(facts: Figures) -> Section:
    return Section(
        "learnt-measurement",
        f"What {facts.server} (measurement server) learnt",
        (
            f"The ids of the {counted(facts.rows.sent, 'row')}, and no feature.",
            "It holds the labels already. Nobody sends it the model or a prediction.",
        ),
    )


def _coordinator_learnt(facts: Figures, *, all_here: bool) -> Section:
    sentences = [
        "Names of parties, datasets, the population and dropped columns; the job's parameters; counts of rows and "
        "columns; the range, the noise and the bias of the mechanism; times, memory and bytes.",
        "No row, id, label, noisy label, weight, prediction or error of the model.",
    ]
    if all_here:
        sentences.append(
            "In this run, however, all parties ran on this machine: whoever can read its files sees all of them, and "
            f"this report shows the model of {facts.active}. Between organisations the coordinator never gets it."
        )
    return Section("learnt-coordinator", "What the coordinator learnt", tuple(sentences))


# --- who may collude ---------------------------------------------------------------------------------------


def _collusion(facts: Figures) -> Section:
    privacy = facts.privacy
    budget = f"epsilon {figure(privacy.budget_epsilon)} at delta {figure(privacy.budget_delta)}"
    return Section(
        "collusion",
        "Who may collude with whom",
        (
            f"{facts.server} is trusted: it holds the labels in the clear, draws the noise and keeps the ledger. "
            "If it colludes with anyone, every label is revealed to them.",
            f"{facts.active} is not trusted with labels: whatever it asks for, it learns no more than the budget "
            "allows.",
            f"{facts.active}, the coordinator and any other clients of {facts.server} may collude: what they learn "
            f"together about the labels of {privacy.population} is bounded by the budget, {budget}.",
            "Whoever only watches the network sees who talks to whom, when, and how much: connections are encrypted.",
        ),
    )


def _not_covered() -> Section:
    return Section(
        "not-covered",
        "What epsilon does not cover",
        (
            "Features, ids, and which rows there are. A model depends on its owner's features without any noise: "
            "consider that before giving it away.",
            "What follows from a true correlation: a good model predicts labels, even of people outside the data.",
            "How long a computation takes.",
        ),
    )


def released(_entry: LedgerEntry, labels: StoredLabels | None) -> str:
    """What an entry of a ledger paid for, where it was a release of labels; else empty."""
    if labels is None:
        return ""
    of_what = "every label" if labels.directory else "prior alone"
    return f'{of_what}, {labels.mechanism}, "{labels.release}"'
