"""Number of models that have revealed something of a row's score, and its limit.

The entries belong to the people of a population, over all snapshots and peers. Each records whose score, which model,
how much was revealed, and to whom. An entry is written before a score leaves, for a training's test rows and for rows
to predict, and before weights or gradients are opened to another party. That party may have used columns which are
large in one row and 0 elsewhere: then its weight is a function of this row's score. So each fit is one model on every
row that trains, and the scores of the fitted model belong to the same model. A model of another active party counts for
all parties: otherwise a refusal would reveal whose rows that party requests.

Source: MATH 10, limit 2.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.digest_format import DigestFormat
from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.protocols import predict
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.vertical.score_leaks import (
    MODEL_BITS,
    SCORE_BITS,
    default_models,
    rounding_for,
    score_bits,
)
from blindfit.parties.account.account import Account
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.people import Digests, join, pack, places, unpack
from blindfit.parties.snapshots.scored import check_number_of_models, models_in_words
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.store.account import Disclosure
from blindfit.parties.store.database import Reads, Store, Writes
from blindfit.parties.vertical.seats import Seats

Positions = NDArray[np.int64]
SCORES, FIT, FIGURES = "scores", "weights of a fit", "figures of test rows"
GRID = "figures of grid points"
OPENED_FIT = "weights or gradients of a model"
INSTEAD = {
    SCORES: "predict with an earlier model, or ",
    FIGURES: "have the job set split.test_fraction = 0, or ",
    GRID: "have the job list fewer grid points (select.grid), or ",
    OPENED_FIT: 'have the job set falcon.weights = "shared", or ',
}
ABOUT_THE_FIT = ("trained_in", "options")  # fields of a model part that change no score
PART_DIGEST = DigestFormat()
"""Form of a model part's fields in the digest by which its scores are counted."""


