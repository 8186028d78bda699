"""The disclosure account: everything that was revealed about people without a charge to a budget.

An entry is on the disk before the value that it counts leaves the party. It belongs to a population, as a budget does,
and stays: a new snapshot of the same people begins no new account.
"""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.parties.store.rows import RowReads, RowWrites

RESET = "reset"  # subject of the entry with which an operator starts an account again


@dataclass(frozen=True, slots=True, repr=False)
class Disclosure:
    """One disclosure.

    Attributes:
        population: population of its people; "" for the people of all datasets without a population.
        subject: limit that it counts towards: labels, scores, columns or membership.
        about: name of the label, of the columns' party, or of the other party.
        learner: party that learns it.
        event: description of the revealed value.
        question: digest of the question; the same question by the same learner about the same subject is one entry.
        bits: upper bound of the information that it reveals: about all labels together, or about one row's score.
        people: compressed bitmap of its people, by their places in the population; empty for all people.
        snapshot: snapshot that was read for it.
        session: session that revealed it first.
        made: time of that session.
    """

    population: str
    subject: str
    about: str
    learner: str
    event: str
    question: str
    bits: float
    people: bytes = b""
    snapshot: str = ""
    session: str = ""
    made: str = ""


class AccountReads(RowReads):
    def disclosures(self, population: str | None = None, subject: str | None = None) -> list[Disclosure]:
        """Return the entries of one population or all, about one subject or all, the oldest first."""
        rest = "WHERE (?1 IS NULL OR population = ?1) AND (?2 IS NULL OR subject = ?2) ORDER BY position"
        return self._rows(Disclosure, "disclosures", rest, population, subject)

    def disclosures_since_reset(self, population: str) -> list[Disclosure]:
        """Return the entries of a population since its account was started, the oldest first."""
        found = self.disclosures(population)
        resets = [place for place, entry in enumerate(found) if entry.subject == RESET]  # two may have the same time
        return found[resets[-1] + 1 if resets else 0 :]

    def people(self, population: str) -> list[bytes]:
        """Return the digests of a population's people, in the order in which they were first published."""
        rows = self._all("SELECT digests FROM people WHERE population = ? ORDER BY position", population)
        return [row[0] for row in rows]

    def populations_with_people(self) -> list[str]:
        return [row[0] for row in self._all("SELECT DISTINCT population FROM people")]

    def people_with_labels(self, population: str, label: str) -> bytes:
        """Return a compressed bitmap of the people whose labels have been published, by places in the population."""
        query = "SELECT people FROM labelled_people WHERE population = ? AND label = ?"
        rows = self._all(query, population, label)
        return bytes(rows[0][0]) if rows else b""

    def label_unit(self, population: str, label: str) -> float | None:
        """Return the unit of a label's jitter; None if no training has fixed it."""
        rows = self._all("SELECT unit FROM label_units WHERE population = ? AND label = ?", population, label)
        return float(rows[0][0]) if rows else None

    def labels_of(self, population: str) -> list[str]:
        """Return the label columns under which labels of a population have been published."""
        return [row[0] for row in self._all("SELECT label FROM labelled_people WHERE population = ?", population)]


class AccountWrites(AccountReads, RowWrites):
    def add_disclosure(self, entry: Disclosure) -> None:
        """Add an entry; it replaces an entry of the same question.

        The new entry comes last: at the position of the earlier entry it would not count after the account has started
        again.
        """
        columns = "population, subject, about, learner, event, question, bits, people, snapshot, session, made"
        key = entry.population, entry.subject, entry.about, entry.learner, entry.question
        self._change(
            "DELETE FROM disclosures WHERE (population, subject, about, learner, question) = (?, ?, ?, ?, ?)", *key
        )
        self._change(
            f"INSERT INTO disclosures ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - our own names
            *(getattr(entry, name) for name in columns.split(", ")),
        )

    def add_people(self, population: str, digests: bytes) -> None:
        self._insert("people", population=population, digests=digests)

    def put_labelled_people(self, population: str, label: str, people: bytes) -> None:
        self._insert("labelled_people", how="INSERT OR REPLACE", population=population, label=label, people=people)

    def put_label_unit(self, population: str, label: str, unit: float) -> None:
        self._insert("label_units", population=population, label=label, unit=unit)
