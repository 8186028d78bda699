"""The active party of an evaluation: scores its rows, asks for one noisy sum, and makes figures of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import DataError, PolicyRefused
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.protocols.walr import ConsumerRows
from blindfit.algorithms.protocols.walr_grid import Grid
from blindfit.algorithms.statistics.released_evaluation import LEAST_SCORE_BOUND, Interval, ScoredRows
from blindfit.algorithms.statistics.vertical_model import FORMAT as PART
from blindfit.algorithms.statistics.walr_model import WALRModel
from blindfit.parties.evaluate.settings import EvaluateJob
from blindfit.parties.files import written
from blindfit.parties.measurement.servers import Released, release_sum
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.sessions import Member, Session
from blindfit.parties.training.rows import check_features, with_columns_of
from blindfit.parties.training.split import HELD_OUT_ROWS, HELD_OUT_SCORES
from blindfit.parties.training.summary import told
from blindfit.parties.work.clock import Clock

NORM_BOUND = 1.0  # of what is sent of a row
SCORE_QUANTILE = 0.99  # of the sizes of scores, what "auto" clips to
LARGEST_LOG_ODDS = 700.0  # of a probability of 0 or 1
Floats = NDArray[np.float64]


PREDICTED = "scores.csv"  # of a joint prediction


@dataclass(frozen=True, repr=False)
class Scored:
    ids: tuple[str, ...]
    scores: Floats  # log-odds


class Evaluation:
    def __init__(self, party: Party) -> None:
        self._party = party

    def check(self, job: EvaluateJob, me: Member) -> None:
        """What can be refused before a session starts: the model is here, and the rows that it is to be tried on."""
        model, settings = self._file(job, "model.json"), job.evaluate
        is_part = _is_part(model)
        if is_part != bool(settings.scores):
            reason = "several parties hold columns of that model: name the joint prediction that has scored the rows"
            self._refuse("evaluate.scores", reason if is_part else "that model scores rows alone: name no prediction")
        if is_part:
            self._file(job, PREDICTED, option="scores")
            if settings.rows == "held-out":
                self._file(job, HELD_OUT_ROWS)
        elif settings.rows == "held-out":
            self._file(job, HELD_OUT_SCORES)
        else:
            check_features(self._party.snapshots.source(me.dataset), "an active party")

    def _refuse(self, field: str, reason: str) -> None:
        raise PolicyRefused(party=self._party.settings.name, field=field, reason=reason)

    def _file(self, job: EvaluateJob, name: str, option: Literal["session", "scores"] = "session") -> Path:
        """What the training left, or a prediction, wherever its operator has it put."""
        data_dir, session = self._party.data_dir, getattr(job.evaluate, option)
        for path in self._party.store.reader().files_of(session):
            if Path(path).name == name and (data_dir / path).exists():
                return data_dir / path
        reason = f"it has no {name} of that session; a later job may have written over it"
        raise PolicyRefused(party=self._party.settings.name, field=f"evaluate.{option}", reason=reason)

    async def run(self, session: Session[EvaluateJob]) -> dict[str, ParameterValue]:
        job, clock = session.job, Clock()
        session.report("score rows", unit="rows")
        scored = await asyncio.to_thread(self._scored, session)
        rows = scored_rows(scored, job)
        grid = Grid.of(NORM_BOUND, job.evaluate.frac_bits)
        integers = fixed_point.quantise_rows(rows.columns(), grid.norm_bound, grid.frac_bits)
        clock.lap("score_s")
        asked = ConsumerRows(scored.ids, integers)
        released = await release_sum(self._party, session, asked, grid)
        clock.lap("aggregate_s")
        figures = evaluated(rows, released)
        report = _report(session, rows, released, figures, clock.laps)
        self._party.write(session.id, "report.json", written.encoded_json(report), "evaluations")
        return told(report, ("rows", "privacy", "timing"), ("receipt", "request_id"))

    def _scored(self, session: Session[EvaluateJob]) -> Scored:
        if session.job.evaluate.scores:
            return self._predicted(session.job)
        if session.job.evaluate.rows == "held-out":
            return read_scores(self._file(session.job, HELD_OUT_SCORES))
        path = self._file(session.job, "model.json")
        try:
            model = WALRModel.from_dict(written.read_json(path))
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        columns, dataset = model.standardiser.columns, self._party.settings.datasets[session.me.dataset]
        source = session.published.source_as(with_columns_of(columns, dataset, session.me.dataset, labels=False))
        ids: list[str] = []
        scores: list[Floats] = []
        for batch in source.batches(persons=False, labels=False, means=model.standardiser.means()):
            ids += batch.ids.to_pylist()
            scores.append(model.scores(dict(zip(source.feature_names, batch.features.T, strict=True))))
            session.report("score rows", len(ids), 0, "rows")
        return Scored(tuple(ids), np.concatenate(scores) if scores else np.zeros(0))

    def _predicted(self, job: EvaluateJob) -> Scored:
        """Rows that the parties have scored together: those that the training held out, or all."""
        scored = read_scores(self._file(job, PREDICTED, option="scores"))
        if job.evaluate.rows == "all":
            return scored
        table = read_csv(self._file(job, HELD_OUT_ROWS))
        held_out = set(table.column("id").to_pylist())
        here = np.array([i in held_out for i in scored.ids], np.bool_)
        return Scored(tuple(i for i in scored.ids if i in held_out), scored.scores[here])


def _is_part(model: Path) -> bool:
    content = written.read_json(model)
    return isinstance(content, Mapping) and content.get("format") == PART


def read_scores(path: Path) -> Scored:
    """What a training wrote of its held-out rows, or a joint prediction.

    Raises:
        DataError: names the file and what is wrong with it.
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


def scored_rows(scored: Scored, job: EvaluateJob) -> ScoredRows:
    """Raises DataError: there are none."""
    if not scored.ids:
        raise DataError(
            "there is no row to evaluate on", hint="train with a split.test_fraction above 0, or evaluate all rows"
        )
    settings = job.evaluate
    typical = max(LEAST_SCORE_BOUND, float(np.quantile(np.abs(scored.scores), SCORE_QUANTILE)))
    bound = typical if settings.score_bound == "auto" else settings.score_bound
    return ScoredRows.of(scored.scores, bound, settings.figures, min(settings.bins, len(scored.ids)))


def evaluated(rows: ScoredRows, released: Released) -> dict[str, Interval]:
    """On the rows that counted; the same release has the same ranges."""
    scale = 2.0**-released.request.frac_bits
    answer = released.aggregate.answer
    counted = rows.kept(released.aggregate.kept)
    return counted.evaluated(answer.sums.astype(np.float64) * scale, answer.noise_std * scale, np.random.default_rng(0))


def _report(
    session: Session[EvaluateJob],
    rows: ScoredRows,
    released: Released,
    figures: dict[str, Interval],
    laps: dict[str, float],
) -> dict[str, Any]:
    answer = released.aggregate.answer
    return {
        "session": session.id,
        "party": session.me.name,
        "role": session.me.role,
        "job": dict(session.parameters),
        "rows": {
            "sent": int(released.request.n_rows),
            "counted": int(answer.rows_kept),
        },
        "privacy": released.privacy(),
        "figures": {name: asdict(figure) for name, figure in figures.items()},
        "score_bound": rows.bound,
        "bins": rows.n_bins,
        "timing": laps,
        **released.told(),
    }