class ScoreQuota:
    """The limit of what scores, weights and gradients reveal of a dataset's rows.

    The limit follows from the party's file and from public sizes. Whether the rows hold enough for it was decided when
    they were published, and no job reveals it.

    Args:
        columns: number of the table's columns.
    """

    def __init__(self, party: PartySettings, store: Store, dataset: str, columns: int) -> None:
        self._settings, self._store, self._dataset = party, store, dataset
        self._account, settings = Account.of(party, dataset), party.datasets[dataset]
        self._is_public, self._is_unlimited = settings.public, settings.models_per_row == "unlimited"
        self._models = models_of(settings, columns)

    @classmethod
    def of(cls, party: Party, snapshot: Snapshot) -> ScoreQuota:
        return cls(party.settings, party.store, snapshot.row.dataset, snapshot.table_columns)

    def check(self) -> None:
        """Raise PolicyRefused if the party gives no scores of this dataset."""
        check_gives_scores(self._settings, self._dataset)

    def rounding(self, part: VerticalModelPart) -> int:
        """Return the rounding of a new model's scores; unlimited scores are not rounded."""
        return 0 if self._is_unlimited else rounding_for(part)

    def score_bits(self) -> int:
        """Return the number of bits of a new model's scores; 0 if they are unlimited, and so not rounded."""
        return 0 if self._is_unlimited else SCORE_BITS

    def check_new_model(self, session: Session[JobParameters], rows: Positions) -> None:
        """Check the limit before a training that would end with scores of these rows by a new model.

        Raises:
            PolicyRefused: as many models as the policy allows have scored some of the rows.
        """
        with self._store.view() as reader:
            self._check(reader, _Asked(SCORES, (_asker(session),), "", 0.0), _people(session, rows))

    def count(self, session: Session[JobParameters], part: VerticalModelPart, rows: Positions) -> None:
        """Count the scores of these rows durably before they leave. Rows that this model has scored before are free.

        Raises:
            PolicyRefused: as many other models as the party allows have scored some rows; or the scores would, with
                earlier answers, reveal more than it allows.
            LedgerUnavailable: it could not be written.
        """
        exact = score_bits(part.largest_steps, part.score_rounding)
        bits = max(SCORE_BITS, exact)  # the same minimum for every part, so a refusal does not reveal a small part
        self.count_model(session, _digest(part), bits, rows, part.trained_in)

    def count_bits(self, session: Session[JobParameters], bits: float, event: str = FIT, *, question: str = "") -> None:
        """Count what weights or figures that depend on many rows reveal of each row's score, before they are opened.

        Args:
            bits: bits of one row, by its leverage.
            question: name of everything that the answer depends on, if this party knows it; the same question is then
                free. By default each session counts: a repeated computation may differ, because another party may use
                other columns.

        Raises:
            PolicyRefused: with earlier answers about some rows, it would reveal more than the party allows.
            LedgerUnavailable: it could not be written.
        """
        asked, everybody = self._request_of_all(session, bits, event, question)
        with self._store.transaction() as transaction:
            if not self._is_counted(transaction, event, asked.question, asked.learners):
                self._check(transaction, asked, _people(session, everybody))
                self._write(transaction, session, asked, everybody)

    def check_bits(self, session: Session[JobParameters], bits: float, event: str) -> None:
        """Check the same limit before anything is computed for it. A job that ends before the count is not counted."""
        asked, everybody = self._request_of_all(session, bits, event, "")
        with self._store.view() as reader:
            self._check(reader, asked, _people(session, everybody))

    def _request_of_all(
        self, session: Session[JobParameters], bits: float, event: str, question: str
    ) -> tuple[_Asked, Positions]:
        name = f"{event} {question or session.id}"
        return _Asked(event, _others(session), name, bits, session.id), np.arange(session.published.row.rows)

    def count_model(
        self, session: Session[JobParameters], model: str, bits: float, rows: Positions, training: str
    ) -> None:
        """Count the scores of a model that a digest names; each score has `bits` bits.

        Args:
            training: session in which the model was fitted.
        """
        asked = _Asked(SCORES, (_asker(session),), model, bits, training)
        with self._store.transaction() as transaction:
            self._check(transaction, asked, _people(session, rows))
            self._write(transaction, session, asked, rows)

    def check_fit(self, session: Session[JobParameters], fit: Fit) -> None:
        """Check that a fit may be opened, before anything is computed for it. Arguments and errors are those of
        `count_fit`.
        """
        with self._store.view() as reader:
            if (asked := self._request_of(reader, session, fit)) is not None:
                self._check(reader, asked, _people(session, fit.rows), fit.models)

    def count_fit(self, session: Session[JobParameters], fit: Fit) -> None:
        """Count a model on each row that trains, before its weights or gradients are opened. The same question is free.

        One training and the scores of its model always fit.

        Raises:
            PolicyRefused: as many other models as the party allows have revealed something of some rows; or this fit
                would, with earlier answers, reveal more than it allows.
            LedgerUnavailable: it could not be written.
        """
        with self._store.transaction() as transaction:
            if (asked := self._request_of(transaction, session, fit)) is not None:
                self._check(transaction, asked, _people(session, fit.rows), fit.models)
                for number in range(fit.models):
                    self._write(transaction, session, asked.of_model(number), fit.rows)

    def has_answered(self, session: Session[JobParameters], fit: Fit) -> bool:
        """Return True if these parties have had the same gradients before."""
        with self._store.view() as reader:
            return self._is_counted(reader, OPENED_FIT, fit.question, _others(session))

    def _is_counted(self, reader: Reads, event: str, question: str, learners: Sequence[str]) -> bool:
        """Return True if all these parties have had the answer to this question before."""
        return any(
            entry.question == question and set(learners) <= _learners(entry)
            for entry in self._entries(reader)
            if entry.event == event
        )

    def _request_of(self, reader: Reads, session: Session[JobParameters], fit: Fit) -> _Asked | None:
        """Return the request of a fit; None for public rows, and if these parties had the same answer before."""
        is_known = self._is_counted(reader, OPENED_FIT, fit.question, _others(session))
        if self._is_public or (is_known and not fit.is_computed_again):
            return None
        bits = min(self._most_bits, SCORE_BITS if fit.bits is None else fit.bits)
        return _Asked(OPENED_FIT, _others(session), fit.question, bits, session.id if is_known else fit.training)

    @property
    def most_models(self) -> int:
        """Limit of models, which one training never exceeds."""
        return max(1, self._models)

    @property
    def _most_bits(self) -> int:
        """Limit of bits of one row."""
        return MODEL_BITS * self.most_models

    def _write(self, transaction: Writes, session: Session[JobParameters], asked: _Asked, rows: Positions) -> None:
        known = join(transaction.people(self._account.population))
        here = np.zeros(len(known), np.bool_)
        for entry in self._entries(transaction):
            if (_learners(entry), entry.question) == (set(asked.learners), asked.question):
                here |= unpack(entry.people, len(known))
        here[places(known, _people(session, rows))] = True
        read = session.published.id, session.id
        entry = self._account.entry(
            "scores", asked.training, asked.learners, asked.event, asked.question, asked.bits, read, pack(here)
        )
        transaction.add_disclosure(entry)

    def _entries(self, reader: Reads) -> list[Disclosure]:
        return self._account.entries(reader, "scores")

    def _check(self, reader: Reads, asked: _Asked, people: Digests, asked_models: int = 1) -> None:
        if self._is_unlimited:
            return
        try:
            check_number_of_models(self._settings, self._dataset, self.most_models, asked_models)
        except PolicyRefused as error:
            reader.excess.stop(error)
        known, models = join(reader.people(self._account.population)), self.most_models
        before = _reveal(self._entries(reader), asked, places(known, people), len(known))
        is_model = asked.event in (SCORES, OPENED_FIT)
        if is_model and len(before.models) and before.models.max() + asked_models > models:
            self._refuse(
                reader,
                f"some of these rows have had scores of {models_in_words(models)}, which is the limit of a row. The "
                "weights or gradients of a training count as one model; a model of another active party counts for "
                "every row; and a new snapshot changes nothing. Predict with an earlier model, train with "
                'falcon.weights = "shared" or falcon\'s privacy.epsilon, or have its operator start the account again '
                "(`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)",
            )
        most = before.bits.max(initial=0.0)
        if len(before.bits) and most + asked_models * asked.bits > self._most_bits:
            self._refuse(
                reader,
                f"{asked.event} would reveal more of a row than {MODEL_BITS} bits for each model that it allows, with "
                f"what was revealed of some of these rows before: {INSTEAD.get(asked.event, '')}have its operator "
                "start the account again (`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)",
            )

    def _refuse(self, reader: Reads, reason: str) -> None:
        reader.excess.stop(PolicyRefused(party=self._settings.name, field="models_per_row", reason=reason))


