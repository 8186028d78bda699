"""Between ciphertexts and shares: nothing is lost, nothing wraps, and what is decrypted or opened is under masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Ciphertext
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.packing import PackedVector, encrypt_packed, pack
from blindfit.algorithms.paillier.threshold import PartialDecryption
from blindfit.algorithms.paillier.vectors import EncryptedVector, decrypt, encrypt
from blindfit.algorithms.protocols.falcon.conversion import (
    HIDING_BITS,
    VALUE_BITS,
    Converter,
    Masking,
    Offered,
    field_mask_bits,
    hide,
    without_masks,
)
from blindfit.algorithms.protocols.falcon.messages import EncryptedMasks, MaskedSums, PartialDecryptions
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.shares import Share
from blindfit.parties.wire import codec
from blindfit.parties.wire.channel import Wire
from tests.falcon.converting import (
    PARTIES,
    added_up,
    converters,
    integers_of,
    largest,
    shared,
    smallest,
    together,
)
from tests.paillier.tools import LAW, encrypted, source

FEW = settings(LAW, max_examples=25)
LARGEST = 2**VALUE_BITS - 1  # largest number that becomes a ciphertext
NO_CHANCE = 1e-7  # a test of a distribution fails by chance only as rarely as this


def split(number: int, parties: int) -> list[int]:
    """Split the number into summands as large as the number may be."""
    parts = [number // parties] * (parties - 1)
    return [*parts, number - sum(parts)]


def to_shares(
    key: PrivateKey,
    numbers: Sequence[int],
    parties: int,
    masking: Masking,
    shift: int = 0,
    *,
    uniform: UniformInt = system_uniform,
    wire: Wire | None = None,
    absent: bool = False,
) -> list[Share]:
    """
    Args:
        absent: True if the last party has no summand.
    """
    summands = list(zip(*[split(number, parties - absent) for number in numbers], strict=True))
    mine: list[EncryptedVector[Ciphertext] | None] = [encrypted(part, key, frac_bits=9) for part in summands]
    mine += [None] * absent
    all_of_them = converters(key, parties, uniform=uniform, wire=wire)
    return together(
        [one.to_shares(part, len(numbers), masking, shift) for one, part in zip(all_of_them, mine, strict=True)]
    )


# --- to shares --------------------------------------------------------------------------------------------------------


@FEW
@given(data=st.data(), parties=st.integers(2, 4), value_bits=st.integers(1, 58), absent=st.booleans())
def test_shares_add_up_to_the_shifted_number(
    insecure_test_key: PrivateKey, data: st.DataObject, parties: int, value_bits: int, absent: bool
) -> None:
    """With x' the part of x that a shift cuts off, below one unit, the error is sum_P r_P' - e': above -1, and below
    one for each party.
    """
    most = 2**value_bits - 1
    numbers = data.draw(
        st.lists(st.one_of(st.sampled_from([-most, most, 0]), st.integers(-most, most)), min_size=1, max_size=6)
    )
    shift = data.draw(st.integers(0, value_bits + 4))
    masking = Masking(value_bits, 2**20, parties)
    found = added_up(to_shares(insecure_test_key, numbers, parties, masking, shift, absent=absent))
    for share, number in zip(found.tolist(), numbers, strict=True):
        error = share * 2**shift - number
        assert -(2**shift) < error < parties * 2**shift


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("uniform", [smallest, largest])
def test_the_largest_numbers_under_the_largest_and_the_smallest_masks(
    insecure_test_key: PrivateKey, parties: int, uniform: UniformInt
) -> None:
    """The slots' neighbours are as large, of either sign: a slot gets back what it lends or borrows."""
    most = 2**40 - 1
    numbers = [most, -most, -most, most, most, 0, -most, -1, 1]
    masking = Masking(40, 10**6, parties)
    assert added_up(to_shares(insecure_test_key, numbers, parties, masking, uniform=uniform)).tolist() == numbers


@pytest.mark.parametrize("opened", [0, 1, 2, 3, 1000, 2**22, 10**9])
@pytest.mark.parametrize("parties", range(2, 9))
def test_masks_hide_a_whole_job_and_fit_into_their_slots(opened: int, parties: int) -> None:
    """A uniform mask of m bits over a number below 2^l is within 2^(l - m) of one over nothing, for each sign."""
    for value_bits in (1, 36, 90):
        masking = Masking(value_bits, opened, parties)
        assert opened * 2.0 ** (value_bits - masking.mask_bits) <= 2.0**-HIDING_BITS
        assert masking.mask_bits < value_bits + HIDING_BITS + math.log2(max(opened, 1)) + 1
        assert masking.bound == 2**value_bits
        largest_sum = parties * (masking.bound - 1 + 2**masking.mask_bits - 1)
        assert parties * masking.masked_bound >= largest_sum
        assert parties * masking.masked_bound < 2 ** (masking.slot_bits - 1)  # as Layout.check_bound requires


