"""A passive party of a WALR job: it holds other columns of the same people, and keeps the weights of its own
columns.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.protocols.walr import several_parties
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.randomness import draw_together
from blindfit.parties.training.report import TimingFigures, members_of
from blindfit.parties.training.rows import check_features
from blindfit.parties.vertical.linkages import count_common_rows
from blindfit.parties.vertical.scored_rows import ScoreQuota
from blindfit.parties.vertical.writing import write_part
from blindfit.parties.walr.holders import chain_of, find_left_out, part_of, receive_fit, round_as_told, send_if_wanted
from blindfit.parties.walr.reading import cluster_of, read_where
from blindfit.parties.walr.report import HolderReport, HolderRows
from blindfit.parties.walr.settings import WalrJob
from blindfit.parties.work.clock import Clock


class ColumnHolder:
    def __init__(self, party: Party) -> None:
        self._party, self._workers = party, cluster_of(party)

    def check(self, job: WalrJob, me: Member) -> None:  # noqa: ARG002 - the same for every job
        """Refuse what can be refused before a session starts: the dataset must open and have features."""
        check_features(self._party.snapshots.source(me.dataset), "a passive party")

    async def run(self, session: Session[WalrJob]) -> dict[str, ParameterValue]:
        party, clock = self._party, Clock()
        source, salt = session.published.source(), self._salt(session)
        session.report("read rows", unit="rows")
        randomness = await draw_together(party, session, chain_of(session))
        read = await asyncio.to_thread(
            read_where, source, session.job, randomness, session.report, self._workers, intercept=False
        )
        prepared, content = await round_as_told(party, session, read, salt, randomness)
        clock.lap("prepare_s")
        quota = ScoreQuota.of(party, session.published)
        bits = several_parties.score_bits_of_a_fit(len(prepared.train.ids))

        def count() -> None:
            # The others' rows have no name here, so each session counts.
            count_common_rows(session, party.settings, party.store, [session.id])
            quota.count_bits(session, bits)

        await send_if_wanted(session, prepared, content, salt, count=count)
        clock.lap("send_s")
        fit = await receive_fit(session, read.columns.width)
        clock.lap("wait_s")
        part = replace(part_of(session, prepared, fit, intercept=False), trained_in=session.id)
        part = self._round_scores(session, part)
        report = HolderReport(
            members=members_of(session),
            rows=HolderRows(
                sent=len(prepared.train.ids),
                held_out=len(prepared.test_ids),
                trained=int(fit.rows_kept),
                features=len(source.model_columns),
                clipped=prepared.rows_clipped,
                left_out=find_left_out(prepared, fit) or None,
            ),
            bytes_sent=session.channel.bytes_sent,
            messages_sent=session.channel.messages_sent,
            timing=TimingFigures(**clock.laps),
        )
        write_part(party, session.id, part, report.content(session))
        return report.fields_for_coordinator()

    def _salt(self, session: Session[WalrJob]) -> bytes:
        """Return the salt of the rows' hash. Without the salt nobody can test guesses of rows against the hash."""
        return self._party.secret.derive("salt of sent rows", bytes.fromhex(session.published.id))

    def _round_scores(self, session: Session[WalrJob], part: VerticalModelPart) -> VerticalModelPart:
        return replace(part, score_rounding=ScoreQuota.of(self._party, session.published).rounding(part))