def check_gives_scores(party: PartySettings, dataset: str) -> None:
    """Raise PolicyRefused if the party gives no scores of a dataset."""
    if party.datasets[dataset].models_per_row == 0:
        reason = f"no scores of {dataset} are given: have the job set split.test_fraction = 0 to train without them"
        raise PolicyRefused(party=party.name, field="models_per_row", reason=reason)


def models_of(settings: PartyDatasetSettings, columns: int) -> int:
    """Return the number of models that may score a row of a dataset, if its party limits that number."""
    return settings.models_per_row if isinstance(settings.models_per_row, int) else default_models(columns)


def find_most(entries: Sequence[Disclosure], n_people: int) -> tuple[int, float]:
    """Return the largest number of models that have revealed something of one row's score, and the largest number of
    bits of one row.
    """
    before = _reveal(entries, _Asked("", (), "", 0.0), np.arange(n_people), n_people)
    return int(before.models.max(initial=0)), float(before.bits.max(initial=0.0))


async def give_scores(
    quota: ScoreQuota,
    session: Session[JobParameters],
    seats: Seats,
    part: VerticalModelPart,
    own: predict.Scores,
    rows: Positions,
) -> None:
    """Count the scores of rows, then send them: the passive party's part in a joint score.

    Args:
        own: the party's part of the scores.
        rows: places of the rows in the snapshot.
    """
    await asyncio.to_thread(quota.count, session, part, rows)
    await predict.run_passive(own, seats.me, seats.passives, seats.chain[0], session.channel)


@dataclass(frozen=True, slots=True, repr=False)
class Fit:
    """A fit whose weights or gradients will be opened.

    Attributes:
        training: session that began it.
        question: name of everything that it depends on.
        rows: places in the snapshot of the rows that train.
        bits: bits of the score of one row; None for the bits that a score of one model may have.
        is_computed_again: True if a party can use other columns than for the question before; then the fit is another
            model, if that question was counted.
        models: number of trainings of each row, with those of folds.
    """

    training: str
    question: str
    rows: Positions
    bits: float | None = None
    is_computed_again: bool = False
    models: int = 1


