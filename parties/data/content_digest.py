"""A digest of a table's ids and labels. Only its owner may have it, because it lets a person try out labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blindfit.parties.data.row_batch import RowBatch


class ContentDigest:
    """The sum mod 2^256 of SHA-256(row) over the rows. The order of the rows, their features and their persons do not
    count.

    The same labels are the same content, with a person column or without.

    The digest shows an honest owner that a table has been used before. It does not stop an owner who searches for a
    second table with the same sum.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._sum = 0

    @classmethod
    def of(cls, parts: Iterable[ContentDigest]) -> ContentDigest:
        """Return the digest of a table, from the digests of its parts in any order."""
        whole = cls()
        for part in parts:
            whole.n_rows += part.n_rows
            whole._sum += part._sum
        return whole

    def add(self, batch: RowBatch) -> None:
        digests = b"".join([hashlib.sha256(row).digest() for row in _canonical_rows(batch)])
        lanes = np.frombuffer(digests, "<u4").reshape(-1, 8).sum(axis=0, dtype=np.uint64)
        self._sum += sum(int(lane) << 32 * position for position, lane in enumerate(lanes))
        self.n_rows += len(batch)

    def hexdigest(self) -> str:
        content = b"blindfit table 1, %d rows" % self.n_rows + (self._sum % (1 << 256)).to_bytes(32, "little")
        return hashlib.sha256(content).hexdigest()


def _canonical_rows(batch: RowBatch) -> list[bytes]:
    """Return `<bytes in id>:<id><label>` for each row, so that no two different rows have the same text."""
    parts = [pc.binary_length(batch.ids).cast(pa.string()), pa.scalar(":"), batch.ids]
    if batch.labels is not None:
        parts.append(pa.array(batch.labels).cast(pa.string()))
    rows: list[bytes] = pc.binary_join_element_wise(*parts, "").cast(pa.binary()).to_pylist()
    return rows
