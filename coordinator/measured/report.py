"""Common parts of the reports of two systems: an active party fits a model to a measurement server's release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.report import label_privacy, page
from blindfit.coordinator.report.page import PartyRow
from blindfit.coordinator.report.reading import process_of
from blindfit.coordinator.report.sections import Section
from blindfit.coordinator.terminal.wording import figure, quantity
from blindfit.parties.training.report import MeasuredPrivacy


@dataclass(frozen=True)
class MeasuredFigures:
    """The parties of a fit, and the promise."""

    active: str
    server: str  # or both names, if labels are split between two servers
    privacy: MeasuredPrivacy

    @property
    def owners(self) -> list[str]:
        """Parties that have the model, or a part of it."""
        return [self.active]


def members_of(report: Mapping[str, Any]) -> tuple[str, str]:
    """Return the active party and the measurement server, or the names of both servers.

    Raises:
        DataError: the report does not name both.
    """
    by_role: dict[str, list[str]] = {}
    for name, party in report["parties"].items():
        by_role.setdefault(party["role"], []).append(name)
    if not {"active", "measurement"} <= by_role.keys():
        raise DataError("the report names no active party and measurement server")
    return by_role["active"][0], " and ".join(sorted(by_role["measurement"]))


def releases(facts: MeasuredFigures) -> str:
    return f"{quantity(facts.privacy.releases, 'release')}, this one included."


def party_rows(
    facts: MeasuredFigures, report: Mapping[str, Any], sent: int, holders: Mapping[str, int | None] | None = None
) -> list[PartyRow]:
    """Return the rows of the table of parties.

    Args:
        sent: rows that the active party sent to the measurement server.
        holders: rows that each other party with a part of the model has sent.
    """
    of_holders = {facts.active: sent, **(holders or {})}
    rows = {name: process_of(report, name).dataset_rows for name in report["parties"]} | of_holders
    return [page.party_row(report, name, rows=n, has_model=name in of_holders) for name, n in rows.items()]


# --- sections of the statement ------------------------------------------------------------------------


def unit(facts: MeasuredFigures, *, of_a_row: str, of_a_person: str) -> Section:
    """Return the section about the protected unit.

    Args:
        of_a_row: protected part of a row. of_a_person: treatment of a person with too many rows, by the server.
    """
    unit, most = facts.privacy.unit, facts.privacy.max_rows_per_person
    scope = (
        (f"The protected unit is {unit}, taken together.", f"{facts.server} {of_a_person}")
        if most
        else (f"The protected unit is {unit}: {of_a_row}", label_privacy.ROWS_OF_A_PERSON)
    )
    return Section("unit", "What is protected", scope)


def noise(*sentences: str) -> Section:
    drawn = "It is drawn from the operating system's generator; no seed of the job enters it."
    return Section("noise", "Noise", (*sentences, drawn))


def composition(facts: MeasuredFigures, *, again: str, each: tuple[str, ...] = ()) -> Section:
    """Return the section about composition.

    Args:
        again: answer to the same request. each: cost of one release.
    """
    privacy = facts.privacy
    sentences = (
        *each,
        label_privacy.budget(privacy),
        label_privacy.spent(privacy, privacy.releases),
        label_privacy.COMPOSED,
        again,
        _ledger(facts),
    )
    return Section("composition", "Composition", sentences)


def _ledger(facts: MeasuredFigures) -> str:
    return (
        f"{facts.server} keeps the ledger; {facts.active} received these figures from it. "
        "Releases of the same labels outside this ledger are not counted."
    )


def active_learnt(facts: MeasuredFigures, *sentences: str) -> Section:
    return Section("learnt-active", f"What {facts.active} (active party) learnt", sentences)


def coordinator_learnt(
    facts: MeasuredFigures, sentences: tuple[str, ...], *, all_here: bool, in_parts: bool = False
) -> Section:
    """Return the section about the coordinator.

    Args:
        sentences: knowledge of the coordinator if parties are on different machines.
        in_parts: True if parties other than the active party have a part of the model.
    """
    of = "" if in_parts else f" of {facts.active}"
    here = (
        "In this run, however, all parties ran on this machine: anyone who can read its files sees all of them. "
        f"This report shows the model{of}. Between organisations the coordinator never gets it."
    )
    said = (*sentences, here) if all_here else sentences
    return Section("learnt-coordinator", "What the coordinator learnt", said)


def key_node_learnt() -> Section:
    return Section("learnt-key-node", "What a key node learnt", ("Nothing. This system uses no key node.",))


WATCHED = "Anyone who watches the network sees who talks to whom, when, and how much: connections are encrypted."


def budget(facts: MeasuredFigures) -> str:
    return f"epsilon {figure(facts.privacy.budget_epsilon)} at delta {figure(facts.privacy.budget_delta)}"


def collusion(sentences: tuple[str, ...]) -> Section:
    return Section("collusion", "Who may collude with whom", (*sentences, WATCHED))


def describe_trust(facts: MeasuredFigures, *, revealed: str, despite: str) -> tuple[str, ...]:
    """Return who may collude with whom if one server is trusted with labels.

    Args:
        revealed: facts that a colluding server reveals. despite: attempts of the active party.
    """
    return (
        f"{facts.server} is trusted: it holds the labels in the clear, draws the noise and keeps the ledger. "
        f"If it colludes with anyone, {revealed}.",
        f"{facts.active} is not trusted with labels: it learns no more than the budget allows, {despite}.",
        f"{facts.active}, the coordinator and any other active parties of {facts.server} may collude: the budget, "
        f"{budget(facts)}, bounds what they learn together about the labels of {facts.privacy.population}.",
    )


def not_covered() -> Section:
    return Section(
        "not-covered",
        "What epsilon does not cover",
        (
            "Features, ids, and the set of rows. A model depends on its owner's features without any noise: "
            "consider that before giving it away.",
            "Conclusions from a true correlation: a good model predicts labels, even of people outside the data.",
            "The duration of a computation.",
        ),
    )
