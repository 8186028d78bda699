"""WALR: logistic regression from one noisy weighted aggregate of labels.

Source: Yuan and Lazarsfeld, "Weighted Aggregate Logistic Regression".
Model: the measurement server is trusted with the labels and sees the active party's rows. The active party may deviate,
    and learns no more about a label than (epsilon, delta) label DP allows.

    step  who      does                                                                  sends
    1     active   clips rows to norm R, rounds them toward zero to a grid               AggregateOpen.
    2     server   checks ranges, policy, budget, receipt; recognises a repeated request Opened.
    3     active   the rows, in batches                                                  WeightRows ..., RowsEnd.
    4     server   joins by id, shortens too long rows, keeps at most m of a person,     nothing.
                   sum = sum of label x row (exact integers). After the last row, it
                   refuses what it cannot join.
    5     server   sum + discrete Gaussian noise; charge and answer in one transaction,  NoisySum, RowsKept.
                   signed together with the request (statement).
                   (A request that was answered before goes from 2 to its stored answer.)
    6     active   mu = noisy sum / N; minimises 1/N sum softplus(x.w) - w.mu + l2/2 |w|^2  nothing.

Departures: norms in place of the range [0, 1]; analytic in place of classic Gaussian, drawn on the integer grid; an
    intercept. l2 > 0 from the noise, because otherwise there may be no minimum. Newton or L-BFGS in addition to the
    paper's hybrid minibatch.
Learns: the server learns the rows and ids. The active party learns the noisy sum, and which of its rows did not count
    because their person had m rows before (this depends on ids and persons, not on labels).
"""

from __future__ import annotations

from blindfit.algorithms.protocols.walr.messages import (
    BATCH_BYTES,
    BATCH_ROWS,
    KEPT_PIECE_BYTES,
    MAX_BATCH_ROWS,
    TABLE,
    AggregateOpen,
    Bits,
    NoisySum,
    Opened,
    RowsEnd,
    RowsKept,
    WeightRows,
)
from blindfit.algorithms.protocols.walr.request import (
    MAX_EPSILON,
    MAX_REQUEST_ID_CHARS,
    MIN_DELTA,
    MIN_EPSILON,
    SALT_BYTES,
    ConsumerRows,
    ContentDigest,
    ReleaseSettings,
    mechanism_of,
    request_digest,
    step_1_name,
    step_1_open,
    step_2_check,
)
from blindfit.algorithms.protocols.walr.roles import (
    SentRows,
    receive_rows,
    run_active,
    run_locally,
    run_measurement_server,
)
from blindfit.algorithms.protocols.walr.tally import (
    Draft,
    Join,
    Released,
    Tally,
    Terms,
    answer_of,
    step_4_check_batch,
    step_5_draft,
    step_6_check,
    step_6_mean,
)

__all__ = [
    "BATCH_BYTES",
    "BATCH_ROWS",
    "KEPT_PIECE_BYTES",
    "MAX_BATCH_ROWS",
    "MAX_EPSILON",
    "MAX_REQUEST_ID_CHARS",
    "MIN_DELTA",
    "MIN_EPSILON",
    "SALT_BYTES",
    "TABLE",
    "AggregateOpen",
    "Bits",
    "ConsumerRows",
    "ContentDigest",
    "Draft",
    "Join",
    "NoisySum",
    "Opened",
    "ReleaseSettings",
    "Released",
    "RowsEnd",
    "RowsKept",
    "SentRows",
    "Tally",
    "Terms",
    "WeightRows",
    "answer_of",
    "mechanism_of",
    "receive_rows",
    "request_digest",
    "run_active",
    "run_locally",
    "run_measurement_server",
    "step_1_name",
    "step_1_open",
    "step_2_check",
    "step_4_check_batch",
    "step_5_draft",
    "step_6_check",
    "step_6_mean",
]
