"""Between ciphertexts under a threshold key and shares modulo p.

    to shares        Each party P has a summand [[a_P]] of secret numbers, |sum_P a_P| < 2^l. It draws masks r_P in
                     [0, 2^(l + h)) and sends [[pack(a_P + r_P)]]. All add these up and decrypt the sum e together,
                     over the integers, where nothing wraps. The first party's share is (e >> t) - (r_1 >> t), that of
                     another -(r_P >> t). The error is at most one unit a party.

    to ciphertexts   For shares of v, |v| < 2^17, each party draws r_P in [0, 2^m) and sends [[-r_P]]. The parties open
                     v + sum_P r_P, and [[v]] is that plus all [[-r_P]].

A party helps to decrypt only a sum to which it has added its own mask: it adds up the received summands itself.

Source: MATH 4.4, 4.8; Wu, Cai, Xiao, Chen, Ooi 2020, algorithm 1, whose masks are not packed.
Model: semi-honest, unlike the part in shares: a party that waits for the others' sums can send one that cancels their
    masks, and have ciphertexts of its choice decrypted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blindfit.algorithms.errors import MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.paillier.ciphertexts import Ciphertext, FreshCiphertext, Randomisers
from blindfit.algorithms.paillier.packing import PackedVector, encrypt_packed, pack
from blindfit.algorithms.paillier.threshold import KeyShare, combine, partial_decrypt
from blindfit.algorithms.paillier.vectors import EncryptedVector, encrypt
from blindfit.algorithms.protocols.falcon.check import exchange_with_all
from blindfit.algorithms.protocols.falcon.messages import EncryptedMasks, MaskedSums, PartialDecryptions
from blindfit.algorithms.randomness import UniformInt
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.shares import Share

HIDING_BITS = 40  # that all masks of a job give together
VALUE_BITS = 17  # of a number that becomes a ciphertext


@dataclass(frozen=True)
class Masking:
    """The masks of a number on its way to shares: public, the same at every party.

    Attributes:
        value_bits: l.
        opened: count of numbers that a job opens under such masks.
        parties: number of parties that mask.
    """

    value_bits: int
    opened: int
    parties: int

    @property
    def mask_bits(self) -> int:
        return self.value_bits + HIDING_BITS + math.ceil(math.log2(max(self.opened, 1)))

    @property
    def slot_bits(self) -> int:
        return self.mask_bits + math.ceil(math.log2(self.parties)) + 2

    @property
    def bound(self) -> int:
        return 1 << self.value_bits

    @property
    def masked_bound(self) -> int:
        """The largest sum of one party's summand and mask."""
        return self.bound + (1 << self.mask_bits)