@dataclass(frozen=True, slots=True, repr=False)
class _Asked:
    """The disclosure about a row's score that a request would make.

    Attributes:
        training: session of the training; its fit, its figures and the scores of its model do not count against each
            other.
    """

    event: str
    learners: tuple[str, ...]
    question: str
    bits: float
    training: str = ""

    def of_model(self, number: int) -> _Asked:
        """Return the disclosure of one of several models of a fit; number 0 is the final model."""
        if not number:
            return self
        return replace(self, question=f"{self.question} {number}", training=f"{self.training} {number}")


@dataclass(frozen=True, slots=True, repr=False)
class _Revealed:
    """Earlier disclosures about each requested row that is not free: the number of other models, and the bits."""

    models: NDArray[np.int64]
    bits: NDArray[np.float64]


def _reveal(entries: Sequence[Disclosure], asked: _Asked, people: Positions, n_people: int) -> _Revealed:
    """Return the earlier disclosures about people's scores, without those of this request.

    A fit and the scores of its model are one model: both are functions of the same score. It has the bits of the larger
    one. Scores that were given before are given again.

    Args:
        people: places in the population of the people with these scores.
    """
    model_of_fit = {entry.about: _model(entry) for entry in reversed(entries) if entry.event == SCORES and entry.about}
    if asked.event == SCORES and asked.training:
        model_of_fit.setdefault(asked.training, asked.question)
    own = model_of_fit.get(asked.training, asked.training) if asked.event == OPENED_FIT else asked.question
    free, others = np.zeros(len(people), np.bool_), np.zeros(len(people))
    models: dict[str, NDArray[np.float64]] = {}
    for entry in entries:
        here = unpack(entry.people, n_people)[people]
        to_same = set(asked.learners) <= _learners(entry)
        counts = _counts(entry, here, to_same=to_same)
        if entry.event not in (SCORES, OPENED_FIT):
            others += entry.bits * counts * (not asked.training or entry.about != asked.training)
            continue
        model = _model(entry) if entry.event == SCORES else model_of_fit.get(entry.about, entry.about)
        if to_same and model == own:
            free |= _counts(entry, here, to_same=True) & (entry.event == SCORES)
        else:
            bits = np.where(counts, max(entry.bits, np.finfo(float).tiny), 0.0)
            models[model] = np.maximum(models.get(model, 0.0), bits)
    number = np.zeros(len(people), np.int64)
    for bits in models.values():
        number += bits > 0
        others += bits
    return _Revealed(number[~free], others[~free])


def _counts(entry: Disclosure, here: NDArray[np.bool_], *, to_same: bool) -> NDArray[np.bool_]:
    """Return the requested rows for which an entry counts. An entry of an older version counts for all, as it names no
    people.

    Args:
        here: True for the requested rows that the entry is about.
        to_same: True if all parties that ask have learnt it.
    """
    return here if to_same and entry.people else np.ones_like(here)


def _model(entry: Disclosure) -> str:
    """Return the digest of the model whose scores were given; an older version adds the snapshot."""
    return entry.question.partition(" ")[0]


def _learners(entry: Disclosure) -> set[str]:
    return set(entry.learner.split(","))


def _digest(part: VerticalModelPart) -> str:
    """Return a digest of the numbers of a part, without its training: equal parts give equal scores."""
    numbers = {name: value for name, value in part.to_dict().items() if name not in ABOUT_THE_FIT}
    return hashlib.sha256(json.dumps(PART_DIGEST.fields(numbers), sort_keys=True).encode()).hexdigest()


def _people(session: Session[JobParameters], rows: Positions) -> Digests:
    return session.published.people()[rows]


def _others(session: Session[JobParameters]) -> tuple[str, ...]:
    """Return the other parties with columns of the same people, which learn weights or gradients."""
    roles = "active", "passive"
    return tuple(m.name for m in session.members.values() if m.role in roles and m.name != session.me.name)


def _asker(session: Session[JobParameters]) -> str:
    return session.with_role("active").name
