"""Joint prediction at a data party: align new rows, score the columns of each party, and reveal sums to the active
party.

The model part is the one that the party kept of the training, for any proposer of the job. It has the weights of its
own columns, or shares of all weights; this decides how the rows are scored (in_shares.py).
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.protocols import predict, shared_scores
from blindfit.algorithms.protocols.shared_scores.model import SharedModelPart
from blindfit.algorithms.statistics.quality.ranking import probability_histogram, value_histogram
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart, real_scores
from blindfit.parties.data.sink import Sink
from blindfit.parties.data.sinks import FileSink, open_sink
from blindfit.parties.data.source import Source
from blindfit.parties.predict.in_shares import scores_in_shares, what_is_told
from blindfit.parties.predict.report import ModelFigures, PredictReport, RowFigures, ScoreFigures
from blindfit.parties.predict.settings import PredictJob
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.store.sessions import Prediction
from blindfit.parties.training.report import TimingFigures, members_of
from blindfit.parties.training.rows import PartyRows, read_rows, require_offered, tell_of_unseen
from blindfit.parties.vertical.alignment import align_by_id
from blindfit.parties.vertical.model_store import ModelStore, SharedModels
from blindfit.parties.vertical.scored_rows import ScoreQuota, give_scores
from blindfit.parties.vertical.seats import Seats
from blindfit.parties.work.clock import Clock

PREDICTED = "scores.csv"  # unless the party's file names another place
Part = VerticalModelPart | SharedModelPart


@dataclass(frozen=True, repr=False)
class Scored:
    """The rows that every party has, in the order of this party's dataset."""

    ids: Any  # pyarrow StringArray
    scores: NDArray[np.int64]


