"""The measurement server of a WALR job. If several parties hold columns, it fits, and sends each party its weights."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from blindfit.algorithms.errors import LocalProtocolError, RangeError
from blindfit.algorithms.protocols.walr import several_parties
from blindfit.algorithms.protocols.walr.messages import BlockFit
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.parties.measurement.seat import MeasurementSeat
from blindfit.parties.measurement.ways.several_parties import Blocks, ToFit, open_blocks
from blindfit.parties.sessions.session import Session
from blindfit.parties.sessions.system import Summary
from blindfit.parties.training.randomness import own_randomness
from blindfit.parties.training.rows import Report
from blindfit.parties.walr.fit import fit_sum, l2_of, rows_to_fit, watch
from blindfit.parties.walr.release_file import BATCHES
from blindfit.parties.walr.settings import WalrSettings
from blindfit.parties.work.long_work import StillWanted, while_wanted


class WalrServer(MeasurementSeat):
    async def run(self, session: Session[Any]) -> Summary:
        blocks = session.once(open_blocks)
        if blocks is None:
            return await super().run(session)
        try:
            blocks.begin()
            await self._answer(session)
            await self._tell(session, blocks)
        finally:
            blocks.cancel()
        return self._summary(session)

    async def _tell(self, session: Session[Any], blocks: Blocks) -> None:
        """Send each party its weights, after the fit is stored durably: so no release has two fits."""
        active = session.with_role("active").name
        to_fit = blocks.require_release()
        request_id = to_fit.request.request_id
        stored = self._party.store.reader().block_fit(active, request_id)
        if stored is None:
            content = await self._fit(session, to_fit)
            with self._party.store.transaction() as transaction:
                transaction.add_block_fit(active, request_id, blocks.settings_sha256, content)
        else:
            content = stored[1]
        for holder, fit in zip((*blocks.holders, active), _from_json(content), strict=True):
            await session.channel.send(holder, fit)

    async def _fit(self, session: Session[Any], to_fit: ToFit) -> bytes:
        """Return the fit. It ends with the session if the active party has gone, and when all give up waiting."""
        timeouts, active = session.job.timeouts, session.with_role("active").name
        randomness = own_randomness(self._party, session)
        work = partial(_fit_or_reason, to_fit, session.job.walr, randomness, session.report)
        fitting = asyncio.ensure_future(while_wanted(work, timeouts.session_s))
        await session.channel.wait_for(fitting, active, "the fit", timeouts.session_s + timeouts.step_s)
        return fitting.result()


def _fit_or_reason(
    to_fit: ToFit, settings: WalrSettings, randomness: PublicRandomness, report: Report, still_wanted: StillWanted
) -> bytes:
    """Return the fit in the form that is stored. If a fit does not converge, the error is stored as the only fit of its
    release: it depends on the rows.
    """
    try:
        return _to_json(fit_blocks(to_fit, settings, randomness, report, still_wanted))
    except RangeError as error:
        return json.dumps({"reason": error.message, "hint": error.hint}).encode()


def fit_blocks(
    to_fit: ToFit, settings: WalrSettings, randomness: PublicRandomness, report: Report, still_wanted: StillWanted
) -> list[BlockFit]:
    """Return the message for each party with columns, in the order of the blocks.

    Raises:
        RangeError: a weight is larger than the server may send.
    """
    request, answer = to_fit.request, to_fit.answer
    if to_fit.rows is None:
        raise LocalProtocolError("a fit of rows that did not come", session=request.session)
    tally = to_fit.rows
    trained_on = np.flatnonzero(tally.joined.any(axis=0)).tolist()
    generator = randomness.generator(BATCHES)
    rows = watch(rows_to_fit(tally.joined, np.ones(len(tally.joined), np.bool_), trained_on, request), still_wanted)
    # Not by the columns that are trained on: the number of others' constant columns is private.
    l2 = l2_of(settings, answer, request, request.n_columns)
    settings = settings.model_copy(update={"l2": l2})
    fit, _ = fit_sum(rows, trained_on, answer, request, settings, None, generator, report)
    weights = np.zeros(request.n_columns)
    weights[trained_on] = several_parties.step_8_rounded(fit.result.weights, int(answer.rows_kept))
    columns = tally.n_columns
    feasible = fit.feasibility.feasible
    return [
        BlockFit(
            weights=part,
            rows_kept=int(answer.rows_kept),
            solver=fit.result.solver,
            iterations=min(fit.result.iterations, several_parties.MOST_ITERATIONS),
            converged=int(fit.result.converged),
            gradient_norm=several_parties.step_8_rounded_norm(fit.result.gradient_norm),
            l2=fit.l2,
            feasible=-1 if feasible is None else int(feasible),
            left_out=np.flatnonzero(left_out),
        )
        for part, left_out in zip(
            several_parties.step_8_blocks(weights, columns),
            several_parties.step_8_blocks(tally.left_out, columns),
            strict=True,
        )
    ]


def _to_json(fits: Sequence[BlockFit]) -> bytes:
    listed = [{**asdict(fit), "weights": fit.weights.tolist(), "left_out": fit.left_out.tolist()} for fit in fits]
    return json.dumps(listed, allow_nan=False).encode()


def _from_json(content: bytes) -> list[BlockFit]:
    """Return the fits of a stored text. Raise RangeError if the fit had no good end."""
    fits = json.loads(content)
    if isinstance(fits, dict):
        raise RangeError(fits["reason"], hint=fits["hint"])
    return [
        BlockFit(
            **{
                **fit,
                "weights": np.array(fit["weights"]),
                "left_out": np.array(fit.get("left_out", []), np.int64),  # earlier versions left out no column
            }
        )
        for fit in fits
    ]
