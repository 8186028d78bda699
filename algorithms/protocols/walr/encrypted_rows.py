"""WALR with the features hidden from the measurement server by Paillier encryption: the differences from `walr`.

Source: ours. A sum of encrypted rows takes only products.
Model: both follow the protocol. The server cannot check rows that it cannot read. An active party that sends longer
    rows than it declares learns more of the labels than (epsilon, delta). A server that answers something else than the
    sum may learn of the rows from the active party's reaction. So a server takes encrypted rows only if its operator
    has allowed it.

    step  who      does                                                                     sends
    1     active   as `walr` 1, under its own key pair; the hash of the rows takes a salt   nothing.
                   that stays with it.
    2     server   as `walr` 2, and checks the key                                          nothing.
    3     active   Enc(row), its columns packed, in place of `walr` 3                       EncryptedRows.
    4     server   joins by id; multiplies each row into one of two products, chosen by     nothing.
                   its label, so that the work is the same for all labels.
    5     server   to the product of label 1: + discrete Gaussian noise, as `walr` 5,       nothing.
                   and a fresh r^n; charge and answer as `walr` 5.
    6     active   decrypts the noisy sum; goes on as `walr` 6; for auditors takes the      nothing.
                   n-th roots that open the server's ciphertexts.

Departures: none from `walr` except these: the same integers are summed, and the noise has the same law.
Learns: the server learns the ids, the number of columns and the norm bound. The active party learns the same as in
    `walr`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from blindfit.algorithms.errors import BlindfitError, DataError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed, IntegerRows
from blindfit.algorithms.messages import Texts, parameters_digest
from blindfit.algorithms.paillier.ciphertexts import (
    Ciphertext,
    FreshCiphertext,
    Randomisers,
    ReceivedCiphertext,
    randomize,
)
from blindfit.algorithms.paillier.kernel import Residues
from blindfit.algorithms.paillier.key_checks import check_public_key
from blindfit.algorithms.paillier.keys import PrivateKey, PublicKey
from blindfit.algorithms.paillier.openings import opens
from blindfit.algorithms.paillier.packing import Layout, PackedVector, decrypt_packed
from blindfit.algorithms.paillier.randomisers import FullExponent
from blindfit.algorithms.privacy.gaussian import NOISE_REACH, GaussianMechanism
from blindfit.algorithms.protocols.table import ACTIVE, CHUNKS, MEASUREMENT, Arrow, Table
from blindfit.algorithms.protocols.walr.messages import AggregateOpen, Bits, NoisySum
from blindfit.algorithms.protocols.walr.request import ConsumerRows, mechanism_of
from blindfit.algorithms.protocols.walr.tally import Join, Released, Tally, step_4_check_ids
from blindfit.algorithms.randomness import UniformInt

CHOICES = 2  # accumulators: of label 0, and of label 1


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class EncryptedRows:
    ids: Texts
    rows: FreshCiphertext | ReceivedCiphertext  # for each id, the ciphertexts of its row


TABLE = Table(
    "walr-encrypted",
    Arrow("3", ACTIVE, MEASUREMENT, EncryptedRows, CHUNKS, "ids, and rows that only the active party can read"),
)


# --- how a row lies in ciphertexts ------------------------------------------------------------------


def reach_of(request: AggregateOpen) -> int:
    """Return `reach` of a request, in grid steps."""
    return reach(request.n_rows, request.norm_bound, math.sqrt(mechanism_of(request).sigma_squared))


def reach(n_rows: int, norm_bound: int, noise_std: float) -> int:
    """Return a bound that no coordinate of the noisy sum passes."""
    return math.ceil(n_rows * norm_bound + NOISE_REACH * noise_std)


def slot_bits_of(n_rows: int, norm_bound: int, noise_std: float) -> int:
    """Return the bits of a slot: with a sign, and a spare bit in case the server's float differs."""
    return reach(n_rows, norm_bound, noise_std).bit_length() + 2


def layout_of(request: AggregateOpen, key: PublicKey) -> Layout:
    """Return the layout; raise RangeError if a number of the sum does not fit under the key."""
    return Layout.of(key, request.n_columns, request.slot_bits)


# --- steps of the active party ----------------------------------------------------------------------


