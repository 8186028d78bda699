"""The disclosure account of a population: what was revealed about its people without a charge to a budget.

Labels, scores, columns and membership each have a limit. An entry is written before what it counts is sent, whether or
not the session then comes to its end. A new snapshot of the same people changes no entry; people who were never
published before raise the limit of labels. Entries count until the operator resets the account, or as long as
`policy.account_period_days` says.

Source: MATH 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import structlog

from blindfit.algorithms.errors import BlindfitError
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.settings import PartySettings, PolicySettings
from blindfit.parties.snapshots.people import unpack
from blindfit.parties.store.account import RESET, AccountReads, Disclosure
from blindfit.parties.store.database import Writes, stamp

log = structlog.get_logger(__name__)

BITS_OF_A_LABEL = 1 / 4  # limit for each person, for a label that is 1 for half of the people
MOST_MEMBERSHIP = 16  # limit of linkages with another party, or draws of held-out rows, for a population


class Account:
    """The account of one population at this party."""

    def __init__(self, policy: PolicySettings, dataset: PartyDatasetSettings) -> None:
        self._policy, self._dataset = policy, dataset
        self.population = dataset.population or ""

    @classmethod
    def of(cls, settings: PartySettings, dataset: str) -> Account:
        """Return the account that a dataset of a party belongs to."""
        return cls(settings.policy, settings.datasets[dataset])

    # --- what counts

    def entries(self, reader: AccountReads, subject: str, about: str | None = None) -> list[Disclosure]:
        """Return the entries about a subject that count today, the oldest first.

        An entry of an older version may not say what it is about: it counts for everything of its subject.
        """
        since = self._since()
        return [
            entry
            for entry in reader.disclosures_since_reset(self.population)
            if entry.subject == subject and entry.made >= since and (about is None or entry.about in (about, ""))
        ]

    def start(self, reader: AccountReads) -> str:
        """Return the time since which what was revealed counts; "" if everything counts."""
        resets = reader.disclosures(self.population, RESET)
        return max(self._since(), resets[-1].made if resets else "")

    def _since(self) -> str:
        days = self._policy.account_period_days
        return "" if days is None else stamp(-timedelta(days=days))

    def spent(self, reader: AccountReads, subject: str, about: str) -> float:
        """Return the bits about a subject that were revealed."""
        return sum(entry.bits for entry in self.entries(reader, subject, about))

    # --- limits

    @property
    def label(self) -> str:
        return self._dataset.label or ""

    @property
    def counts_labels(self) -> bool:
        """Return whether the labels have a limit; labels that their owner declares public have none."""
        return bool(self.label) and not self._dataset.public

    @property
    def label_entropy(self) -> float:
        """Return the bits of one label at the base rate that its owner declares; 1 where none is declared."""
        return entropy(self._dataset.label_rate)

    def label_limit(self, reader: AccountReads) -> float:
        """Return how many bits about all labels together may be revealed."""
        people = len(unpack(reader.people_with_labels(self.population, self.label)).nonzero()[0])
        return people * self.label_entropy * BITS_OF_A_LABEL

    def fits(
        self,
        reader: AccountReads,
        subject: str,
        about: str,
        learners: Iterable[str],
        bits: float,
        limit: float,
        session: str,
    ) -> bool:
        """Return whether so many more bits stay within the limit, and within each learner's share of it.

        A share is never below what one job reveals: otherwise a limit that is divided would allow nothing to anybody.
        So the bits that a learner had of the same session do not end the session.
        """
        if self.spent(reader, subject, about) + bits > limit * (1 + 1e-9):
            return False
        known = self.entries(reader, subject, about)
        shares = self._policy.account_shares
        for learner in learners if shares else ():
            theirs = [entry for entry in known if learner in entry.learner.split(",")]
            is_first = all(entry.session == session for entry in theirs)
            if not is_first and sum(entry.bits for entry in theirs) + bits > limit * shares.get(learner, 0.0):
                return False
        return True

    # --- entries

    def entry(
        self,
        subject: str,
        about: str,
        learners: Sequence[str],
        event: str,
        question: str,
        bits: float,
        read: tuple[str, str] = ("", ""),
        people: bytes = b"",
    ) -> Disclosure:
        """Return an entry about this population.

        Args:
            read: the snapshot and the session.
            people: a bitmap of whom it is about; empty: everybody.
        """
        learner, (snapshot, session) = ",".join(sorted(learners)), read
        return Disclosure(
            self.population, subject, about, learner, event, question, bits, people, snapshot, session, stamp()
        )

    def enter_below(
        self,
        transaction: Writes,
        entry: Disclosure,
        limit: float,
        refuse: Callable[[], BlindfitError | None],
        *,
        asked: float | None = None,
    ) -> None:
        """Write an entry if it fits; a question that was counted before is free, and so are public labels.

        A requester may name its own question: the same name by another learner may be about other rows.

        Args:
            asked: bits that must fit, with what the job will count later; by default those of the entry.
            refuse: function that makes the error; None if the job may reveal more. Its words do not depend on earlier
                entries.
        """
        is_new = self.check_below(transaction, entry, limit, refuse, asked=asked)
        if is_new and entry.bits:
            transaction.add_disclosure(entry)

    def check_below(
        self,
        reader: AccountReads,
        entry: Disclosure,
        limit: float,
        refuse: Callable[[], BlindfitError | None],
        *,
        asked: float | None = None,
    ) -> bool:
        """Return whether an entry would be written; arguments and errors as those of `enter_below`."""
        if not self.is_new(reader, entry):
            return False
        asked = entry.bits if asked is None else asked
        learners = entry.learner.split(",")
        fits = self.fits(reader, entry.subject, entry.about, learners, asked, limit, entry.session)
        if not fits and (error := refuse()) is not None:
            spent = round(self.spent(reader, entry.subject, entry.about), 1)
            told = {"revealed": spent, "asked": round(asked, 1), "limit": round(limit, 1)}
            log.warning(f"{entry.subject.removesuffix('s')} bits", session=entry.session, **told)
            reader.excess.stop(error)
        return True

    def is_new(self, reader: AccountReads, entry: Disclosure) -> bool:
        """Return whether an entry counts: its labels are not public, and its question was not counted before."""
        if entry.subject == "labels" and not self.counts_labels:
            return False
        learners, known = entry.learner.split(","), self.entries(reader, entry.subject, entry.about)
        return not any(_is_about(one, entry.question) and set(learners) <= set(one.learner.split(",")) for one in known)


def _is_about(entry: Disclosure, question: str) -> bool:
    """Return whether an entry is about a question; one of an older version, without a session, names the snapshot."""
    return entry.question == question or (not entry.session and entry.question == f"{question} {entry.snapshot}")


def entropy(rate: float | None) -> float:
    """Return the entropy of a yes/no value in bits; 1 where its rate is not declared."""
    if rate is None:
        return 1.0
    return -(rate * math.log2(rate) + (1 - rate) * math.log2(1 - rate))
