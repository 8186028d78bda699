"""The first message of an exchange."""

from __future__ import annotations

from blindfit.algorithms.protocols import walr

OPEN = walr.AggregateOpen(
    protocol_version="1",
    request_id="r" * 32,
    dataset="d",
    snapshot="v",
    n_rows=10,
    n_columns=3,
    frac_bits=16,
    norm_bound=1 << 17,
    max_rows_per_person=0,
    epsilon=0.5,
    delta=1e-5,
    mechanism="analytic",
    content_sha256=b"\x01" * 32,
    receipt=b"{}",
    receipt_signature=b"\x02" * 64,
)