def step_1_open(request: AggregateOpen, key: PublicKey) -> AggregateOpen:
    """Return the request under this key; another key makes another request.

    The salt of the rows' hash stays here, so that the server cannot try rows out.
    """
    noise_std = math.sqrt(mechanism_of(request).sigma_squared)
    slot_bits = slot_bits_of(request.n_rows, request.norm_bound, noise_std)
    asked = replace(request, key=key.fingerprint, public_key=key.to_bytes(), slot_bits=slot_bits, content_salt=b"")
    return replace(asked, request_id=step_1_name(request.request_id, asked.key))


def step_1_name(in_the_clear: str, key: str) -> str:
    """Return the name of the same request under a key."""
    return parameters_digest({"key": key, "in the clear": in_the_clear}).hex()


@dataclass(frozen=True, slots=True, repr=False)
class HiddenRows:
    """Rows that are encrypted as they are sent."""

    rows: ConsumerRows
    layout: Layout
    randomisers: Randomisers

    def batches(self) -> Iterator[EncryptedRows]:
        width = self.layout.ciphertexts * self.randomisers.public_key.ciphertext_bytes
        for batch in self.rows.batches(self.rows.rows_that_fit(width)):
            yield EncryptedRows(batch.ids, step_3_encrypt(batch.weights, self.layout, self.randomisers))


def step_3_encrypt(weights: IntegerRows, layout: Layout, randomisers: Randomisers) -> FreshCiphertext:
    """Encrypt rows of integers; one randomiser for each ciphertext."""
    key = randomisers.public_key
    plain = key.kernel.ones_plus(packed for row in weights.tolist() for packed in layout.join(row))
    return randomize(Ciphertext(key, plain), randomisers)


def step_6_decrypt(answer: NoisySum, request: AggregateOpen, private_key: PrivateKey, *, server: str) -> NoisySum:
    """Return the answer with its sum in the clear.

    Raises:
        MalformedMessage: an honest server would not answer so.
    """
    key = private_key.public_key
    layout, bound = layout_of(request, key), reach_of(request) + 1
    received = ReceivedCiphertext(key.ciphertext_bytes, answer.ciphertexts)
    vector = PackedVector.receive(received, key, layout, frac_bits=request.frac_bits, bound=bound, culprit=server)
    try:
        sums = decrypt_packed(vector, private_key)
    except RangeError as error:
        raise MalformedMessage(culprit=server, field="ciphertexts", reason=error.message, step="NoisySum") from None
    return replace(answer, sums=sums.values.astype(np.int64), ciphertexts=b"")


@dataclass(frozen=True, slots=True, repr=False)
class Opening:
    """Evidence for all that the server's answer holds the decrypted sum; see `paillier.openings`.

    It is for auditors: a person who also knows the server's noise learns the sum of the rows from the noisy sum.

    Attributes:
        public_key: public key without hs; no server signs hs, and the check does not need it.
    """

    public_key: bytes
    ciphertexts: bytes
    roots: tuple[int, ...]


