"""The key node: makes a session's Paillier keys, compares blinded ids, decrypts masked gradients and the loss."""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from blindfit.algorithms.alignment import psi
from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.paillier.engines import engine_of
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.protocols import align, link, ready, taylor
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.protocols.taylor import KeySeat, Progress
from blindfit.algorithms.statistics.taylor import Patience
from blindfit.algorithms.statistics.taylor_plan import RowPlan
from blindfit.parties.vertical.checkpoints import Checkpoints, common_epoch, refuse_unknown
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.vertical.linkage_report import write_linkage_report
from blindfit.parties.sessions.sessions import Member, Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.taylor.data_party import parameters_of
from blindfit.parties.vertical.alignment import linkage_settings
from blindfit.parties.taylor.engine import check_engine
from blindfit.parties.vertical.seats import Seats


@dataclass(frozen=True, slots=True, repr=False)
class Begun:
    """What holds from a training's beginning to its end, also when it is resumed."""

    private_key: PrivateKey
    noise_key: bytes
    rows: int  # of the training that is resumed


class KeyNode:
    def __init__(self, settings: PartySettings, base_dir: Path) -> None:
        self._settings, self._base_dir = settings, base_dir

    def check(self, job: JobParameters, me: Member) -> None:
        """A key node holds no rows, and has the job's engine."""
        check_engine(job, me.name)
        if me.dataset:
            raise PolicyRefused(party=me.name, field="dataset", reason="a key node has none")
        refuse_unknown(self._base_dir / self._settings.data_dir, job, me.name)

    async def run_taylor(self, session: Session) -> dict[str, ParameterValue]:
        seats, job = Seats.of(session), session.job
        checkpoints = Checkpoints(self._base_dir / self._settings.data_dir, job.taylor.resume or session.id)
        begun = await self._begin(session, checkpoints)
        await taylor.share_key(begun.private_key.public_key, seats.chain, session.channel)
        rows, summary = await self._align(session, seats, begun, checkpoints)
        mine = Ready(0, (), ",".join(map(str, checkpoints.epochs())))
        told = await ready.run_party(mine, seats.me, seats.chain, session.channel)
        resumed = common_epoch({name: said.checkpoint for name, said in told.items()})
        parameters = parameters_of(job, seats, told)
        plan = RowPlan.draw(
            rows,
            test_fraction=job.test_fraction,
            validation_fraction=job.hold_out_fraction,
            batch_rows=job.taylor.batch_rows,
            seed=job.seed,
        )
        patience = Patience(job.taylor.patience, job.taylor.tolerance)
        if resumed:
            patience.losses = [float(loss) for loss in checkpoints.at(resumed)["losses"]]
        epochs = await taylor.run_key_node(
            KeySeat(begun.private_key, begun.noise_key, patience, threads=os.cpu_count() or 1),
            [len(batch) for batch in plan.batches],
            len(plan.validation),
            parameters,
            session.channel,
            first_epoch=checkpoints.first_epoch(resumed, parameters.epochs),
            progress=Progress(
                report=lambda step, done, total: session.report(step, done, total, "batches"),
                keep=lambda epoch, go_on: checkpoints.keep(epoch, go_on, {"losses": patience.losses}),
            ),
            in_thread=asyncio.to_thread,
        )
        await ready.run_stored(epochs, seats.chain, session.channel)
        checkpoints.remove()
        return {
            "fit.epochs": epochs,
            "fit.losses": tuple(f"{loss:.6f}" for loss in patience.losses),
            "key_bits": job.taylor.key_bits,
            **summary,
        }

    async def run_predict(self, session: Session) -> dict[str, ParameterValue]:
        return {"rows.common": await align_by_id(session, Seats.of(session))}

    def _reports(self, session: Session) -> Path:
        return self._base_dir / (self._settings.output_dir or self._settings.data_dir / "models" / session.id)

    async def _begin(self, session: Session, checkpoints: Checkpoints) -> Begun:
        """A key pair and the noise's secret for this training, kept until it ends."""
        job = session.job
        engine = engine_of(job.paillier.engine)
        if job.taylor.resume:
            base = checkpoints.base(job)
            key = await asyncio.to_thread(PrivateKey.from_bytes, bytes.fromhex(base["private_key"]))
            return Begun(engine.adopt_private(key), bytes.fromhex(base["noise_key"]), int(base["rows"]))
        session.report("make keys")
        key = await asyncio.to_thread(engine.generate_private_key, job.taylor.key_bits)
        return Begun(key, secrets.token_bytes(32), 0)

    async def _align(
        self, session: Session, seats: Seats, begun: Begun, checkpoints: Checkpoints
    ) -> tuple[int, dict[str, ParameterValue]]:
        """The number of rows or slots, and what may be told of the alignment."""
        job = session.job
        linkage = job.align.method == "linkage"
        told = "rows.slots" if linkage else "rows.common"
        if job.taylor.resume:
            return begun.rows, {told: begun.rows}
        if linkage:
            linked = await link.run_key_node(
                seats.chain,
                linkage_settings(job.align),
                engine_of(job.paillier.engine).own_randomisers(begun.private_key),
                seats.me,
                session.channel,
                in_thread=asyncio.to_thread,
                report=lambda step, done, total: session.report(step, done, total, "pairs"),
            )
            write_linkage_report(self._reports(session), linked)
            rows = max(linked.sizes)
        else:
            rows = await align_by_id(session, seats)
        base = {
            "private_key": begun.private_key.to_bytes().hex(),
            "noise_key": begun.noise_key.hex(),
            "rows": rows,
        }
        checkpoints.begin(job, base)
        return rows, {told: rows}


async def align_by_id(session: Session, seats: Seats) -> int:
    """How many rows all data parties have."""
    return await align.run_key_node(
        seats.chain,
        seats.me,
        session.channel,
        workers=psi.Threads(os.cpu_count() or 1),
        in_thread=asyncio.to_thread,
        report=lambda step, done, total: session.report(step, done, total, "ids"),
    )