def test_shares_of_one_party_are_its_masks_and_nothing_else(insecure_test_key: PrivateKey) -> None:
    """The first party is an exception: its share is of the decrypted sum, under the masks of the others."""
    masking = Masking(20, 1, 3)
    shares = to_shares(insecure_test_key, [5, -6], 3, masking, 3, uniform=largest)
    mask = 2**masking.mask_bits - 1
    for share in shares[1:]:
        assert share.value.tolist() == [-(mask >> 3) % f.P] * 2
    assert added_up(shares).tolist() == [(3 * mask + number >> 3) - 3 * (mask >> 3) for number in (5, -6)]


# --- to ciphertexts ---------------------------------------------------------------------------------------------------


def to_ciphertexts(
    key: PrivateKey, shares: Sequence[Share], *, uniform: UniformInt = system_uniform, wire: Wire | None = None
) -> tuple[list[EncryptedVector[Ciphertext]], f.Elements, list[Offered]]:
    """Return the ciphertexts at each party, the opened numbers, and each party's offer."""

    async def one(converter: Converter) -> Offered:
        offered = await converter.offer(len(shares[0]))
        await converter.hear(offered)
        return offered

    offers = together([one(converter) for converter in converters(key, len(shares), uniform=uniform, wire=wire)])
    opened = f.total([hide(share, offered).value for share, offered in zip(shares, offers, strict=True)])
    return [without_masks(opened, offered, 7) for offered in offers], opened, offers


@FEW
@given(
    numbers=st.lists(
        st.one_of(st.sampled_from([-LARGEST, LARGEST]), st.integers(-LARGEST, LARGEST)), min_size=1, max_size=6
    ),
    parties=st.integers(2, 4),
)
def test_ciphertexts_are_of_the_shared_numbers(insecure_test_key: PrivateKey, numbers: list[int], parties: int) -> None:
    for vector in to_ciphertexts(insecure_test_key, shared(numbers, parties))[0]:
        assert decrypt(vector, insecure_test_key).values.tolist() == numbers
        assert vector.frac_bits == 7


@pytest.mark.parametrize("parties", [2, 3, 5, 8])
@pytest.mark.parametrize("uniform", [smallest, largest])
def test_the_largest_numbers_become_ciphertexts_under_any_masks(
    insecure_test_key: PrivateKey, parties: int, uniform: UniformInt
) -> None:
    numbers = [LARGEST, -LARGEST, 0, 1, -1]
    vectors, _, _ = to_ciphertexts(insecure_test_key, shared(numbers, parties), uniform=uniform)
    for vector in vectors:
        assert decrypt(vector, insecure_test_key).values.tolist() == numbers


@pytest.mark.parametrize("parties", range(2, 9))
def test_masks_in_the_field_never_wrap(parties: int) -> None:
    """Opened numbers lie in [-LARGEST, most]: modulo p, the numbers below zero are above all others.

    No larger power of two would be safe.
    """
    bits = field_mask_bits(parties)
    most = LARGEST + parties * (2**bits - 1)
    assert most <= f.P - 2**VALUE_BITS < f.P - LARGEST
    assert parties * 2 ** (bits + 1) > f.P - 2 ** (VALUE_BITS + 1)
    assert bits >= 57  # MATH 4.8: 40 bits hide a number


# --- what is seen -----------------------------------------------------------------------------------------------------


