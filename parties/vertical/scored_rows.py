"""How often a passive party's people have been scored, and when that is enough.

The entries belong to the people of a population, over all snapshots and peers: whose scores of which model were given
to whom. An entry is written before a score leaves, whether it is for a training's test rows or for rows to predict. A
model of another active party counts for everybody: otherwise a refusal would reveal whom that party asks about.
"""

from __future__ import annotations

import asyncio
import hashlib
import json

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
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.snapshots.people import join, pack, places, unpack
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.store.account import Disclosure
from blindfit.parties.store.database import Reads
from blindfit.parties.vertical.seats import Seats

Positions = NDArray[np.int64]
SCORES, FIT, FIGURES = "scores", "weights of a fit", "figures of test rows"
INSTEAD = {SCORES: "predict with an earlier model, or ", FIGURES: "have the job set split.test_fraction = 0, or "}
PART_DIGEST = DigestFormat()
"""How fields of a model part are written in the digest by which its scores are counted."""


class ScoreQuota:
    """What a passive party lets scores tell of a dataset.

    All of it follows from what the party's file declares and from public sizes: whether the rows hold enough for it was
    decided when they were published, and no job shows it.

    Args:
        columns: of the table.
    """

    def __init__(self, party: Party, dataset: str, columns: int) -> None:
        self._party, self._dataset = party, dataset
        self._account = Account.of(party.settings, dataset)
        declared = party.settings.datasets[dataset].models_per_row
        self._is_unlimited = declared == "unlimited"
        self._models = declared if isinstance(declared, int) else default_models(columns)

    @classmethod
    def of(cls, party: Party, snapshot: Snapshot) -> ScoreQuota:
        return cls(party, snapshot.row.dataset, snapshot.table_columns)

    def check(self) -> None:
        """Raises PolicyRefused: the party gives no scores of this dataset."""
        if not self._models and not self._is_unlimited:
            self._refuse(f"no scores of {self._dataset} are given")

    def rounding(self, part: VerticalModelPart) -> int:
        """Return how a new model's scores are rounded: not at all where they are unlimited."""
        return 0 if self._is_unlimited else rounding_for(part)

    def score_bits(self) -> int:
        """Return how many bits a new model's scores have; 0 where they are unlimited, as they are."""
        return 0 if self._is_unlimited else SCORE_BITS

    def check_new_model(self, session: Session[JobParameters], rows: Positions) -> None:
        """Before a training that would end with scores of these rows by a model that there is not yet.

        Raises:
            PolicyRefused: some have been scored by as many as the policy allows.
        """
        with self._party.store.view() as reader:
            self._check(reader, session, None, 0.0, rows)

    def count(self, session: Session[JobParameters], part: VerticalModelPart, rows: Positions) -> None:
        """Durably, before the scores of these rows leave; those that this model has scored before are free.

        Raises:
            PolicyRefused: some have been scored by as many other models as the party allows, or would reveal more than
                it allows with the scores that they have had.
            LedgerUnavailable: it could not be written.
        """
        exact = score_bits(part.largest_steps, part.score_rounding)
        self.count_model(session, _digest(part), max(SCORE_BITS, exact), rows)  # a small part shows by no refusal

    def count_fit(self, session: Session[JobParameters], bits: float, event: str = FIT) -> None:
        """Count what weights or figures reveal of each row's score, before they are opened.

        Each session counts: what is computed again may differ, because another party may put other columns in.

        Args:
            bits: of one row, by its leverage.

        Raises:
            PolicyRefused: with the scores that some rows have had, it would reveal more than the party allows.
            LedgerUnavailable: it could not be written.
        """
        everybody, question = np.arange(session.published.row.rows), f"{event} {session.id}"
        self._count(session, event, question, bits, everybody)

    def count_model(self, session: Session[JobParameters], model: str, bits: float, rows: Positions) -> None:
        """Count the scores of a model that a digest names, which have so many bits each."""
        self._count(session, SCORES, model, bits, rows)

    def _count(
        self,
        session: Session[JobParameters],
        event: str,
        question: str,
        bits: float,
        rows: Positions,
    ) -> None:
        asker = _asker(session)
        with self._party.store.transaction() as transaction:
            known = join(transaction.people(self._account.population))
            self._check(transaction, session, question, bits, rows, event)
            here = np.zeros(len(known), np.bool_)
            for entry in self._entries(transaction):
                if (entry.learner, entry.question) == (asker, question):
                    here = unpack(entry.people, len(known))
            here[places(known, session.published.people()[rows])] = True
            read = session.published.id, session.id
            entry = self._account.entry("scores", "", [asker], event, question, bits, read, pack(here))
            transaction.add_disclosure(entry)

    def _entries(self, reader: Reads) -> list[Disclosure]:
        return self._account.entries(reader, "scores")

    def _check(
        self,
        reader: Reads,
        session: Session[JobParameters],
        model: str | None,
        bits: float,
        rows: Positions,
        event: str = SCORES,
    ) -> None:
        if self._is_unlimited:
            return
        asker, known = _asker(session), join(reader.people(self._account.population))
        asked = places(known, session.published.people()[rows])
        models, spent = np.zeros(len(rows), np.int64), np.zeros(len(rows))
        free = np.zeros(len(rows), np.bool_)
        for entry in self._entries(reader):
            here = unpack(entry.people, len(known))[asked]
            if (entry.learner, entry.question.partition(" ")[0]) == (asker, model):
                free |= here if entry.people else True  # one of an older version does not say whose scores it has
            else:
                counts = _counts(entry, asker, here)
                models += counts if entry.event == SCORES else 0
                spent += entry.bits * counts
        models, spent = models[~free], spent[~free]  # these scores are those that were given before
        if event == SCORES and len(models) and models.max() >= self._models:
            self._refuse(
                f"some of these rows have had scores of {self._models} models, the most that it allows of a row "
                "(a model of another active party counts for every row, and a new snapshot changes nothing): predict "
                'with an earlier model, train with falcon.weights = "shared" or split.test_fraction = 0, or have its '
                "operator start the account again (`blindfit ledger --reset-account`)",
            )
        if len(spent) and spent.max() + bits > MODEL_BITS * max(1, self._models):
            self._refuse(
                f"{event} would reveal more of a row than {MODEL_BITS} bits for each model that it allows, with what "
                f"was revealed of some of these rows before: {INSTEAD.get(event, '')}have its operator start the "
                "account again (`blindfit ledger --reset-account`)"
            )

    def _refuse(self, reason: str) -> None:
        raise PolicyRefused(party=self._party.settings.name, field="models_per_row", reason=reason)


async def give_scores(
    quota: ScoreQuota,
    session: Session[JobParameters],
    seats: Seats,
    part: VerticalModelPart,
    own: predict.Scores,
    rows: Positions,
) -> None:
    """The passive party's part in scoring rows together: counted, then sent.

    Args:
        own: its part of the scores.
        rows: which they are, by position in the snapshot.
    """
    await asyncio.to_thread(quota.count, session, part, rows)
    await predict.run_passive(own, seats.me, seats.passives, seats.chain[0], session.channel)


def _counts(entry: Disclosure, asker: str, here: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for which of the asked rows an entry counts; one of an older version does not say whose scores it has.

    Args:
        here: which of the asked rows the entry is about.
    """
    return here if entry.learner == asker and entry.people else np.ones_like(here)


def _digest(part: VerticalModelPart) -> str:
    """Return a digest of the numbers, whatever training they came from: equal parts give equal scores."""
    return hashlib.sha256(json.dumps(PART_DIGEST.fields(part.to_dict()), sort_keys=True).encode()).hexdigest()


def _asker(session: Session[JobParameters]) -> str:
    return session.with_role("active").name
