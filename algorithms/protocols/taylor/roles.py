"""The roles of a Taylor training: every line is a step, a send or a receive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from blindfit.algorithms.errors import MalformedMessage
from blindfit.algorithms.messages import Channel, CiphertextVector
from blindfit.algorithms.paillier.ciphertexts import Ciphertext
from blindfit.algorithms.paillier.key_checks import check_public_key
from blindfit.algorithms.paillier.keys import PublicKey
from blindfit.algorithms.paillier.packing import Layout, PackedVector
from blindfit.algorithms.paillier.vectors import EncryptedVector
from blindfit.algorithms.protocols.taylor.calibration import (
    SUMS,
    step_8_start,
    step_8_sums,
    step_9_calibration,
    step_9_told,
)
from blindfit.algorithms.protocols.taylor.hold_out import (
    step_0_labels,
    step_0_mu,
    step_6_loss,
    step_6_scores,
    step_6_start,
    step_7_verdict,
)
from blindfit.algorithms.protocols.taylor.messages import (
    Calibration,
    CalibrationSums,
    ChainedResiduals,
    HoldOutLabels,
    HoldOutLoss,
    MaskedGradient,
    NoisyGradient,
    PartialLoss,
    PartialSums,
    Residuals,
    RowFactors,
    TaylorKey,
    Verdict,
)
from blindfit.algorithms.protocols.taylor.parameters import (
    DataSeat,
    Encrypted,
    Floats,
    KeySeat,
    TaylorParameters,
    check_parameters,
    check_seat,
)
from blindfit.algorithms.protocols.taylor.steps import (
    step_0_factors,
    step_0_own_factors,
    step_1_residuals,
    step_2_add,
    step_3_gradient,
    step_4_answer,
    step_5_gradient,
)
from blindfit.algorithms.statistics.vertical.grid import LABEL_TERM_BOUND, Grid
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan, Rows

R = TypeVar("R")
InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


async def directly(function: Callable[[], R]) -> R:
    """Call the function at once, for callers without an event loop that would wait: tests, run_locally."""
    return function()


@dataclass(slots=True)
class Progress:
    """Functions that report a party's progress: (epoch, batch, batches)."""

    report: Callable[[str, int, int], None] = lambda _step, _done, _total: None
    keep: Callable[[int, bool], None] = lambda _epoch, _go_on: None  # a checkpoint after this epoch


async def share_key(public_key: PublicKey, data_parties: Sequence[str], channel: Channel) -> None:
    """Do step 0 at the key node."""
    for party in data_parties:
        await channel.send(party, TaylorKey(public_key))


async def run_key_exchange(key_node: str, key_bits: int, channel: Channel, *, maker_trusted: bool = True) -> PublicKey:
    """Do step 0 at a data party: return the key node's public key, checked; without trust, its hs is not used."""
    key = (await channel.receive(key_node, TaylorKey)).public_key
    check_public_key(key, min_bits=key_bits, maker_trusted=maker_trusted, culprit=key_node)
    return key


async def run_data_party(
    seat: DataSeat,
    plan: RowPlan,
    parameters: TaylorParameters,
    channel: Channel,
    *,
    first_epoch: int = 0,
    progress: Progress | None = None,
    in_thread: InThread = directly,
) -> int:
    """Train; return how many epochs ran. The weights are in the seat's optimiser."""
    check_parameters(parameters, [len(batch) for batch in plan.batches], len(plan.validation))
    check_seat(seat, plan, parameters)
    told = progress or Progress()
    link = _Chain(seat, parameters, channel, in_thread)
    await link.share_factors()
    mu_enc = await link.share_labels(plan.validation) if parameters.hold_out_loss else None
    for epoch in range(first_epoch, parameters.epochs):
        for number, batch in enumerate(plan.batches):
            told.report(f"epoch {epoch + 1}", number, len(plan.batches))
            residuals = await link.residuals(batch)
            gradient = await link.gradient(batch, residuals)
            seat.optimiser.step(gradient, epoch, number)
        go_on = await link.verdict(plan.validation, mu_enc) if parameters.is_judged(epoch) else True
        told.keep(epoch + 1, go_on)
        if not go_on:
            break
    epochs = epoch + 1 if first_epoch < parameters.epochs else parameters.epochs
    if parameters.calibrate:
        await link.calibrate(plan.validation, mu_enc)
    return epochs


@dataclass(frozen=True)
class _Passed:
    """Sums that the data parties add up along the chain, together with the scores.

    Attributes:
        length: number of sums.
        start, add: the steps of the first party and of the parties after it.
        partial, whole: the messages to the next party, and from the last one to the key node.
        sums_of: function that returns the sums in a `partial`.
    """

    length: int
    start: Callable[[DataSeat, Rows, Grid], tuple[Encrypted, Encrypted]]
    add: Callable[[DataSeat, Rows, Grid, Encrypted, Encrypted, Encrypted], Encrypted]
    partial: type[Any]
    whole: type[Any]
    sums_of: Callable[[Any], CiphertextVector]


