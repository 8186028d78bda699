"""How often a passive party's rows have been scored, and when that is enough.

For each snapshot, over all peers, for ever: of which rows the scores of which model have been given to whom. It is
written before a score leaves, whoever asks and whatever for: a training's test rows, or rows to predict. A model of
another active party counts for every row: whether a question is refused would else tell whom that one asks about.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import zlib

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.digest_format import DigestFormat
from blindfit.algorithms.errors import ConfigError, PolicyRefused
from blindfit.algorithms.protocols import predict
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.vertical.score_leaks import (
    LEAST_SCORE_BITS,
    RowContent,
    bits_of_a_score,
    rounding_for,
    score_bits,
)
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.counts import ScoredRows
from blindfit.parties.store.database import Reads
from blindfit.parties.vertical.seats import Seats

Positions = NDArray[np.int64]
PART_DIGEST = DigestFormat()
"""How fields of a model part are written in the digest by which its scores are counted."""


class ScoreQuota:
    """What a passive party lets scores tell of a dataset.

    Args:
        content: what its rows hold in the columns that are scored.
    """

    def __init__(self, party: Party, dataset: str, content: RowContent) -> None:
        self._party, self._dataset, self._content = party, dataset, content
        self._lifted = party.settings.datasets[dataset].scores_may_be_solved_for
        self._models = min(party.settings.policy.models_per_row, max(content.max_models, 1))

    def check(self) -> None:
        """Raises ConfigError: the rows hold so little that any score would tell them, which their operator lets pass or
        not; to others no word of it.
        """
        weakness = self._content.weakness()
        if weakness and not self._lifted:
            self._refuse_own(f"whoever gets scores could work out its features: {weakness}", "")
        bits = bits_of_a_score(self._content, self._models)
        if bits < LEAST_SCORE_BITS and not self._lifted:
            self._refuse_own(
                f"policy.models_per_row = {self._models} would leave {bits} bits of a score, and fewer than "
                f"{LEAST_SCORE_BITS} are none",
                "lower policy.models_per_row; or ",
            )

    def rounding(self, part: VerticalModelPart) -> int:
        """Of a new model's scores; none where they may be given only by their operator's word."""
        bits = self.score_bits()
        return rounding_for(part, bits) if bits else 0

    def score_bits(self) -> int:
        """That a new model's scores may have; 0 where they may be given only by their operator's word, as they are."""
        bits = bits_of_a_score(self._content, self._models)
        return 0 if self._lifted or self._content.weakness() or bits < LEAST_SCORE_BITS else bits

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
            PolicyRefused: some have been scored by as many other models as the policy allows.
            ConfigError: with the scores that they have had, they would tell more than half of a row.
            LedgerUnavailable: it could not be written.
        """
        self.count_model(session, _digest(part), score_bits(part.largest_steps, part.score_rounding), rows)

    def count_model(self, session: Session[JobParameters], model: str, bits: float, rows: Positions) -> None:
        """The same of a model that is told apart by a digest, whose scores have so many bits."""
        snapshot, asker = session.published, _asker(session)
        with self._party.store.transaction() as transaction:
            self._check(transaction, session, model, bits, rows)
            here = np.zeros(snapshot.row.rows, np.bool_)
            for scored in transaction.scored_rows(snapshot.id):
                if (scored.asker, scored.model) == (asker, model):
                    here = _unpack(scored.rows, snapshot.row.rows)
            here[rows] = True
            transaction.put_scored_rows(snapshot.id, ScoredRows(asker, model, bits, _pack(here)))

    def _check(
        self,
        reader: Reads,
        session: Session[JobParameters],
        model: str | None,
        bits: float,
        rows: Positions,
    ) -> None:
        if self._lifted:
            return
        snapshot, asker = session.published, _asker(session)
        models, spent = np.zeros(len(rows), np.int64), np.zeros(len(rows))
        for scored in reader.scored_rows(snapshot.id):
            if (scored.asker, scored.model) != (asker, model):
                here = _find_counted(scored, asker, snapshot.row.rows)[rows]
                models += here
                spent += scored.bits * here
        if models.max(initial=0) >= self._models:
            raise PolicyRefused(
                party=self._party.settings.name,
                field="models_per_row",
                reason=f"some of these rows have had scores of {self._models} models, the most that it allows of a row "
                "(a model of another active party counts for every row)",
            )
        if spent.max(initial=0.0) + bits > self._content.score_bits:
            self._refuse_own(
                f"scores of {bits:.0f} bits, with those that some of these rows have had, would tell more than half of "
                "a row",
                "publish the dataset again, or train again; or ",
            )

    def _refuse_own(self, reason: str, hint: str) -> None:
        name = f"datasets.{self._dataset}"
        raise ConfigError(
            f"{name}: {reason}", hint=f"{hint}set {name}.scores_may_be_solved_for = true, if it is no secret"
        )


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


def _digest(part: VerticalModelPart) -> str:
    """Return a digest of the numbers, whatever training they came from: equal parts give equal scores."""
    return hashlib.sha256(json.dumps(PART_DIGEST.fields(part.to_dict()), sort_keys=True).encode()).hexdigest()


def _asker(session: Session[JobParameters]) -> str:
    return session.with_role("active").name


def _find_counted(scored: ScoredRows, asker: str, count: int) -> NDArray[np.bool_]:
    """Of a snapshot's rows, those that it counts for when this active party asks."""
    return _unpack(scored.rows, count) if scored.asker == asker else np.ones(count, np.bool_)


def _pack(here: NDArray[np.bool_]) -> bytes:
    return zlib.compress(np.packbits(here).tobytes(), 1)


def _unpack(rows: bytes, count: int) -> NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(zlib.decompress(rows), np.uint8), count=count).astype(np.bool_)
