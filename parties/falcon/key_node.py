"""The key node of a falcon job: it compares blinded ids, and deals the values that a training in shares needs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from blindfit.algorithms.messages import Channel, ParameterValue
from blindfit.algorithms.paillier.keys import generate_private_key
from blindfit.algorithms.protocols import falcon, ready
from blindfit.algorithms.protocols.falcon import Progress, Trained
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.sharing.prg import Seed
from blindfit.parties.falcon.answered import epochs_answered
from blindfit.parties.falcon.kept import drop_when_somebody_deviates
from blindfit.parties.falcon.parameters import parameters_of, preparation_of
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.receipts import keep_proof
from blindfit.parties.vertical.alignment import match_ids
from blindfit.parties.vertical.checkpoints import Checkpoints, common_epoch, refuse_unknown
from blindfit.parties.vertical.key_node import KeyNodeSeat
from blindfit.parties.vertical.seats import Seats
from blindfit.parties.work.own_thread import in_own_thread


class Dealer(KeyNodeSeat[FalconJob]):
    resume_option = FalconJob.resume_option

    async def _train(
        self, session: Session[FalconJob], seats: Seats, checkpoints: Checkpoints
    ) -> dict[str, ParameterValue]:
        seeds, rows = await self._begin(session, seats, checkpoints)
        mine = Ready(0, checkpoints.name_epochs())
        told = await ready.run_key_node(lambda _drawn: mine, seats.me, seats.chain, session.channel)
        epochs = epochs_answered(told[name] for name in seats.chain)
        if not epochs:
            epochs = (await self._deal(session, seats, checkpoints, told, seeds, rows)).epochs
        await self._finish(session, seats, checkpoints, epochs)
        return {"fit.epochs": epochs, "rows.common": rows}

    async def _deal(
        self,
        session: Session[FalconJob],
        seats: Seats,
        checkpoints: Checkpoints,
        told: Mapping[str, Ready],
        seeds: list[Seed],
        rows: int,
    ) -> Trained:
        job = session.job
        if job.privacy is not None:
            await keep_proof(self._party, session, seats.chain[0])
        resumed = common_epoch(told)
        checkpoints.drop_after(resumed)
        plan = preparation_of(job).plan(np.arange(rows))  # only its sizes are needed
        parameters = parameters_of(job, seats, told, plan)
        progress = Progress(report=lambda step, done, total: session.report(step, done, total, "batches"))
        if job.can_resume:
            progress = replace(progress, keep=lambda model, go_on: checkpoints.keep(model.epochs, go_on, {}))
        is_done = bool(resumed) and checkpoints.first_epoch(resumed, parameters.epochs) == parameters.epochs

        async def deal(channel: Channel) -> Trained:
            with drop_when_somebody_deviates(checkpoints):
                return await falcon.run_key_node(
                    parameters, seeds, session.id, channel, progress=progress, epochs=resumed, is_done=is_done
                )

        return await in_own_thread(session.channel, deal)

    async def _begin(
        self, session: Session[FalconJob], seats: Seats, checkpoints: Checkpoints
    ) -> tuple[list[Seed], int]:
        """Return the seeds of this training, kept until it ends, and the number of rows that all parties have."""
        if session.job.resumes:
            refuse_unknown(self._party.data_dir, session.job, seats.me)  # it may have ended since the proposal
            base = checkpoints.base(session.proposed_question)
            return [Seed(bytes.fromhex(octets)) for octets in base["seeds"]], int(base["rows"])
        seeds = [Seed.random() for _ in seats.chain]
        await falcon.deal_seeds(seeds, seats.chain, session.channel)
        if session.job.falcon.is_encrypted:
            key = await asyncio.to_thread(generate_private_key, session.job.falcon.key_bits)
            await falcon.deal_key(key, seats.chain, session.channel)
            del key  # this party keeps nothing of it
        rows = await match_ids(session, seats)
        if session.job.can_resume:
            checkpoints.begin(session.proposed_question, {"seeds": [seed.octets.hex() for seed in seeds], "rows": rows})
        return seeds, rows