LOSS = _Passed(1, step_6_start, step_6_loss, PartialLoss, HoldOutLoss, lambda message: message.loss)
CALIBRATION = _Passed(SUMS, step_8_start, step_8_sums, PartialSums, CalibrationSums, lambda message: message.sums)


@dataclass(slots=True)
class _Chain:
    """One data party's place in the chain: every line is a step, a send or a receive."""

    seat: DataSeat
    parameters: TaylorParameters
    channel: Channel
    in_thread: InThread

    @property
    def _me(self) -> str:
        return self.seat.name

    @property
    def _is_active(self) -> bool:
        return self._me == self.parameters.active

    @property
    def _is_last(self) -> bool:
        return self._me == self.parameters.last

    @property
    def _place(self) -> int:
        return self.parameters.data_parties.index(self._me)

    async def _run(self, function: Callable[[], R]) -> R:
        result: R = await self.in_thread(function)
        return result

    def _receive(
        self, ciphertexts: CiphertextVector, length: int, frac_bits: int, bound: int, sender: str
    ) -> Encrypted:
        return EncryptedVector.receive(
            ciphertexts,
            self.seat.randomisers.public_key,
            length=length,
            frac_bits=frac_bits,
            bound=bound,
            culprit=sender,
        )

    async def share_factors(self) -> None:
        """Set the factors: the mask as it is; with class weights, the active party sends its product with them."""
        grid, active = self.parameters.grid, self.parameters.active
        if self._is_active or not self.parameters.encrypted_factors:
            self.seat.factors_enc = await self._run(lambda: step_0_own_factors(self.seat, grid))
        if not self.parameters.encrypted_factors:
            return
        if not self._is_active:
            received = (await self.channel.receive(active, RowFactors)).factors
            rows = len(self.seat.features)
            self.seat.factors_enc = self._receive(received, rows, grid.factor_bits, grid.factor_bound, active)
            return
        for passive in self.parameters.data_parties[1:]:
            fresh = await self._run(lambda: step_0_factors(self.seat, grid))
            await self.channel.send(passive, RowFactors(fresh.ciphertext))

    async def share_labels(self, rows: Rows) -> Encrypted | None:
        grid, active = self.parameters.grid, self.parameters.active
        if self._is_active:
            for passive in self.parameters.data_parties[1:]:
                fresh = await self._run(lambda: step_0_labels(self.seat, rows, grid))
                await self.channel.send(passive, HoldOutLabels(fresh.ciphertext))
            return None
        received = (await self.channel.receive(active, HoldOutLabels)).labels
        bound = (LABEL_TERM_BOUND << grid.label_bits) * grid.factor_bound
        labels = self._receive(received, len(rows), grid.label_bits + grid.factor_bits, bound, active)
        return await self._run(lambda: step_0_mu(self.seat, rows, grid, labels))

    async def residuals(self, batch: Rows) -> Encrypted:
        """Do steps 1 and 2; every party ends with [[w]]."""
        grid, bits = self.parameters.grid, self.parameters.grid.weighted_residual_bits
        if self._is_active:
            fresh = await self._run(lambda: step_1_residuals(self.seat, batch, grid))
            await self.channel.send(self.parameters.after(self._me), ChainedResiduals(fresh.ciphertext))
        else:
            sender = self.parameters.before(self._me)
            received = (await self.channel.receive(sender, ChainedResiduals)).residuals
            bound = grid.residual_bound_after(self._place) * grid.factor_bound
            chained = self._receive(received, len(batch), bits, bound, sender)
            fresh = await self._run(lambda: step_2_add(self.seat, batch, grid, chained))
            if self._is_last:
                for party in self.parameters.data_parties[:-1]:
                    await self.channel.send(party, Residuals(fresh.ciphertext))
                return fresh
            await self.channel.send(self.parameters.after(self._me), ChainedResiduals(fresh.ciphertext))
        last = self.parameters.last
        received = (await self.channel.receive(last, Residuals)).residuals
        return self._receive(received, len(batch), bits, grid.residual_bound * grid.factor_bound, last)

    async def gradient(self, batch: Rows, residuals_enc: Encrypted) -> Floats:
        """Do steps 3 to 5."""
        key_node, grid = self.parameters.key_node, self.parameters.grid
        masked, rho = await self._run(lambda: step_3_gradient(self.seat, batch, grid, residuals_enc))
        await self.channel.send(key_node, MaskedGradient(masked.ciphertext))
        answer = await self.channel.receive(key_node, NoisyGradient)
        return step_5_gradient(answer, rho, len(batch), self.parameters)

    async def verdict(self, rows: Rows, mu_enc: Encrypted | None) -> bool:
        """Do steps 6 and 7."""
        await self._pass_on(LOSS, rows, mu_enc)
        verdict = await self.channel.receive(self.parameters.key_node, Verdict)
        if verdict.go_on not in (0, 1):
            culprit = self.parameters.key_node
            raise MalformedMessage(culprit=culprit, field="go_on", reason="is not 0 or 1", step="Verdict")
        return bool(verdict.go_on)

    async def calibrate(self, rows: Rows, mu_enc: Encrypted | None) -> None:
        """Do steps 8 and 9; the active party's seat has the result."""
        key_node = self.parameters.key_node
        await self._pass_on(CALIBRATION, rows, mu_enc)
        if self._is_active:
            told = await self.channel.receive(key_node, Calibration)
            self.seat.platt = step_9_calibration(self.seat, told, key_node)

    async def _pass_on(self, passed: _Passed, rows: Rows, mu_enc: Encrypted | None) -> None:
        grid = self.parameters.grid
        if self._is_active or mu_enc is None:
            scores, sums = await self._run(lambda: passed.start(self.seat, rows, grid))
            await self.channel.send(self.parameters.after(self._me), passed.partial(scores.ciphertext, sums.ciphertext))
            return
        sender = self.parameters.before(self._me)
        message = await self.channel.receive(sender, passed.partial)
        before = self._scores_before(message.scores, len(rows), sender)
        bound = grid.loss_bound(len(rows))
        so_far = self._receive(passed.sums_of(message), passed.length, grid.loss_bits, bound, sender)
        sums = await self._run(lambda: passed.add(self.seat, rows, grid, before, so_far, mu_enc))
        if self._is_last:
            await self.channel.send(self.parameters.key_node, passed.whole(sums.ciphertext))
            return
        scores = await self._run(lambda: step_6_scores(self.seat, rows, grid, before))
        await self.channel.send(self.parameters.after(self._me), passed.partial(scores.ciphertext, sums.ciphertext))

    def _scores_before(self, scores: CiphertextVector, rows: int, sender: str) -> Encrypted:
        """Check the scores of the parties before this one in the chain."""
        grid = self.parameters.grid
        bound = self._place * grid.score_bound * grid.factor_bound
        return self._receive(scores, rows, grid.score_bits + grid.factor_bits, bound, sender)