def field_mask_bits(parties: int) -> int:
    """m = the bits of a mask for which v and all masks stay below p."""
    return ((f.P - (1 << VALUE_BITS + 1)) // parties).bit_length() - 1


@dataclass(repr=False)
class Offered:
    """Masks of numbers that will become ciphertexts.

    Attributes:
        own: this party's r_P.
        total: [[-r_P]]: this party's at first, and in the end the sum of all parties'.
    """

    own: list[int]
    total: EncryptedVector[Ciphertext]


class Converter:
    """One data party's side of both conversions."""

    def __init__(
        self,
        key_share: KeyShare,
        randomisers: Randomisers,
        others: Sequence[str],
        channel: Channel,
        uniform: UniformInt,
        *,
        first: bool,
    ) -> None:
        self._share, self._key, self._randomisers = key_share, key_share.public_key, randomisers
        self._others, self._channel, self._uniform, self._first = others, channel, uniform, first
        self.rounds = 0

    # --- to shares ------------------------------------------------------------------------------------

    async def to_shares(
        self,
        mine: EncryptedVector[Ciphertext] | None,
        length: int,
        masking: Masking,
        shift: int,
        offered: Offered | None = None,
    ) -> Share:
        """Convert a sum of encrypted numbers to shares; two rounds.

        Args:
            mine: this party's summand; None if it has none.
            shift: t.
            offered: masks of the numbers that become ciphertexts next; the others' masks arrive in the same round.
        """
        masks = [self._uniform(1 << masking.mask_bits) for _ in range(length)]
        total = await self._decrypt(await self._add_up(self._mask(mine, masks, masking), masking, offered))
        shares = [-(mask >> shift) for mask in masks]
        if self._first:
            shares = [share + (int(e) >> shift) for share, e in zip(shares, total.values, strict=True)]
        return Share(np.array([share % f.P for share in shares], dtype=np.uint64), None)

    def _mask(
        self, mine: EncryptedVector[Ciphertext] | None, masks: list[int], masking: Masking
    ) -> PackedVector[FreshCiphertext]:
        whole = Fixed.from_integers(np.array(masks, dtype=object))
        if mine is None:
            return encrypt_packed(whole, masking.slot_bits, self._randomisers, bound=masking.masked_bound)
        own = EncryptedVector(mine.ciphertext, 0, masking.bound)  # in whole units
        return (pack(own, masking.slot_bits) + whole).rerandomize(self._randomisers)

    async def _add_up(
        self, masked: PackedVector[FreshCiphertext], masking: Masking, offered: Offered | None
    ) -> PackedVector[Ciphertext]:
        for other in self._others:
            await self._channel.send(other, MaskedSums(masked.ciphertext))
        if offered is not None:
            await self._hear_masks(offered)
        self.rounds += 1
        total: PackedVector[Ciphertext] = PackedVector(masked.ciphertext, masked.layout, 0, masking.masked_bound)
        for other in self._others:
            sums = (await self._channel.receive(other, MaskedSums)).sums
            total = total + PackedVector.receive(
                sums, self._key, masked.layout, frac_bits=0, bound=masking.masked_bound, culprit=other
            )
        return total

    async def _decrypt(self, total: PackedVector[Ciphertext]) -> Fixed:
        mine = partial_decrypt(total, self._share)
        told = await exchange_with_all(PartialDecryptions(mine), self._others, PartialDecryptions, self._channel)
        self.rounds += 1
        length = total.layout.ciphertexts
        partials = [said.partials.open(self._key, length=length, culprit=other) for other, said in told.items()]
        try:
            return combine(total, [mine, *partials], self._share.parties)
        except RangeError as wrong:
            culprits = ", ".join(self._others)
            raise MalformedMessage(culprit=culprits, field="partials", reason=wrong.message) from None

    # --- to ciphertexts -------------------------------------------------------------------------------

    async def offer(self, length: int) -> Offered:
        """Draw this party's masks and send them, encrypted."""
        bits = field_mask_bits(self._share.parties)
        masks = [self._uniform(1 << bits) for _ in range(length)]
        mine = encrypt(Fixed.from_integers([-mask for mask in masks]), self._randomisers, bound=1 << bits)
        for other in self._others:
            await self._channel.send(other, EncryptedMasks(mine.ciphertext))
        return Offered(masks, EncryptedVector(mine.ciphertext, 0, mine.bound))

    async def _hear_masks(self, offered: Offered) -> None:
        bound = 1 << field_mask_bits(self._share.parties)
        for other in self._others:
            masks = (await self._channel.receive(other, EncryptedMasks)).masks
            offered.total = offered.total + EncryptedVector.receive(
                masks, self._key, length=len(offered.own), frac_bits=0, bound=bound, culprit=other
            )

    async def hear(self, offered: Offered) -> None:
        """Receive the others' masks in one round, if nothing goes to shares in between."""
        await self._hear_masks(offered)
        self.rounds += 1


def hide(v: Share, offered: Offered) -> Share:
    """Return v under this party's mask, ready to be opened."""
    return Share(f.add(v.value, f.elements(np.array(offered.own, dtype=np.int64))), None)


def without_masks(opened: f.Elements, offered: Offered, frac_bits: int) -> EncryptedVector[Ciphertext]:
    """Return [[v]], at frac_bits.

    Args:
        opened: v and all masks.
    """
    low = np.uint64(f.P - (1 << VALUE_BITS))  # masks are not negative: a number above this is below zero
    plain = Fixed.from_integers(np.where(opened > low, opened.astype(np.int64) - f.P, opened.astype(np.int64)))
    return EncryptedVector((offered.total + plain).ciphertext, frac_bits, 1 << VALUE_BITS)
