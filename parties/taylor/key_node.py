"""The key node: it makes a session's Paillier keys, compares blinded ids, and decrypts masked gradients and the
loss.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import structlog

from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.paillier.engines import engine_of
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.protocols import link, ready, taylor
from blindfit.algorithms.protocols.linkage import LinkageSummary
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.protocols.taylor import KeySeat, Progress, TaylorParameters
from blindfit.algorithms.randomness import UniformInt, keyed_uniform
from blindfit.algorithms.statistics.vertical.optimiser import Patience
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.parties.files.written import encode_json
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.taylor.engine import check_engine
from blindfit.parties.taylor.leaks import refuse_few_batches
from blindfit.parties.taylor.parameters import parameters_of, preparation_of
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.receipts import keep_proof
from blindfit.parties.vertical.alignment import linkage_settings, match_ids
from blindfit.parties.vertical.checkpoints import Checkpoints, common_epoch
from blindfit.parties.vertical.key_node import KeyNodeSeat
from blindfit.parties.vertical.linkage_report import content_of
from blindfit.parties.vertical.linkages import digest_linkage
from blindfit.parties.vertical.seats import Seats
from blindfit.parties.work.long_work import while_wanted

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class Begun:
    """State that holds from a training's beginning to its end, also when it is resumed."""

    private_key: PrivateKey
    slots: bytes = b""  # for a training that is resumed; the next field too
    rows: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class KeyNodeAligned:
    """The alignment at the key node.

    Args:
        rows: number of rows, or of slots.
        told: facts of the alignment that others may learn.
        slots: source of a linkage's slots; empty after an alignment by ids.
    """

    rows: int
    told: dict[str, ParameterValue]
    slots: bytes


def name_of(noise_key: bytes) -> str:
    """Return the name by which a charge distinguishes one noise from another; it does not reveal the key."""
    return hashlib.sha256(b"blindfit noise named v1/" + noise_key).hexdigest()


def noise_key_of(party: Party, session: Session[TaylorJob], slots: bytes, drawn: str) -> bytes:
    """Return the key from which all noise is drawn.

    It is the same for the same question about the same batches of the same rows, so a repeated question averages no
    noise out. Any other question has another key, so the difference of two answers reveals nothing.
    """
    return party.secret.derive("gradient noise", session.question, drawn.encode(), slots)