async def run_key_node(
    seat: KeySeat,
    batch_rows: Sequence[int],
    validation_rows: int,
    parameters: TaylorParameters,
    channel: Channel,
    *,
    first_epoch: int = 0,
    progress: Progress | None = None,
    in_thread: InThread = directly,
) -> int:
    """Decrypt masked gradients and the hold-out loss; return how many epochs ran."""
    check_parameters(parameters, batch_rows, validation_rows)
    told = progress or Progress()
    public_key = seat.private_key.public_key
    for epoch in range(first_epoch, parameters.epochs):
        for number, rows in enumerate(batch_rows):
            told.report(f"epoch {epoch + 1}", number, len(batch_rows))
            for party in parameters.data_parties:
                message = await channel.receive(party, MaskedGradient)
                masked = receive_masked_gradient(message, party, rows, public_key, parameters)
                answer = await in_thread(partial(step_4_answer, seat, masked, parameters, (party, epoch, number)))
                await channel.send(party, answer)
        judged = parameters.is_judged(epoch)
        go_on = await _judge(seat, validation_rows, parameters, channel, in_thread) if judged else True
        told.keep(epoch + 1, go_on)
        if not go_on:
            break
    epochs = epoch + 1 if first_epoch < parameters.epochs else parameters.epochs
    if parameters.calibrate:
        await _calibrate(seat, validation_rows, parameters, channel, in_thread)
    return epochs


async def _calibrate(
    seat: KeySeat, rows: int, parameters: TaylorParameters, channel: Channel, in_thread: InThread
) -> None:
    """Do step 9, and send the result only to the active party."""
    sums_enc: Encrypted = EncryptedVector.receive(
        (await channel.receive(parameters.last, CalibrationSums)).sums,
        seat.private_key.public_key,
        length=SUMS,
        frac_bits=parameters.grid.loss_bits,
        bound=parameters.grid.loss_bound(rows),
        culprit=parameters.last,
    )
    told: Calibration = await in_thread(lambda: step_9_told(seat, sums_enc, parameters))
    await channel.send(parameters.active, told)


async def _judge(
    seat: KeySeat,
    rows: int,
    parameters: TaylorParameters,
    channel: Channel,
    in_thread: InThread,
) -> bool:
    """Do step 7, and send the result to all."""
    loss_enc: Encrypted = EncryptedVector.receive(
        (await channel.receive(parameters.last, HoldOutLoss)).loss,
        seat.private_key.public_key,
        length=1,
        frac_bits=parameters.grid.loss_bits,
        bound=parameters.grid.loss_bound(rows),
        culprit=parameters.last,
    )
    verdict: Verdict = await in_thread(lambda: step_7_verdict(seat, loss_enc, rows, parameters))
    for party in parameters.data_parties:
        await channel.send(party, verdict)
    return bool(verdict.go_on)


def receive_masked_gradient(
    message: MaskedGradient, party: str, rows: int, public_key: PublicKey, parameters: TaylorParameters
) -> PackedVector[Ciphertext]:
    grid = parameters.grid
    return PackedVector.receive(
        message.gradient,
        public_key,
        Layout.of(public_key, parameters.columns_of(party), grid.slot_bits(rows)),
        frac_bits=grid.gradient_bits,
        bound=grid.gradient_bound(rows) + grid.hiding_bound(rows),
        culprit=party,
    )