class Watching(Converter):
    """Follows the protocol, and notes what it decrypts and under which masks of its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.read: list[int] = []
        self.masks: list[int] = []

    def _mask(self, mine: EncryptedVector[Ciphertext] | None, masks: list[int], masking: Masking) -> PackedVector[Any]:
        self.masks += masks
        return super()._mask(mine, masks, masking)

    async def _decrypt(self, total: PackedVector[Ciphertext]) -> Fixed:
        numbers = await super()._decrypt(total)
        self.read += [int(number) for number in numbers.values]
        return numbers


class Unmasked(Watching):
    """Omits its own mask and summand."""

    def _mask(self, _mine: EncryptedVector[Ciphertext] | None, masks: list[int], masking: Masking) -> PackedVector[Any]:
        return super()._mask(None, [0] * len(masks), masking)


class TakingAway(Watching):
    """Subtracts what the other sent the time before from what it sends now."""

    before: PackedVector[Ciphertext] | None = None

    def _mask(self, _mine: EncryptedVector[Ciphertext] | None, masks: list[int], masking: Masking) -> PackedVector[Any]:
        nothing = super()._mask(None, [0] * len(masks), masking)
        if self.before is None:
            return nothing
        kernel = self._key.kernel
        taken = Ciphertext(self._key, kernel.inverses(self.before.ciphertext.residues))
        return (nothing + PackedVector(taken, nothing.layout, 0, masking.bound)).rerandomize(self._randomisers)

    async def _add_up(self, masked: Any, masking: Masking, offered: Offered | None) -> PackedVector[Ciphertext]:
        total = await super()._add_up(masked, masking, offered)
        if self.before is None:
            self.before = total  # it added nothing itself
        return total


def watched(key: PrivateKey, kind: type[Watching], number: int, masking: Masking, times: int = 1) -> Watching:
    """Return the first of two parties, which is of this kind; the other has `number` 300 times."""
    first, second = converters(key, 2, kind=kind)
    nothing, secret = encrypted([0] * 300, key), encrypted([number] * 300, key)

    async def each_time(one: Converter, mine: EncryptedVector[Ciphertext]) -> None:
        for _ in range(times):
            await one.to_shares(mine, 300, masking, 0)

    together([each_time(first, nothing), each_time(second, secret)])
    assert isinstance(first, Watching)
    return first


def fractions(numbers: Sequence[int], bits: int) -> NDArray[np.float64]:
    return np.array([number / 2**bits for number in numbers])


@pytest.mark.parametrize("number", [0, 2**30 - 1, -(2**30) + 1])
@pytest.mark.parametrize("kind", [Watching, Unmasked])
def test_what_is_decrypted_is_under_the_others_masks(
    insecure_test_key: PrivateKey, kind: type[Watching], number: int
) -> None:
    """This holds for a party that sent no mask: without what it knows, the sum is uniform over the others' masks."""
    masking = Masking(30, 300, 2)
    first = watched(insecure_test_key, kind, number, masking)
    masks = first.masks if kind is Watching else [0] * 300
    unknown = fractions([e - mask for e, mask in zip(first.read, masks, strict=True)], masking.mask_bits)
    assert stats.kstest(unknown, "uniform").pvalue > NO_CHANCE
    counts = np.bincount(np.clip(unknown * 16, 0, 15).astype(int), minlength=16)  # the high four bits
    assert stats.chisquare(counts).pvalue > NO_CHANCE
    assert len(set(first.read)) == 300


def test_what_was_sent_before_takes_no_mask_away(insecure_test_key: PrivateKey) -> None:
    """The difference of two uniform masks is left."""
    masking = Masking(30, 600, 2)
    first = watched(insecure_test_key, TakingAway, 12345, masking, times=2)
    left = fractions(first.read[300:], masking.mask_bits)
    assert stats.kstest(left, stats.triang(0.5, loc=-1, scale=2).cdf).pvalue > NO_CHANCE
    assert len(set(first.read)) == 600


class Waiting(Watching):
    """Subtracts the other's sums of this very time, and puts ciphertexts of its choice in their place."""

    wanted: EncryptedVector[Ciphertext]

    async def _add_up(self, masked: Any, masking: Masking, offered: Offered | None) -> PackedVector[Ciphertext]:
        (other,) = self._others
        sums = (await self._channel.receive(other, MaskedSums)).sums
        theirs = sums.open(self._key, length=masked.layout.ciphertexts, culprit=other)
        taken = Ciphertext(self._key, self._key.kernel.inverses(theirs.residues))
        wanted = pack(self.wanted, masking.slot_bits)
        false = (wanted + PackedVector(taken, masked.layout, 0, masking.bound)).rerandomize(self._randomisers)
        await self._channel.send(other, MaskedSums(false.ciphertext))
        return false + PackedVector(theirs, masked.layout, 0, masking.bound)


def test_who_waits_for_the_others_sums_can_take_their_masks_away(insecure_test_key: PrivateKey) -> None:
    """The attack is not noticed, so encrypted weights are safe only against semi-honest parties."""
    masking = Masking(30, 3, 2)
    first, second = converters(insecure_test_key, 2, kind=Waiting)
    assert isinstance(first, Waiting)
    first.wanted = encrypted([11, -12, 13], insecure_test_key, bound=13)
    nothing = encrypted([0] * 3, insecure_test_key)
    together([one.to_shares(nothing, 3, masking, 0) for one in (first, second)])
    assert first.read == [11, -12, 13]


@pytest.mark.parametrize("number", [LARGEST, -LARGEST])
def test_what_is_opened_for_ciphertexts_is_under_each_partys_masks(insecure_test_key: PrivateKey, number: int) -> None:
    bits = field_mask_bits(2)
    _, opened, offers = to_ciphertexts(insecure_test_key, shared([number] * 300, 2))
    for offered in offers:
        unknown = fractions([int(o) - mask for o, mask in zip(opened, offered.own, strict=True)], bits)
        assert stats.kstest(unknown, "uniform").pvalue > NO_CHANCE
    both = fractions([int(o) for o in opened], bits + 1)
    assert stats.kstest(both, stats.triang(0.5).cdf).pvalue > NO_CHANCE


