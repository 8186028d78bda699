"""The privacy statement of a WALR report: what is protected, how strongly, who learnt what, who may collude.

Source: the docstring of algorithms/protocols/walr (model, what each role learns); docs/ has more on each point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from blindfit.algorithms.privacy.events import UNITS
from blindfit.algorithms.privacy.ledger import LedgerEntry
from blindfit.coordinator.measured import report as measured
from blindfit.coordinator.report import label_privacy
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import capitalise, figure, quantity
from blindfit.coordinator.walr.figures import Figures, figures_of
from blindfit.coordinator.walr.ways import encrypted_rows, several_parties, shared_rows, trusted, two_servers
from blindfit.parties.measurement.trust import ASK_TWO_SERVERS, SHARED_ROWS
from blindfit.parties.store.answers import StoredLabels

COORDINATOR_LEARNT = (
    "Names of parties, datasets and the population; the job's parameters; counts of rows and "
    "columns; the norm bound, noise and regulariser; the end of the solver; times, memory and bytes.",
    "No row, id, label, sum, weight, probability or gradient.",
)


def privacy_statement(report: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the statement.

    Args:
        report: content of report.json; its `parties` hold what the active party reported.

    Raises:
        DataError: a figure is missing, so nothing can be promised.
    """
    facts = figures_of(report)
    words = words_of(facts)
    return [
        _unit(facts),
        label_privacy.neighbours(facts.privacy),
        label_privacy.epsilon(facts.privacy),
        label_privacy.delta(facts.privacy, facts.rows.trained),
        *words.trust(facts),
        _mechanism(facts, words.mechanism(facts)),
        _noise(facts),
        measured.composition(
            facts, again="The same request again gets the stored answer: no new noise, no new charge."
        ),
        *_holders_learnt(facts),
        _server_learnt(facts, words.server_learnt(facts)),
        measured.coordinator_learnt(
            facts,
            COORDINATOR_LEARNT,
            all_here=bool(report["parties_here"]),
            in_parts=bool(facts.privacy.holders),
        ),
        shared_rows.key_node_learnt(facts) if facts.privacy.trust == SHARED_ROWS else measured.key_node_learnt(),
        measured.collusion(words.collusion(facts)),
        measured.not_covered(),
    ]


def two_sentences(facts: Figures) -> str:
    return words_of(facts).two_sentences(facts)


class Words(Protocol):
    """Sentences that differ by the way to trust."""

    def two_sentences(self, facts: Figures) -> str: ...

    def trust(self, facts: Figures) -> list[Section]: ...

    def mechanism(self, facts: Figures) -> tuple[str, ...]: ...

    def server_learnt(self, facts: Figures) -> tuple[str, ...]: ...

    def collusion(self, facts: Figures) -> tuple[str, ...]: ...


WORDS: Mapping[str, Words] = {
    "trusted": trusted,
    "two-servers": two_servers,
    "encrypted-rows": encrypted_rows,
    "shared-rows": shared_rows,
}


def words_of(facts: Figures) -> Words:
    return several_parties if facts.privacy.holders else WORDS[facts.privacy.trust]


# --- the promise ---------------------------------------------------------------------------------------


def _unit(facts: Figures) -> Section:
    most = quantity(facts.privacy.max_rows_per_person, "row")
    return measured.unit(
        facts,
        of_a_row="its value, 0 or 1.",
        of_a_person=f"lets at most {most} of a person count; further rows are left out.",
    )


def _mechanism(facts: Figures, sentences: tuple[str, ...]) -> Section:
    privacy = facts.privacy
    where = f", once at each of {facts.server}" if privacy.trust in ASK_TWO_SERVERS else ""
    sensitivity = (
        f"Between neighbours the exact sum differs by at most {figure(privacy.sensitivity)} in Euclidean norm: "
        "its sensitivity."
    )
    return Section("mechanism", "Mechanism", (f"{capitalise(privacy.mechanism)}{where}.", *sentences, sensitivity))


def _noise(facts: Figures) -> Section:
    privacy = facts.privacy
    return measured.noise(
        f"Its standard deviation is {figure(privacy.noise_std_of_sum)} in every coordinate of the sum, and "
        f"{figure(privacy.noise_std_of_mean)} in every coordinate of the mean over "
        f"{quantity(facts.rows.trained, 'row')}.",
    )


# --- knowledge ----- ---------------------------------------------------------------------------------------


def _holders_learnt(facts: Figures) -> list[Section]:
    if facts.privacy.holders:
        return [several_parties.active_learnt(facts), several_parties.passive_learnt(facts)]
    return [_active_learnt(facts)]


def _active_learnt(facts: Figures) -> Section:
    missed = facts.rows.not_counted
    which = f"which {quantity(missed, 'row')} did not count" if missed else "that all of its rows counted"
    return measured.active_learnt(
        facts,
        f"One noisy sum for each column, and {which}. The latter follows from ids and persons, never from labels.",
        "Everything after it, the weights and every probability, is computed from the noisy sum and its own rows: "
        "post-processing, which costs no further privacy.",
        "It also received the description of the dataset, and the list of earlier releases about this population.",
        "If the dataset refuses unknown rows, it also knows that all the ids it sent are in it.",
    )


def _server_learnt(facts: Figures, sentences: tuple[str, ...]) -> Section:
    role = "measurement servers" if facts.privacy.trust in ASK_TWO_SERVERS else "measurement server"
    return Section("learnt-measurement", f"What {facts.server} ({role}) learnt", sentences)


LABEL_UNITS = tuple(unit for unit, _ in UNITS.values())


def describe_release(entry: LedgerEntry, labels: StoredLabels | None) -> str:
    """Name what a ledger's entry paid for if it was an aggregate; else return an empty text."""
    is_sum = bool(entry.answer_sha256) and labels is None and entry.unit.startswith(LABEL_UNITS)
    return "noisy sum" if is_sum else ""