class JointPrediction:
    def __init__(self, party: Party) -> None:
        self._party = party
        self._models, self._shared = (store(party.data_dir, party.vault) for store in (ModelStore, SharedModels))
        url, if_exists = party.settings.scores.url, party.settings.scores.if_exists
        self._own_sink = None if url is None else open_sink(url, if_exists, party.base_dir)

    def check(self, job: PredictJob, me: Member) -> None:
        """Refuse what can be refused before a session starts: the model must be here and whole, and the dataset have
        its columns.
        """
        part = self._part(job, me)
        scale = part.standardiser
        require_offered(scale.record, self._party.settings.datasets[me.dataset], me.dataset)
        self._party.snapshots.check_scored(me.dataset, scale.record, scale.columns)
        self._quota(self._party.snapshots.require_current(me.dataset), part)
        if self._own_sink is not None:
            self._own_sink.check(_columns(part))

    def _part(self, job: PredictJob, me: Member) -> Part:
        store = self._shared if self._shared.has(job.predict.session) else self._models
        if not store.has(job.predict.session):
            self._refuse("predict.session", "it has no model of that session")
        part: Part = store.read(job.predict.session)
        if (part.party, part.role) != (me.name, me.role):
            self._refuse("parties", f"in that training it was {part.party}, {part.role}")
        return part

    def _quota(self, snapshot: Snapshot, part: Part) -> ScoreQuota | None:
        """Return the quota of a passive party's scores.

        Raises:
            PolicyRefused: the party gives no scores.
        """
        if part.role != "passive":
            return None
        quota = ScoreQuota.of(self._party, snapshot)
        quota.check()
        return quota

    def _rows(self, session: Session[PredictJob], part: Part) -> Source:
        """Return the rows. Raise DataError if the dataset lacks a column of the model."""
        scale = part.standardiser
        return session.published.for_model(scale.record, scale.columns, scale.means())

    def _refuse(self, field: str, reason: str) -> None:
        raise PolicyRefused(party=self._party.settings.name, field=field, reason=reason)

    async def run(self, session: Session[PredictJob]) -> dict[str, ParameterValue]:
        seats, part, clock = Seats.of(session), self._part(session.job, session.me), Clock()
        quota = self._quota(session.published, part)
        if seats.chain != part.data_parties:
            self._refuse("parties", "they are not those of the training, in the same roles")
        source = self._rows(session, part)
        await asyncio.to_thread(tell_of_unseen, source)
        rows = await asyncio.to_thread(read_rows, source, labels=False, report=session.report)
        clock.lap("read_s")
        positions = (await align_by_id(session, seats, rows, self._party)).positions
        clock.lap("align_s")
        session.report("score", 0, len(positions), "rows")
        scores = await self._scores(session, seats, part, quota, rows, positions)
        found = None
        if scores is not None:
            sink = self._sink(session)
            session.report("write scores")
            table = self._party.stamp_table(table_of(part, _in_own_order(rows, positions, scores)))
            await asyncio.to_thread(sink.write, table)
            self._note(session, sink)
            found = scores_in_short(part, scores, sink.origin.where)
        clock.lap("score_s")
        report = PredictReport(
            members=members_of(session),
            rows=RowFigures(len(rows.features), len(positions)),
            dataset=session.me.dataset,
            model=ModelFigures(isinstance(part, SharedModelPart)),
            scores=found,
            timing=TimingFigures(**clock.laps),
        )
        self._party.write_report(session.id, report.content(session), "predictions")
        return report.fields_for_coordinator()

    async def _scores(
        self,
        session: Session[PredictJob],
        seats: Seats,
        part: Part,
        quota: ScoreQuota | None,
        rows: PartyRows,
        positions: NDArray[np.int64],
    ) -> NDArray[np.int64] | None:
        """Return the scores of the rows at these positions, at the active party; do a passive party's part in them
        elsewhere.
        """
        features, places = rows.features[positions], rows.in_snapshot[positions]
        of_all = await shared_scores.tell_all(
            what_is_told(part), seats.me, seats.chain, seats.key_node, session.channel
        )
        if isinstance(part, SharedModelPart):
            return await scores_in_shares(session, seats, part, of_all, features, quota, places)
        own = await asyncio.to_thread(part.score_parts, features)
        if quota is None:
            return await predict.run_active(own, seats.passives, session.channel)
        await give_scores(quota, session, seats, part, own, places)
        return None

    def _sink(self, session: Session[PredictJob]) -> Sink:
        """Return the place of the scores. A file that replaces another belongs to the session."""
        party, own = self._party, self._own_sink
        if own is None:
            own = FileSink("csv", party.file(session.id, PREDICTED, "predictions").absolute(), "replace")
        if isinstance(own, FileSink) and own.if_exists == "replace":
            return replace(own, replace=lambda path, content: party.write_to(path, content, session.id))
        return own

    def _note(self, session: Session[PredictJob], sink: Sink) -> None:
        """Record the prediction for an evaluation, which must know the model, and a file without other scores."""
        path = ""
        if isinstance(sink, FileSink) and sink.kind == "csv" and sink.if_exists == "replace":
            path = os.path.relpath(sink.path, self._party.data_dir)
        with self._party.store.transaction() as transaction:
            transaction.note_prediction(Prediction(session.id, session.job.predict.session, sink.origin.where, path))


# --- files


def _in_own_order(rows: PartyRows, positions: NDArray[np.int64], scores: NDArray[np.int64]) -> Scored:
    """Return the scores in the order of the dataset, because the order of the alignment is random."""
    order = np.argsort(positions)
    return Scored(rows.ids.take(pa.array(positions[order])), scores[order])


def table_of(part: Part, scored: Scored) -> Any:
    """Return a table with id, score, and the probability or the value."""
    columns = [scored.ids, real_scores(scored.scores), part.predictions(scored.scores)]
    return pa.table(dict(zip(_columns(part), columns, strict=True)))


def scores_in_short(part: Part, scores: NDArray[np.int64], where: str) -> ScoreFigures:
    """Return the figures of the scores, for the active party's own report."""
    predicted, of = part.predictions(scores), _columns(part)[-1]
    histogram = value_histogram if of == "value" else probability_histogram
    if not len(predicted):
        return ScoreFigures(where=where, of=of, histogram=[])
    return ScoreFigures(
        where=where,
        of=of,
        mean=float(predicted.mean()),
        least=float(predicted.min()),
        median=float(np.median(predicted)),
        largest=float(predicted.max()),
        histogram=histogram(predicted),
    )


def _columns(part: Part) -> list[str]:
    return ["id", "score", "value" if part.model == "linear" else "probability"]