# --- what is not what it should be ------------------------------------------------------------------------------------


def changing(step: str, change: Any, sender: str = PARTIES[0]) -> Wire:
    """Change all messages of this kind from this party."""
    kind = {kind.__name__: kind for kind in (MaskedSums, EncryptedMasks, PartialDecryptions)}[step]

    def wire(by: str, _receiver: str, sent: str, data: bytes) -> bytes:
        if (by, sent) != (sender, step):
            return data
        content = codec.decode(data, kind, culprit=by)
        return codec.encode(kind(change(getattr(content, kind.__slots__[0]))))

    return wire


def squared(key: PrivateKey, partials: Any) -> PartialDecryption:
    n = key.public_key.n
    kernel = key.public_key.kernel
    return PartialDecryption(key.public_key, kernel.residues([number**2 % n**2 for number in integers_of(partials)]))


@pytest.mark.parametrize("parties", [2, 3])
def test_a_wrong_partial_decryption_names_all_others(insecure_test_key: PrivateKey, parties: int) -> None:
    """The parties cannot see who it was: only the product of all is wrong."""
    wire = changing("PartialDecryptions", lambda partials: squared(insecure_test_key, partials))
    with pytest.raises(MalformedMessage, match=r"partials: .*do not fit together") as refused:
        to_shares(insecure_test_key, [1, 2, 3], parties, Masking(20, 3, parties), wire=wire)
    for other in PARTIES[2:parties]:
        assert other in refused.value.culprit
    assert PARTIES[0] in refused.value.culprit


def test_sums_that_leave_their_slots_are_refused(insecure_test_key: PrivateKey) -> None:
    far = encrypt(Fixed.from_integers([insecure_test_key.public_key.n // 3]), source(insecure_test_key)).ciphertext
    wire = changing("MaskedSums", lambda _sums: far)
    with pytest.raises(MalformedMessage, match="partials: "):
        to_shares(insecure_test_key, [1, 2, 3], 2, Masking(20, 3, 2), wire=wire)


@pytest.mark.parametrize("length", [0, 1, 3])
def test_vectors_of_another_length_name_who_sent_them(insecure_test_key: PrivateKey, length: int) -> None:
    """The vectors here should have a length of two."""
    key, masking = insecure_test_key, Masking(120, 8, 2)
    assert encrypt_packed(Fixed.from_integers([0] * 4), masking.slot_bits, source(key)).layout.ciphertexts == 2
    other = encrypted([0] * length, key).ciphertext
    residues = key.public_key.kernel.residues([1] * length)
    for step, vector in (("MaskedSums", other), ("PartialDecryptions", PartialDecryption(key.public_key, residues))):
        with pytest.raises(MalformedMessage) as refused:
            to_shares(key, [1] * 4, 2, masking, wire=changing(step, lambda _, vector=vector: vector))
        assert refused.value.culprit == PARTIES[0]
    with pytest.raises(MalformedMessage) as refused:
        to_ciphertexts(key, shared([1, 2], 2), wire=changing("EncryptedMasks", lambda _: other))
    assert refused.value.culprit == PARTIES[0]


def test_a_ciphertext_that_has_no_inverse_names_who_sent_it(insecure_test_key: PrivateKey) -> None:
    width = insecure_test_key.public_key.ciphertext_bytes

    def wire(sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if (sender, step) != (PARTIES[0], "MaskedSums"):
            return data
        return data[:-width] + int(insecure_test_key.p).to_bytes(width, "big")

    with pytest.raises(MalformedMessage) as refused:
        to_shares(insecure_test_key, [1], 2, Masking(20, 1, 2), wire=wire)
    assert refused.value.culprit == PARTIES[0]


def test_a_summand_that_is_longer_than_its_masks_is_not_masked(insecure_test_key: PrivateKey) -> None:
    first, _ = converters(insecure_test_key, 2)
    with pytest.raises(RangeError, match="different scales or lengths"):
        together([first.to_shares(encrypted([1, 2, 3], insecure_test_key), 2, Masking(20, 2, 2), 0)])


def test_what_is_not_fresh_does_not_fit_into_a_message(insecure_test_key: PrivateKey) -> None:
    total = to_ciphertexts(insecure_test_key, shared([4], 2))[0][0].ciphertext
    for kind in (MaskedSums, EncryptedMasks):
        with pytest.raises((LocalProtocolError, TypeError)):
            codec.encode(kind(total))  # type: ignore[arg-type]
