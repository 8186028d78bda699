"""The privacy statement of a label-dp report: what is protected, how strongly, who learnt what, who may collude.

Source: the docstring of algorithms/protocols/label_dp/release.py (model, what each role learns).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blindfit.algorithms.privacy.ledger import LedgerEntry
from blindfit.coordinator.label_dp.figures import Figures, figures_of
from blindfit.coordinator.measured import report as measured
from blindfit.coordinator.report import label_privacy
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import count, figure, quantity
from blindfit.parties.store.answers import StoredLabels

COORDINATOR_LEARNT = (
    "Names of parties, datasets and the population; the job's parameters; counts of rows and "
    "columns; the range, the noise and the bias of the mechanism; times, memory and bytes.",
    "No row, id, label, noisy label, weight, prediction or error of the model.",
)


def privacy_statement(report: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the statement.

    Raises:
        DataError: a figure is missing, so nothing can be promised.
    """
    facts = figures_of(report)
    return [
        _unit(facts),
        label_privacy.neighbours(facts.privacy),
        label_privacy.epsilon(facts.privacy),
        _delta(facts),
        _mechanism(facts),
        _noise(facts),
        _composition(facts),
        _active_learnt(facts),
        _server_learnt(facts),
        measured.coordinator_learnt(facts, COORDINATOR_LEARNT, all_here=bool(report["parties_here"])),
        measured.key_node_learnt(),
        measured.collusion(
            measured.describe_trust(
                facts, revealed="every label is revealed to them", despite="no matter what it asks for"
            )
        ),
        measured.not_covered(),
    ]


def two_sentences(facts: Figures) -> str:
    return (
        f"{label_privacy.protects(facts.privacy)}: {facts.active} learnt a noisy label of each of its rows. "
        f"{facts.server} saw their ids, and is trusted: if it colludes with anyone, the labels are known."
    )


# --- the promise ---------------------------------------------------------------------------------------


def _unit(facts: Figures) -> Section:
    most = quantity(facts.privacy.max_rows_per_person, "row")
    return measured.unit(
        facts,
        of_a_row="its whole value.",
        of_a_person=f"releases at most {most} labels of a person; further rows get no label.",
    )


def _delta(facts: Figures) -> Section:
    if facts.privacy.delta:
        return label_privacy.delta(facts.privacy, facts.rows.sent)
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
            f"Each row's label costs epsilon {figure(privacy.epsilon_of_row)}; the costs of a person's rows add up."
        )
    if privacy.prior_mechanism:
        sentences.append(
            f"Epsilon {figure(privacy.epsilon_prior)} of each row paid for an estimate of the distribution of labels "
            f"({privacy.prior_mechanism}), which chose the mechanism. The rest paid for the labels."
        )
    return Section("mechanism", "Mechanism", tuple(sentences))


def _noise(facts: Figures) -> Section:
    privacy = facts.privacy
    treated = "The mean of a released label is the clipped and rounded label."
    if privacy.has_a_bias and facts.fit.debiased:
        treated = "Its bias was removed by a public map, which is post-processing; the effect of clipping remains."
    elif privacy.has_a_bias:
        treated = f"Its bias, of up to {figure(privacy.largest_bias)}, was not removed."
    return measured.noise(
        f"Its standard deviation is about {figure(privacy.noise_std)} on each label"
        + (", after debiasing." if facts.fit.debiased else "."),
        treated,
    )


def _composition(facts: Figures) -> Section:
    return measured.composition(
        facts,
        each=(
            "Labels of different units are randomised independently, so one release of all labels costs as much as "
            "that of one unit.",
        ),
        again="The noisy labels are remembered: the same release again, of any rows and to anyone, gives the same "
        "labels. It has no new noise and no new charge, and repeats average nothing out.",
    )


# --- knowledge ----- ---------------------------------------------------------------------------------------


def _active_learnt(facts: Figures) -> Section:
    missed = facts.rows.withheld
    which = f", and which {quantity(missed, 'row')} got no label" if missed else ""
    return measured.active_learnt(
        facts,
        f"A noisy label of each of its {quantity(facts.rows.sent - missed, 'row')}, held-out ones included{which}.",
        "The mechanism with all its parameters, and what was released about this population before.",
        "Everything after it, the model, its predictions and its estimated error, is computed from the noisy "
        "labels and its own rows: post-processing, which costs no further privacy.",
        "The fact that all the ids it sent are in the dataset.",
        *(
            (f"Its own true labels, with which it evaluated the model; these labels do not come from {facts.server}.",)
            if facts.fit.evaluated_on_true_labels
            else ()
        ),
    )


def _server_learnt(facts: Figures) -> Section:
    return Section(
        "learnt-measurement",
        f"What {facts.server} (measurement server) learnt",
        (
            f"The ids of the {quantity(facts.rows.sent, 'row')}, and no feature.",
            "It holds the labels already. Nobody sends it the model or a prediction.",
        ),
    )


def describe_release(_entry: LedgerEntry, labels: StoredLabels | None) -> str:
    """Name what a ledger's entry paid for if it was a release of labels; else return an empty text."""
    if labels is None:
        return ""
    of_what = (
        "every label" if labels.labels_sha256 else "under way, or lost" if labels.is_under_way else "only the prior"
    )
    return f'{of_what}, {labels.mechanism}, "{labels.release}"'
