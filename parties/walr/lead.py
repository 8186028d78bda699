"""The active party of a WALR job with passive parties: it asks for the release of all columns."""

from __future__ import annotations

import asyncio

from blindfit.algorithms.messages import ParameterValue, parameters_digest
from blindfit.algorithms.protocols.walr import several_parties
from blindfit.algorithms.protocols.walr.messages import BlockFit
from blindfit.algorithms.statistics.walr.fit import treatment_of
from blindfit.algorithms.workers import Workers
from blindfit.parties.measurement.servers import Released, release_sum
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.randomness import draw_together
from blindfit.parties.training.report import TimingFigures, members_of
from blindfit.parties.training.split import HELD_OUT_ROWS
from blindfit.parties.vertical.linkages import count_common_rows
from blindfit.parties.vertical.scored_rows import ScoreQuota
from blindfit.parties.vertical.writing import write_part
from blindfit.parties.walr.holders import agree_on_grid, chain_of, find_left_out, part_of, passives_of, receive_fit
from blindfit.parties.walr.reading import read_where
from blindfit.parties.walr.release_file import servers_fit, write_release, write_rows
from blindfit.parties.walr.report import FitFigures, PrivacyFigures, RowFigures, WalrReport
from blindfit.parties.walr.rows import PreparedRows
from blindfit.parties.walr.settings import WalrJob
from blindfit.parties.work.clock import Clock


async def lead(party: Party, session: Session[WalrJob], workers: Workers | None) -> dict[str, ParameterValue]:
    job, clock, intercept = session.job, Clock(), session.job.walr.intercept
    source = session.published.source()
    session.report("read rows", unit="rows")
    randomness = await draw_together(party, session, chain_of(session))
    read = await asyncio.to_thread(read_where, source, job, randomness, session.report, workers, intercept=intercept)
    grid, blocks = await agree_on_grid(session, read)
    prepared = await asyncio.to_thread(read.round, grid)
    sent = tuple(block.content_sha256.hex() for block in blocks)
    await asyncio.to_thread(count_common_rows, session, party.settings, party.store, sent)
    quota, bits = ScoreQuota.of(party, session.published), several_parties.score_bits_of_a_fit(len(prepared.train.ids))
    question = parameters_digest({"question": session.question.hex(), "sent": sent}).hex()
    await asyncio.to_thread(quota.count_bits, session, bits, question=question)
    clock.lap("prepare_s")
    released = await release_sum(party, session, prepared.train, grid, blocks)
    clock.lap("aggregate_s")
    fit = await receive_fit(session, read.columns.width)
    clock.lap("fit_s")
    part = part_of(session, prepared, fit, intercept=intercept)
    report = report_of(session, prepared, released, fit, clock.laps)
    write_part(party, session.id, part, report.content(session))
    write_release(party, session, released, part, servers_fit(job, fit), grid.norm_bound)
    write_rows(party, session, released, prepared.train.ids)
    if len(prepared.test_ids):
        party.write_table(session.id, HELD_OUT_ROWS, {"id": prepared.test_ids})
    return report.fields_for_coordinator()


def report_of(
    session: Session[WalrJob], prepared: PreparedRows, released: Released, fit: BlockFit, laps: dict[str, float]
) -> WalrReport:
    answer, request = released.aggregate.answer, released.request
    scale = 2.0**-request.frac_bits / answer.rows_kept
    return WalrReport(
        members=members_of(session),
        rows=RowFigures(
            trained=int(answer.rows_kept),
            held_out=len(prepared.test_ids),
            clipped=prepared.rows_clipped,
            not_counted=int(request.n_rows - answer.rows_kept),
            features=int(request.n_columns - session.job.walr.intercept),
            dropped_columns=prepared.standardiser.dropped,
            left_out=find_left_out(prepared, fit) or None,
        ),
        privacy=PrivacyFigures(
            **released.privacy(), noise_std_of_mean=answer.noise_std * scale, holders=passives_of(session)
        ),
        fit=FitFigures(
            solver=fit.solver,
            iterations=int(fit.iterations),
            converged=bool(fit.converged),
            reason=f"fitted by {session.with_role('measurement').name}",
            gradient_norm=fit.gradient_norm,
            l2=fit.l2,
            mu=treatment_of(session.job.walr.mu, answer.rows_kept * request.n_columns),
            feasible=None if fit.feasible < 0 else bool(fit.feasible),
        ),
        bytes_sent=released.aggregate.bytes_sent + session.channel.bytes_sent,
        messages_sent=released.aggregate.messages_sent + session.channel.messages_sent,
        timing=TimingFigures(**laps),
    )
