"""The seats of a training with encrypted weights: each party keeps its own block; all else is in shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.paillier.ciphertexts import Ciphertext
from blindfit.algorithms.paillier.randomisers import ShortExponent
from blindfit.algorithms.paillier.threshold import KeyShare
from blindfit.algorithms.paillier.vectors import EncryptedVector
from blindfit.algorithms.protocols.falcon.conversion import Converter, Offered, hide, without_masks
from blindfit.algorithms.protocols.falcon.encrypted_descent import (
    EncryptedBlock,
    EncryptedScales,
    EncryptedState,
    OwnRows,
)
from blindfit.algorithms.protocols.falcon.parameters import WEIGHT_BITS, FalconParameters
from blindfit.algorithms.protocols.falcon.seats import DataSeat, DealerSeat, ModelState, in_shares, zeros
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.sharing import descent
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.computing import Party, divide
from blindfit.algorithms.sharing.descent import Items, Labels, Step
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.products import SecretMatrix
from blindfit.algorithms.sharing.shares import Share
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS

SCORE_BITS = FEATURE_BITS + WEIGHT_BITS


async def residuals(party: Party, scales: EncryptedScales, step: Step, z: Share, labels: Labels) -> tuple[Share, Share]:
    """Return sigmoid(z) - y at the bits of future ciphertexts, and z in coarse units: two rounds."""
    alone = scales.residual_step(step)
    errors, coarse = await descent.residuals(party, alone, Items.of(alone, _no_mask), z, labels)
    return await divide(party, f"{step.name}/residuals", errors, scales.residual_shift), coarse


def _no_mask() -> Elements:
    raise LocalProtocolError("no matrix is in shares")


class ThresholdDataSeat(DataSeat):
    """The seat of a data party in a training with encrypted weights.

    Args:
        key_share: this party's share of the key.
        run: see DataSeat.
    """

    def __init__(
        self,
        me: str,
        p: FalconParameters,
        key_share: KeyShare,
        seed: Seed,
        run: str,
        channel: Channel,
        uniform: UniformInt = system_uniform,
    ) -> None:
        super().__init__(me, p.data_parties, p.key_node, seed, run, channel, macs=False, uniform=uniform)
        public_key = key_share.public_key
        self._scales, self._columns, self._owned = EncryptedScales(p), sum(p.columns), p.column_slice(self.place)
        penalised = p.penalised[self._owned].astype(np.int64)
        self._block = EncryptedBlock(self._scales, public_key, penalised)
        others = [name for name in p.data_parties if name != me]
        randomisers = ShortExponent(public_key, uniform=uniform)
        self._converter = Converter(key_share, randomisers, others, channel, uniform, first=self.holder.first)

    @property
    def all_rounds(self) -> int:
        return self.rounds + self._converter.rounds

    async def put_in_matrix(self, _widths: Sequence[int], _rows: int, mine: Elements | None, /) -> SecretMatrix:
        """Return this party's rows, which stay here; nothing is put in."""
        if mine is None:
            raise LocalProtocolError("a data party has rows")
        return OwnRows(f.integers(mine))

    def beginning(self, _columns: int, /) -> ModelState:
        return self._block.beginning()

    async def move(
        self, step: Step, batch: SecretMatrix, labels: Labels, state: ModelState, _noise: Share | None = None, /
    ) -> tuple[ModelState, Share]:
        rows, encrypted = own_rows(batch), of_ciphertexts(state)
        offered = await self._converter.offer(step.rows)
        z = await self._scores(rows, encrypted, offered)
        v, coarse = await residuals(self, self._scales, step, z, labels)
        v_enc = await self._encrypt(v, offered, self._scales.residual_bits)
        return self._block.move(step, rows, v_enc, encrypted), coarse

    async def scores(self, _name: str, rows: SecretMatrix, state: ModelState, /) -> Share:
        return await self._scores(own_rows(rows), of_ciphertexts(state))

    async def _scores(self, rows: OwnRows, state: EncryptedState, offered: Offered | None = None) -> Share:
        parts = self._block.scores(rows, state)
        masking = self._scales.masking(self._scales.largest_score, parts.frac_bits)
        shift = parts.frac_bits - SCORE_BITS
        shares = await self._converter.to_shares(parts, len(rows), masking, max(0, shift), offered)
        return shares.times_power_of_two(max(0, -shift))

    async def weights(self, _name: str, state: ModelState, /) -> Share:
        before, after = self._owned.start, self._columns - self._owned.stop
        own = self._block.weights(of_ciphertexts(state), before, after)
        masking = self._scales.masking(self._scales.largest_weight, own.frac_bits)
        return await self._converter.to_shares(own, self._columns, masking, own.frac_bits - WEIGHT_BITS)

    async def with_weights(self, _name: str, weights: Share, bits: int, /) -> ModelState:
        offered = await self._converter.offer(self._columns)
        await self._converter.hear(offered)
        every = await self._encrypt(weights, offered, bits)
        return EncryptedState(every[self._owned])

    async def _encrypt(self, v: Share, offered: Offered, frac_bits: int) -> EncryptedVector[Ciphertext]:
        (opened,) = await self.open_(hide(v, offered))
        return without_masks(opened, offered, frac_bits)


class BlindWeights:
    """The encrypted weights of a seat without data: empty rows and zeros."""

    async def put_in_matrix(self, _widths: Sequence[int], rows: int, _mine: Elements | None, /) -> SecretMatrix:
        return OwnRows(np.zeros((rows, 0), dtype=np.int64))

    async def weights(self, _name: str, state: ModelState, /) -> Share:
        return zeros(in_shares(state).weights.shape)

    async def scores(self, _name: str, rows: SecretMatrix, _state: ModelState, /) -> Share:
        return zeros((len(rows),))


class ThresholdDealerSeat(BlindWeights, DealerSeat):
    """The key node's seat: as in shares, it deals the program's items."""

    def __init__(self, p: FalconParameters, seeds: Sequence[Seed], run: str, channel: Channel) -> None:
        super().__init__(seeds, p.data_parties[0], run, channel, macs=False)
        self._scales = EncryptedScales(p)

    async def move(
        self, step: Step, batch: SecretMatrix, labels: Labels, state: ModelState, _noise: Share | None = None, /
    ) -> tuple[ModelState, Share]:
        _, coarse = await residuals(self, self._scales, step, zeros((len(batch),)), labels)
        await self.flush()
        return state, coarse


def own_rows(matrix: SecretMatrix) -> OwnRows:
    if not isinstance(matrix, OwnRows):
        raise LocalProtocolError("these rows are in shares")
    return matrix


def of_ciphertexts(state: ModelState) -> EncryptedState:
    if not isinstance(state, EncryptedState):
        raise LocalProtocolError("this model is in shares")
    return state
