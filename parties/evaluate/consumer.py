"""The active party of an evaluation: it scores its rows, asks for one noisy sum, and computes figures from it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow.csv as pa_csv
import structlog
from numpy.typing import NDArray

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import DataError, PolicyRefused
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.protocols.walr import ConsumerRows
from blindfit.algorithms.statistics.vertical.model import FORMAT as PART
from blindfit.algorithms.statistics.walr.evaluation import LEAST_SCORE_BOUND, ScoredRows
from blindfit.algorithms.statistics.walr.evaluation_bins import Interval
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.parties.evaluate.report import report_of
from blindfit.parties.evaluate.settings import EvaluateJob
from blindfit.parties.files import written
from blindfit.parties.measurement.servers import Released, release_sum
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.rows import require_offered, tell_of_unseen
from blindfit.parties.training.split import HELD_OUT_ROWS, HELD_OUT_SCORES
from blindfit.parties.work.clock import Clock

SCORE_QUANTILE = 0.99  # quantile of the sizes of scores to which "auto" clips
LARGEST_LOG_ODDS = 700.0  # log odds of a probability of 0 or 1
Floats = NDArray[np.float64]


ELSEWHERE = (
    "its scores are in the place of scores.url in this party's file. An evaluation reads only a csv file of one "
    'prediction: set scores.url to a csv file and scores.if_exists = "replace", or remove [scores], and predict again'
)
log = structlog.get_logger(__name__)


@dataclass(frozen=True, repr=False)
class Scored:
    ids: tuple[str, ...]
    scores: Floats  # log odds


class Evaluation:
    def __init__(self, party: Party) -> None:
        self._party = party

    def check(self, job: EvaluateJob, me: Member) -> None:
        """Refuse what can be refused before a session starts: the model must be here, and the rows to evaluate it
        on.
        """
        self._check_done(job)
        path, model = self._model(job)
        settings, is_part = job.evaluate, model.get("format") == PART
        if is_part != bool(settings.scores):
            reason = "several parties hold columns of that model: name the joint prediction that has scored the rows"
            self._refuse(
                "evaluate.scores", reason if is_part else "that model scores rows by itself: name no prediction"
            )
        if is_part:
            self._find_predicted_file(job)
            if settings.rows == "held-out":
                self._file(job, HELD_OUT_ROWS)
        elif settings.rows == "held-out":
            self._file(job, HELD_OUT_SCORES)
        else:
            scale = self._read(path, model).standardiser
            require_offered(scale.record, self._party.settings.datasets[me.dataset], me.dataset)
            self._party.snapshots.check_scored(me.dataset, scale.record, scale.columns)

    @staticmethod
    def _read(path: Path, content: Mapping[str, Any]) -> WALRModel:
        try:
            return WALRModel.from_dict(content)
        except DataError as error:
            raise DataError(f"{path}: {error.message}", hint=error.hint) from None

    def _refuse(self, field: str, reason: str) -> NoReturn:
        raise PolicyRefused(party=self._party.settings.name, field=field, reason=reason)

    def _check_done(self, job: EvaluateJob) -> None:
        """Refuse a job that did not end well: its results may be incomplete."""
        for option, session in (("session", job.evaluate.session), ("scores", job.evaluate.scores)):
            row = self._party.store.reader().session(session)
            if row is not None and row.state != "DONE":
                self._refuse(f"evaluate.{option}", f"{session} is {row.state.lower()}, not done")

    def _file(self, job: EvaluateJob, name: str) -> Path:
        """Return a file of the training, in the folder that its operator chose."""
        found = [path for path in self._party.files_of(job.evaluate.session) if path.name == name and path.exists()]
        if not found:
            self._refuse("evaluate.session", _missing_file(name))
        return found[0]

    def _model(self, job: EvaluateJob) -> tuple[Path, Mapping[str, Any]]:
        """Return the model of that training; its file must name the same training."""
        path = self._file(job, "model.json")
        content = written.read_json(path)
        if not isinstance(content, Mapping):
            raise DataError(f"{path} is not a model")
        if content.get("session", job.evaluate.session) != job.evaluate.session:
            self._refuse("evaluate.session", _missing_file("model.json"))
        return path, content

    def _find_predicted_file(self, job: EvaluateJob) -> Path:
        """Return the file of the joint prediction, if it used this model."""
        model, scores = job.evaluate.session, job.evaluate.scores
        made = self._party.store.reader().prediction(scores)
        if made is None:
            self._refuse("evaluate.scores", "it has made no joint prediction of that name")
        if made.model != model:
            self._refuse("evaluate.scores", f"the model of {made.model} has made {scores}, and not that of {model}")
        if not made.path:
            log.warning("an evaluation cannot read the scores of a prediction", session=scores, where=made.place)
            self._refuse("evaluate.scores", ELSEWHERE)
        path = Path(os.path.normpath(self._party.data_dir / made.path))
        if path not in self._party.files_of(scores) or not path.exists():
            self._refuse("evaluate.scores", _missing_file("file of scores"))
        return path

    async def run(self, session: Session[EvaluateJob]) -> dict[str, ParameterValue]:
        job, clock = session.job, Clock()
        session.report("score rows", unit="rows")
        scored = await asyncio.to_thread(self.score, session)
        rows = make_scored_rows(scored, job)
        grid = job.grid
        integers = fixed_point.quantise_rows(rows.columns(), grid.norm_bound, grid.frac_bits)
        clock.lap("score_s")
        asked = ConsumerRows(scored.ids, integers)
        released = await release_sum(self._party, session, asked, grid)
        clock.lap("aggregate_s")
        figures = evaluate(rows, released)
        report = report_of(rows, released, figures, clock.laps)
        self._party.write_report(session.id, report.content(session), "evaluations")
        return report.fields_for_coordinator()

    def score(self, session: Session[EvaluateJob]) -> Scored:
        """Return the rows to evaluate on, with their scores."""
        if session.job.evaluate.scores:
            return self._read_predicted(session.job)
        if session.job.evaluate.rows == "held-out":
            return read_scores(self._file(session.job, HELD_OUT_SCORES))
        model = self._read(*self._model(session.job))
        scale = model.standardiser
        require_offered(scale.record, self._party.settings.datasets[session.me.dataset], session.me.dataset)
        source = session.published.for_model(scale.record, scale.columns, scale.means())
        tell_of_unseen(source)
        ids: list[str] = []
        scores: list[Floats] = []
        for batch in source.batches(persons=False, labels=False):
            ids += batch.ids.to_pylist()
            scores.append(model.scores(batch.features))
            session.report("score rows", len(ids), 0, "rows")
        return Scored(tuple(ids), np.concatenate(scores) if scores else np.zeros(0))

    def _read_predicted(self, job: EvaluateJob) -> Scored:
        """Return rows that the parties have scored together: the rows that the training held out, or all rows."""
        scored = read_scores(self._find_predicted_file(job))
        if job.evaluate.rows == "all":
            return scored
        table = read_csv(self._file(job, HELD_OUT_ROWS))
        held_out = set(table.column("id").to_pylist())
        here = np.array([i in held_out for i in scored.ids], np.bool_)
        return Scored(tuple(i for i in scored.ids if i in held_out), scored.scores[here])


def _missing_file(name: str) -> str:
    return f"it has no {name} of that session; a later job may have written over it"


def read_scores(path: Path) -> Scored:
    """Read the scores of a training's held-out rows, or of a joint prediction.

    Raises:
        DataError: there is an error in the file; the message names the file.
    """
    try:
        table = read_csv(path)
        ids, given = table.column("id").to_pylist(), table.column("probability").to_numpy().astype(np.float64)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a table of id and probability: {str(error).splitlines()[0]}") from None
    outside = ~((given >= 0) & (given <= 1))
    if outside.any():
        raise DataError(f"{path}: row {int(np.argmax(outside)) + 1}: the probability is not between 0 and 1")
    with np.errstate(divide="ignore"):
        scores = np.log(given) - np.log1p(-given)
    return Scored(tuple(ids), np.clip(scores, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))


def read_csv(path: Path) -> Any:
    return pa_csv.read_csv(path, convert_options=pa_csv.ConvertOptions(column_types={"id": "string"}))


def make_scored_rows(scored: Scored, job: EvaluateJob) -> ScoredRows:
    """Return the rows to evaluate. Raise DataError if no row is left."""
    if not scored.ids:
        hint = 'train with a split.test_fraction above 0, or set evaluate.rows = "all"'
        raise DataError("there is no row to evaluate on", hint=hint if job.evaluate.rows == "held-out" else "")
    settings = job.evaluate
    typical = max(LEAST_SCORE_BOUND, float(np.quantile(np.abs(scored.scores), SCORE_QUANTILE)))
    bound = typical if settings.score_bound == "auto" else settings.score_bound
    return ScoredRows.of(scored.scores, bound, settings.figures, min(settings.bins, len(scored.ids)))


def evaluate(rows: ScoredRows, released: Released) -> dict[str, Interval]:
    """Return the figures of the rows that counted; the same release has the same ranges."""
    scale = 2.0**-released.request.frac_bits
    answer = released.aggregate.answer
    counted = rows.select(released.aggregate.kept)
    return counted.evaluate(answer.sums.astype(np.float64) * scale, answer.noise_std * scale, np.random.default_rng(0))
