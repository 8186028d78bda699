"""The active party of a WALR job: it holds features, asks for an aggregate, fits, and keeps the model."""

from __future__ import annotations

import asyncio
from functools import partial

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.walr.defaults import Bounds
from blindfit.parties.files.written import encode_json
from blindfit.parties.measurement.servers import Released, release_sum
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.randomness import own_randomness
from blindfit.parties.training.rows import check_features
from blindfit.parties.training.split import HELD_OUT_SCORES
from blindfit.parties.walr import release_document
from blindfit.parties.walr.fit import FittedModel, bounds_of, fit_walr, init_weights
from blindfit.parties.walr.holders import passives_of
from blindfit.parties.walr.lead import lead
from blindfit.parties.walr.reading import cluster_of, prepare_rows
from blindfit.parties.walr.release_file import BATCHES, own_fit, write_release, write_rows
from blindfit.parties.walr.report import WalrReport, report_of
from blindfit.parties.walr.rows import PreparedRows
from blindfit.parties.walr.settings import WalrJob
from blindfit.parties.walr.start import Start, read_start
from blindfit.parties.work.clock import Clock
from blindfit.parties.work.long_work import while_wanted


class Consumer:
    def __init__(self, party: Party) -> None:
        self._party = party
        self._workers = cluster_of(party)  # now, before the party reports that it is running: an error in it shows here

    def check(self, job: WalrJob, me: Member) -> None:
        """Refuse what can be refused before a session starts: the dataset must open and have features."""
        source = check_features(self._party.snapshots.source(me.dataset), "an active party")
        read_start(job, self._party.base_dir, source, self._party.settings)
        if job.walr.norm_bound != "auto":
            job.grid(job.walr.norm_bound)

    async def run(self, session: Session[WalrJob]) -> dict[str, ParameterValue]:
        if passives_of(session):
            return await lead(self._party, session, self._workers)
        job, clock = session.job, Clock()
        source, randomness = session.published.source(), own_randomness(self._party, session)
        session.report("read rows", unit="rows")
        start = read_start(job, self._party.base_dir, source, self._party.settings)
        init = start.model if start else None
        prepared = await asyncio.to_thread(prepare_rows, source, job, randomness, session.report, self._workers)
        clock.lap("prepare_s")
        released, bounds = await self._release(session, prepared)
        clock.lap("aggregate_s")
        fit = await self._fit(session, prepared, released, randomness, init, bounds)
        clock.lap("fit_s")
        tested = await asyncio.to_thread(prepared.probabilities_held_out, fit.model)
        report = report_of(prepared, released, fit, tested, clock.laps)
        self._write(session, prepared, fit, tested, report)
        of_start = _start_of(start, init_weights(init, prepared.standardiser, job.walr))
        of_fit = own_fit(job, fit.fit, of_start, randomness.seed_of(BATCHES))
        write_release(self._party, session, released, fit.model, of_fit)
        write_rows(self._party, session, released, prepared.train.ids)
        return report.fields_for_coordinator()

    async def _release(self, session: Session[WalrJob], prepared: PreparedRows) -> tuple[Released, Bounds | None]:
        """Return the noisy sum, and the part of the fit that needs only the rows, computed while the server works."""
        beside = asyncio.create_task(asyncio.to_thread(bounds_of, prepared))
        try:
            released = await release_sum(self._party, session, prepared.train, prepared.grid)
            return released, await beside
        finally:
            beside.cancel()

    async def _fit(
        self,
        session: Session[WalrJob],
        prepared: PreparedRows,
        released: Released,
        randomness: PublicRandomness,
        init: Pretrained | None,
        bounds: Bounds | None,
    ) -> FittedModel:
        job = session.job
        work = partial(fit_walr, prepared, released, job, randomness, session.report, init, bounds)
        return await while_wanted(work, job.timeouts.session_s)

    def _write(
        self,
        session: Session[WalrJob],
        prepared: PreparedRows,
        fit: FittedModel,
        tested: NDArray[np.float64],
        report: WalrReport,
    ) -> None:
        party, me = self._party, session.id
        model = {**fit.model.to_dict(), "privacy": report.privacy.to_dict(), "session": me}
        party.write(me, "model.json", encode_json(party.stamp(model)))
        party.write_report(me, report.content(session))
        if len(tested):
            columns = {"id": prepared.test_ids, "probability": tested}
            party.write_table(me, HELD_OUT_SCORES, columns)


def _start_of(start: Start | None, weights: NDArray[np.float64] | None) -> release_document.Start | None:
    if start is None or weights is None:
        return None
    return release_document.Start(weights=weights.tolist(), public=start.public, release=start.release)
