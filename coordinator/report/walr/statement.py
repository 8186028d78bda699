"""The privacy statement of a WALR report: what is protected, how well, who learnt what, who must not collude.

Source: the docstring of algorithms/protocols/walr.py (model, what each role learns); docs/ says more on each point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blindfit.algorithms.privacy.events import UNITS
from blindfit.algorithms.privacy.ledger import LedgerEntry
from blindfit.coordinator.report import label_dp
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.report.walr.figures import Figures, figures_of
from blindfit.coordinator.report.wording import counted, figure
from blindfit.parties.store.store import StoredLabels


def privacy_statement(report: Mapping[str, Any]) -> list[Section]:
    """Args:
    report: as in report.json; its `parties` hold what the active party reported.

    Raises:
        DataError: a figure is missing, so nothing can be promised.
    """
    facts = figures_of(report)
    return [
        _unit(facts),
        label_dp.neighbours(facts.privacy),
        label_dp.epsilon(facts.privacy),
        label_dp.delta(facts.privacy, facts.rows.trained),
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
        f"{facts.active} learnt only one noisy sum for each column. "
        f"{facts.server} saw the ids and the clipped rows that were trained on, and is trusted: "
        "if it colludes with anyone, the labels are known."
    )


# --- the promise ---------------------------------------------------------------------------------------


def _unit(facts: Figures) -> Section:
    most = facts.privacy.max_rows_per_person
    if most:
        scope = (
            f"The protected unit is {facts.privacy.unit}, taken together.",
            f"{facts.server} lets at most {counted(most, 'row')} of a person count; further rows are left out.",
        )
    else:
        scope = (
            f"The protected unit is {facts.privacy.unit}: whether it is 0 or 1.",
            label_dp.ROWS_OF_A_PERSON,
        )
    return Section("unit", "What is protected", scope)


def _mechanism(facts: Figures) -> Section:
    privacy = facts.privacy
    return Section(
        "mechanism",
        "Mechanism",
        (
            f"{privacy.mechanism[:1].upper()}{privacy.mechanism[1:]}.",
            f"{facts.active} clips every row to the norm {figure(privacy.norm_bound)}, and {facts.server} enforces it.",
            f"{facts.server} adds up the rows whose label is 1, exactly, and adds noise once to the sum.",
            f"Between neighbours the exact sum differs by at most {figure(privacy.sensitivity)} in Euclidean norm: "
            "its sensitivity.",
        ),
    )


def _noise(facts: Figures) -> Section:
    privacy = facts.privacy
    return Section(
        "noise",
        "Noise",
        (
            f"Its standard deviation is {figure(privacy.noise_std_of_sum)} in every coordinate of the sum, and "
            f"{figure(privacy.noise_std_of_mean)} in every coordinate of the mean over "
            f"{counted(facts.rows.trained, 'row')}.",
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
            label_dp.budget(privacy),
            f"After this job the ledger holds {releases} spent epsilon {figure(privacy.spent_epsilon)}; "
            f"{figure(privacy.left_epsilon)} is left.",
            label_dp.COMPOSED,
            "The same request again gets the stored answer: no new noise, no new charge.",
            f"{facts.server} keeps the ledger; these figures are as {facts.active} was told them. "
            "Releases of the same labels outside this ledger are not counted.",
        ),
    )


# --- who learnt what ---------------------------------------------------------------------------------------


def _active_learnt(facts: Figures) -> Section:
    missed = facts.rows.not_counted
    which = f"which {counted(missed, 'row')} did not count" if missed else "that all of its rows counted"
    return Section(
        "learnt-active",
        f"What {facts.active} (active party) learnt",
        (
            f"One noisy sum for each column, and {which}. The latter follows from ids and persons, never from labels.",
            "Everything after it, the weights and every probability, is computed from the noisy sum and its own rows: "
            "post-processing, which costs no further privacy.",
            "It was also told what describes the dataset, and what was released about this population before.",
            "If the dataset refuses unknown rows, it also knows that all the ids it sent are in it.",
        ),
    )


def _server_learnt(facts: Figures) -> Section:
    sent = counted(facts.rows.sent, "row")
    return Section(
        "learnt-measurement",
        f"What {facts.server} (measurement server) learnt",
        (
            f"The ids and the standardised, clipped, rounded features of the {sent} sent for training.",
            "It holds the labels already. Held-out rows were not sent to it.",
            "Nobody sends it the weights, but it could compute them: it knows the rows, the noisy sum and the job.",
        ),
    )


def _coordinator_learnt(facts: Figures, *, all_here: bool) -> Section:
    sentences = [
        "Names of parties, datasets, the population and dropped columns; the job's parameters; counts of rows and "
        "columns; the norm bound, noise and regulariser; how the solver ended; times, memory and bytes.",
        "No row, id, label, sum, weight, probability or gradient.",
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
            f"If it colludes with anyone, every label is revealed to them, and so is every row that {facts.active} "
            "sent.",
            f"{facts.active} is not trusted with labels: whatever it sends, it learns no more than the budget allows.",
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


LABEL_UNITS = tuple(unit for unit, _ in UNITS.values())


def released(entry: LedgerEntry, labels: StoredLabels | None) -> str:
    """What an entry of a ledger paid for, where it was an aggregate; else empty."""
    is_sum = bool(entry.answer_sha256) and labels is None and entry.unit.startswith(LABEL_UNITS)
    return "noisy sum" if is_sum else ""
