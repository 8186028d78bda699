"""The messages of WALR, and their table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.messages import (
    Integer,
    IntegerTensor,
    NarrowTensor,
    Octets,
    Real,
    RealTensor,
    ShareVector,
    Text,
    Texts,
)
from blindfit.algorithms.protocols.table import ACTIVE, CHUNKS, MEASUREMENT, ONCE, Arrow, Table

BATCH_BYTES = 2**21  # of one message, half of gRPC's limit: two sides work side by side, and a server that maps its
# index piece by piece goes through it once for each message
BATCH_ROWS = 16384
MAX_BATCH_ROWS = 2**20  # with fixed_point.MAX_NORM_BOUND, the sum of a batch is exact in float64
KEPT_PIECE_BYTES = 2**20
NOT_CONTENT = frozenset(
    (
        "protocol_version",
        "request_id",
        "content_sha256",
        "content_salt",
        "receipt",
        "receipt_signature",
        "session",
        "public_key",
    )
)  # fields of a request on which its answer does not depend, except the rows' hash


Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AggregateOpen:
    protocol_version: Text
    request_id: Text
    dataset: Text
    snapshot: Text
    n_rows: Integer
    n_columns: Integer
    frac_bits: Integer
    norm_bound: Integer  # grid steps
    max_rows_per_person: Integer  # 0: the unit is a row
    epsilon: Real
    delta: Real
    mechanism: Text
    content_sha256: Octets
    receipt: Octets  # empty: the active party has no receipt of this server
    receipt_signature: Octets
    session: Text = ""  # the job of the request; a server whose operator approves each job requires it
    content_salt: Octets = b""  # of the hash, which a ledger shows to auditors: they cannot try rows out without it
    key: Text = ""  # fingerprint of the active party's key, which encrypts rows and sum; empty: they are not encrypted
    public_key: Octets = b""
    slot_bits: Integer = 0  # of one number in a ciphertext
    in_shares: Integer = 0  # 1: rows come less masks, to two servers (walr_shares)
    blocks: Text = ""  # of passive parties that hold columns of the same people (walr_blocks); empty: none

    @property
    def sensitivity(self) -> int:
        """L2, in grid steps: one label of the unit changes, N public."""
        return self.norm_bound * max(1, self.max_rows_per_person)


@dataclass(frozen=True, slots=True)
class Opened:
    send_rows: Integer  # 0: answered before, the answer follows


@dataclass(frozen=True, slots=True, repr=False)
class WeightRows:
    ids: Texts
    weights: NarrowTensor  # (rows, n_columns); answer and hash do not depend on their width


@dataclass(frozen=True, slots=True)
class RowsEnd:
    pass


@dataclass(frozen=True, slots=True)
class NoisySum:
    sums: IntegerTensor  # (n_columns,), grid steps
    noise_std: Real  # grid steps
    sensitivity: Real  # grid steps
    event: Text
    unit: Text
    neighbours: Text
    rows_kept: Integer
    rows_scaled: Integer
    min_rows: Integer  # this and the next four: the policy and the population's budget at the release
    max_epsilon: Real
    max_delta: Real
    budget_epsilon: Real
    budget_delta: Real
    entry: Text  # the ledger's line of the charge; its answer_sha256 is that of walr.statement
    receipt: Octets
    receipt_signature: Octets
    ciphertexts: Octets = b""  # the sum under the request's key, if it has one; then `sums` is empty
    rows_unknown: Integer = (
        0  # rows that counted as label 0 because the table does not have their ids, if that is public
    )


@dataclass(frozen=True, slots=True, repr=False)
class RowsKept:
    bits: Octets


_NEW = "a request that was not answered before"
TABLE = Table(
    "walr",
    Arrow("1", ACTIVE, MEASUREMENT, AggregateOpen, ONCE, "the request, and the hash of the rows"),
    Arrow("2", MEASUREMENT, ACTIVE, Opened, ONCE, "whether the request was answered before"),
    Arrow("3", ACTIVE, MEASUREMENT, WeightRows, CHUNKS, "rows and their ids", _NEW),
    Arrow("3", ACTIVE, MEASUREMENT, RowsEnd, ONCE, "the end of the rows", _NEW),
    Arrow("5", MEASUREMENT, ACTIVE, NoisySum, ONCE, "the noisy sum"),
    Arrow("5", MEASUREMENT, ACTIVE, RowsKept, CHUNKS, "the rows that counted", "rows that did not count"),
)


@dataclass(frozen=True, slots=True)
class BlockColumns:
    n_columns: Integer
    norm_bound: Real  # of its standardised rows, rounded by `step_1_bound`


@dataclass(frozen=True, slots=True)
class BlockGrid:
    frac_bits: Integer
    norm_bound: Integer  # grid steps, of this block


@dataclass(frozen=True, slots=True)
class BlockContent:
    content_sha256: Octets


@dataclass(frozen=True, slots=True)
class BlockWanted:
    send_rows: Integer  # 0: they were summed and fitted before


@dataclass(frozen=True, slots=True)
class BlockOpen:
    n_rows: Integer
    norm_bound: Integer  # grid steps; the active party got the same bound and hash
    content_sha256: Octets
    content_salt: Octets


@dataclass(frozen=True, slots=True, repr=False)
class BlockFit:
    weights: RealTensor  # (columns of the block,), for the rows as sent
    rows_kept: Integer
    solver: Text
    iterations: Integer
    converged: Integer
    gradient_norm: Real  # rounded up to a power of two
    l2: Real
    feasible: Integer  # 1: yes, 0: no, -1: unknown
    left_out: IntegerTensor  # places of columns of the block that were left out: their weights are 0


@dataclass(frozen=True, slots=True)
class Dimensions:
    n_rows: Integer
    n_columns: Integer
    norm_bound: Integer  # grid steps


@dataclass(frozen=True, slots=True, repr=False)
class MaskedRows:
    ids: Texts
    values: ShareVector  # for each id its numbers, less masks that the sender knows


@dataclass(frozen=True, slots=True, repr=False)
class Challenge:
    seed: Octets  # of the signs


@dataclass(frozen=True, slots=True, repr=False)
class ZeroSharePart:
    part: Octets  # one server's half of the secret from which their shares of zero follow


@dataclass(frozen=True, slots=True)
class MasksUsed:
    """Sent when the dealer may leave; parties notice its absence only by the end of its stream."""