def step_6_open(answer: NoisySum, private_key: PrivateKey) -> Opening:
    """Return the opening of an answer that `step_6_decrypt` has accepted."""
    key, width = private_key.public_key, private_key.public_key.ciphertext_bytes
    received = ReceivedCiphertext(width, answer.ciphertexts)
    taken = received.open(key, length=len(answer.ciphertexts) // width, culprit="")
    roots = private_key.roots(taken.residues)
    return Opening(PublicKey(key.n, None, key.proof).to_bytes(), answer.ciphertexts, tuple(roots))


def step_6_check_opening(
    opening: Opening, sums: Sequence[int], request: AggregateOpen, *, server: str, consumer: str
) -> None:
    """Check an opening at an auditor, who has the request with the opening's public key.

    Raises:
        MalformedMessage: the public key is invalid, see `step_2_key`, or the ciphertexts are.
        DataError: the server's ciphertexts hold another sum.
    """
    key = step_2_key(request, consumer=consumer)  # first, because a power under a huge key takes for ever
    layout, reach = layout_of(request, key), reach_of(request)
    received = ReceivedCiphertext(key.ciphertext_bytes, opening.ciphertexts)
    taken = received.open(key, length=layout.ciphertexts, culprit=server)
    is_whole = key.hs is None and len(opening.roots) == layout.ciphertexts and len(sums) == layout.length
    is_within = all(abs(value) <= reach for value in sums)  # otherwise two sums could be one plaintext
    ciphertexts = key.kernel.integers(taken.residues)
    if not (is_whole and is_within and all(map(partial(opens, key), ciphertexts, layout.join(sums), opening.roots))):
        raise DataError(f"it is not what the ciphertexts of {server} hold")


# --- steps of the measurement server ------------------------------------------------------------------


def step_2_key(request: AggregateOpen, *, consumer: str) -> PublicKey:
    """Return the active party's key, checked as one whose maker is not trusted, and fit for the request.

    Raises:
        MalformedMessage: a field is wrong; the error names it.
    """

    def refuse(field: str, reason: str) -> MalformedMessage:
        return MalformedMessage(culprit=consumer, field=field, reason=reason, step="AggregateOpen")

    try:
        key = PublicKey.from_bytes(request.public_key)
    except BlindfitError as error:
        raise refuse("public_key", error.message) from None
    if key.fingerprint != request.key:
        raise refuse("key", "is not the fingerprint of the public key")
    check_public_key(key, maker_trusted=False, culprit=consumer)
    if request.content_salt:
        raise refuse("content_salt", "stays with the party that hides its rows")
    try:
        layout_of(request, key).check_bound(reach_of(request))
    except RangeError as error:
        raise refuse("slot_bits", error.message) from None
    return key


class EncryptedTally(Tally):
    """The growing products of the rows of either label: the encrypted sums."""

    batch_kind = EncryptedRows

    def __init__(
        self, request: AggregateOpen, keep_bits: Callable[[bytes], object], key: PublicKey, randomisers: Randomisers
    ) -> None:
        super().__init__(request, keep_bits)
        self._key, self._randomisers, self._layout = key, randomisers, layout_of(request, key)
        # Start from encryptions of 0: a product with 1 is faster, and would reveal the first row of a label.
        self._products = randomisers.draw(CHOICES * self._layout.ciphertexts)

    def add(self, batch: EncryptedRows, join: Join, *, consumer: str) -> None:  # type: ignore[override]
        """Do step 4 for one batch."""
        step_4_check_ids(batch.ids, self.rows, self.request, consumer=consumer)
        length = len(batch.ids) * self._layout.ciphertexts
        rows = batch.rows.open(self._key, length=length, culprit=consumer)
        labels, kept = join(batch.ids)
        self._multiply((labels != 0) & kept, rows.residues)
        self.count(kept)

    def _multiply(self, chosen: Bits, rows: Residues) -> None:
        """Multiply with equally many products for every choice: each group begins with its product so far."""
        width, kernel = self._layout.ciphertexts, self._key.kernel
        places = CHOICES * width + np.arange(len(chosen) * width, dtype=np.int64).reshape(len(chosen), width)
        groups: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        for label in range(CHOICES):
            of_label = places[chosen == bool(label)]
            groups += [np.append(label * width + j, of_label[:, j]) for j in range(width)]
        ends = np.cumsum([len(group) for group in groups])
        bases = Residues.concatenate([self._products, rows])
        self._products = kernel.multiply_groups(bases, np.concatenate(groups), ends)

    def check_content(self, *, consumer: str) -> None:
        """Accept the hash of rows that the server cannot read: the active party vouches for it; the ledger has it."""

    def release(self, mechanism: GaussianMechanism, uniform: UniformInt) -> Released:
        """Do step 5: add noise to the product of label 1, and a fresh r^n, which hides how the sum was made."""
        noise = Fixed.from_integers(mechanism.release([0] * self.request.n_columns, uniform), self.request.frac_bits)
        width, bound = self._layout.ciphertexts, self.request.n_rows * self.request.norm_bound
        total = Ciphertext(self._key, self._products[width:])
        noisy = PackedVector(total, self._layout, self.request.frac_bits, bound) + noise
        _, octets = noisy.rerandomize(self._randomisers).ciphertext.to_wire()
        return Released(np.zeros(0, np.int64), octets)


def tally_of(request: AggregateOpen, keep_bits: Callable[[bytes], object], *, consumer: str) -> EncryptedTally:
    """Return an empty tally; raise MalformedMessage as `step_2_key` does."""
    key = step_2_key(request, consumer=consumer)
    return EncryptedTally(request, keep_bits, key, FullExponent(key))