class KeyNode(KeyNodeSeat[TaylorJob]):
    resume_option = TaylorJob.resume_option

    def check(self, job: TaylorJob, me: Member) -> None:
        check_engine(job, me.name)
        super().check(job, me)

    async def _train(
        self, session: Session[TaylorJob], seats: Seats, checkpoints: Checkpoints
    ) -> dict[str, ParameterValue]:
        job = session.job
        begun = await self._begin(session, checkpoints)
        await taylor.share_key(begun.private_key.public_key, seats.chain, session.channel)
        aligned = await self._align(session, seats, begun, checkpoints)
        rows, summary = aligned.rows, aligned.told
        noise_key = b""

        def mine(drawn: str) -> Ready:
            nonlocal noise_key
            noise_key = noise_key_of(self._party, session, aligned.slots, drawn)
            return Ready(0, checkpoints.name_epochs(), name_of(noise_key))

        told = await ready.run_key_node(mine, seats.me, seats.chain, session.channel)
        if job.privacy is not None:
            await keep_proof(self._party, session, seats.chain[0])
        resumed = common_epoch(told)
        parameters = parameters_of(job, seats, told)
        plan = preparation_of(job).plan(np.arange(rows))  # only its sizes are needed
        refuse_few_batches(job, plan, seats.me)
        patience = Patience(job.taylor.patience, job.taylor.tolerance, relative=parameters.masked)
        seat = KeySeat(begun.private_key, noise_key, patience, threads=os.cpu_count() or 1)
        parameters = await self._select(session, plan, parameters, seat)
        if resumed:
            patience.restore(checkpoints.at(resumed))
        epochs = await taylor.run_key_node(
            seat,
            [len(batch) for batch in plan.batches],
            len(plan.validation),
            parameters,
            session.channel,
            first_epoch=checkpoints.first_epoch(resumed, parameters.epochs),
            progress=Progress(
                report=lambda step, done, total: session.report(
                    step + _newest(patience.losses), done, total, "batches"
                ),
                keep=lambda epoch, go_on: checkpoints.keep(epoch, go_on, patience.state()) if job.can_resume else None,
            ),
            in_thread=asyncio.to_thread,
        )
        await self._finish(session, seats, checkpoints, epochs)
        return {
            "fit.epochs": epochs,
            "fit.losses": tuple(f"{loss:.6f}" for loss in patience.losses),
            "key_bits": job.taylor.key_bits,
            **summary,
        }

    async def _select(
        self, session: Session[TaylorJob], plan: RowPlan, parameters: TaylorParameters, seat: KeySeat
    ) -> TaylorParameters:
        """Return the parameters of the final training, after all folds of the job's grid."""
        selection = session.job.selection
        if selection is None:
            return parameters
        point = await taylor.select_key_node(
            taylor.Folds(selection, plan, parameters),
            seat,
            session.channel,
            lambda step, done, total: session.report(step, done, total, "batches"),
            asyncio.to_thread,
        )
        return replace(parameters, epochs=selection.points[point].epochs)

    async def _begin(self, session: Session[TaylorJob], checkpoints: Checkpoints) -> Begun:
        """Return a key pair for this training, kept until it ends."""
        job = session.job
        engine = engine_of(job.paillier.engine)
        if job.resumes:
            base = checkpoints.base(session.proposed_question)
            key = await asyncio.to_thread(PrivateKey.from_bytes, bytes.fromhex(base["private_key"]))
            return Begun(engine.adopt_private(key), bytes.fromhex(base["slots"]), int(base["rows"]))
        session.report("make keys")
        key = await asyncio.to_thread(engine.generate_private_key, job.taylor.key_bits)
        return Begun(key)

    async def _align(
        self, session: Session[TaylorJob], seats: Seats, begun: Begun, checkpoints: Checkpoints
    ) -> KeyNodeAligned:
        job = session.job
        linkage = job.align.method == "linkage"
        told = "rows.slots" if linkage else "rows.common"
        if job.resumes:
            return KeyNodeAligned(begun.rows, {told: begun.rows}, begun.slots)
        slots = b""
        if linkage:

            def draw(uploads: bytes) -> UniformInt:
                nonlocal slots
                slots = self._party.secret.derive("slots of a linkage", uploads, digest_linkage(session))
                return keyed_uniform(slots, "slots")

            linked = await link.run_key_node(
                seats.chain,
                linkage_settings(job.align),
                engine_of(job.paillier.engine).own_randomisers(begun.private_key),
                seats.me,
                session.channel,
                draw=draw,
                in_thread=asyncio.to_thread,
                while_wanted=partial(while_wanted, max_s=job.timeouts.session_s),
                report=lambda step, done, total: session.report(step, done, total, "pairs"),
            )
            self._party.write(session.id, "linkage.json", encode_json(self._party.stamp(content_of(linked))))
            tell_of_few_matches(linked, job.align.match_rate)
            rows = max(linked.sizes)
        else:
            rows = await match_ids(session, seats)
        base = {
            "private_key": begun.private_key.to_bytes().hex(),
            "slots": slots.hex(),
            "rows": rows,
        }
        if job.can_resume:
            checkpoints.begin(session.proposed_question, base)
        return KeyNodeAligned(rows, {told: rows}, slots)


def tell_of_few_matches(linked: LinkageSummary, match_rate: float) -> None:
    """Warn only the operator: the data parties check with the job's rate, and only the key node knows the real one."""
    slots = max(linked.sizes)
    if linked.n_matches < match_rate * slots:
        log.warning(
            "fewer slots match than align.match_rate: gradients may reveal more of a row or label than was checked",
            matches=linked.n_matches,
            slots=slots,
        )


def _newest(losses: Sequence[float]) -> str:
    """Return the newest loss for the coordinator, which gets all losses in the end."""
    return f", hold-out loss {losses[-1]:.4f}" if losses else ""
