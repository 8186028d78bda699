"""The hold-out loss of a Taylor training: mu in step 0, steps 6 and 7."""

from __future__ import annotations

import numpy as np

from blindfit.algorithms.errors import LocalProtocolError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.ciphertexts import Ciphertext
from blindfit.algorithms.paillier.sums import columns_dot
from blindfit.algorithms.paillier.vectors import EncryptedVector, decrypt
from blindfit.algorithms.protocols.taylor.messages import Verdict
from blindfit.algorithms.protocols.taylor.parameters import DataSeat, Encrypted, Floats, KeySeat, TaylorParameters
from blindfit.algorithms.protocols.taylor.steps import Fresh, add_weighted, bound_vector, weigh
from blindfit.algorithms.statistics.vertical.grid import LABEL_TERM_BOUND, Grid
from blindfit.algorithms.statistics.vertical.row_plan import Rows

# --- of the data parties ----------------------------------------------------------------------------------


def step_0_labels(seat: DataSeat, rows: Rows, grid: Grid) -> Fresh:
    """Return [[f o y]] on the hold-out rows."""
    y = Fixed.from_reals(labels_of(seat)[rows], grid.label_bits).values
    return weigh(seat, rows, y, grid, grid.label_bits, LABEL_TERM_BOUND << grid.label_bits)


def step_0_mu(seat: DataSeat, rows: Rows, grid: Grid, labels_enc: Encrypted) -> Encrypted:
    """Return [[mu]] = X_H^T [[f o y]], once for the whole training."""
    return columns_dot(Fixed(seat.features[rows], grid.feature_bits), labels_enc, workers=seat.workers)


def step_6_start(seat: DataSeat, rows: Rows, grid: Grid) -> tuple[Fresh, Fresh]:
    """Return [[f o z_A]] and [[sum f (c - b y z_A + a z_A^2)]]."""
    y, (_, scores) = labels_of(seat)[rows], shrink_and_score(seat, rows, grid)
    scores_enc = weigh(seat, rows, score_steps(scores, grid), grid, grid.score_bits, grid.score_bound)
    losses = grid.loss.constants(y) - grid.loss.cross * y * scores + grid.loss.square * scores**2
    loss = bound_vector(_weighted_sum(seat, rows, losses, grid), grid.loss_bound(len(rows)))
    return scores_enc, loss.rerandomize(seat.randomisers)


def step_6_loss(
    seat: DataSeat, rows: Rows, grid: Grid, scores_enc: Encrypted, loss_enc: Encrypted, mu_enc: Encrypted
) -> Fresh:
    """Return the loss with this party's scores, re-randomised; `scores_enc` are the scores of the parties before.

    The operations' bound of the loss is checked against the key. The loss leaves with a smaller bound, which every mean
    of such losses keeps for all weights (Grid.loss_bound).
    """
    weights, scores = shrink_and_score(seat, rows, grid)
    cross = Fixed.from_reals(2 * grid.loss.square * scores[:, None], grid.score_bits)
    total = (
        loss_enc
        + columns_dot(cross, scores_enc, workers=seat.workers)
        + _weighted_sum(seat, rows, grid.loss.square * scores**2, grid)
        + label_product(weights, mu_enc, grid)
    )
    return total.within(grid.loss_bound(len(rows))).rerandomize(seat.randomisers)


def step_6_scores(seat: DataSeat, rows: Rows, grid: Grid, scores_enc: Encrypted) -> Fresh:
    """Return the scores of the parties so far, re-randomised, for the next in the chain."""
    own = score_steps(shrink_and_score(seat, rows, grid)[1], grid)
    bound = scores_enc.bound + grid.score_bound * grid.factor_bound
    scores_enc = bound_vector(add_weighted(seat, rows, scores_enc, own, grid.score_bits), bound)
    return scores_enc.rerandomize(seat.randomisers)


def labels_of(seat: DataSeat) -> Floats:
    if seat.y is None:
        raise LocalProtocolError("only the active party has labels")
    return seat.y


def shrink_and_score(seat: DataSeat, rows: Rows, grid: Grid) -> tuple[Floats, Floats]:
    """Return the party's weights, shrunk to the protocol's range, and its scores of the rows by them."""
    features = seat.features[rows]
    weights = grid.shrink(features, seat.optimiser.weights)
    return weights, grid.scores(features, weights)


def score_steps(scores: Floats, grid: Grid) -> Rows:
    steps = np.clip(np.rint(np.ldexp(scores, grid.score_bits)), -grid.score_bound, grid.score_bound)
    return steps.astype(np.int64)


def _weighted_sum(seat: DataSeat, rows: Rows, losses: Floats, grid: Grid) -> Encrypted:
    """Return [[sum f_i losses_i]] at loss_bits; not randomised if factors are plain."""
    fixed = Fixed.from_reals(losses[:, None], 2 * grid.score_bits)
    if seat.factors_enc is not None:
        return columns_dot(fixed, seat.factors_enc.take(rows.tolist()), workers=seat.workers)
    factors = [1] * len(rows) if seat.factors is None else seat.factors[rows].tolist()
    total = sum(f * v for f, v in zip(factors, fixed.values[:, 0].tolist(), strict=True))
    kernel = seat.randomisers.public_key.kernel
    plain = Ciphertext(seat.randomisers.public_key, kernel.ones_plus([total]))
    return EncryptedVector(plain, grid.loss_bits, abs(total))


def label_product(weights: Floats, mu_enc: Encrypted, grid: Grid) -> Encrypted:
    """Return [[-b theta . mu]] at loss_bits."""
    bits = grid.loss_bits - mu_enc.frac_bits
    return columns_dot(Fixed.from_reals(-grid.loss.cross * weights[:, None], bits), mu_enc)


# --- of the key node --------------------------------------------------------------------------------------


def step_7_verdict(seat: KeySeat, loss_enc: Encrypted, rows: int, parameters: TaylorParameters) -> Verdict:
    """Decide whether training goes on, by the hold-out rows' mean loss, or under a mask by its share of the first.

    Raises:
        MalformedMessage: the plaintext is larger than a loss can be.
    """
    try:
        total = decrypt(loss_enc, seat.private_key).to_reals()[0]
    except RangeError as bad:
        raise MalformedMessage(culprit=parameters.last, field="loss", reason=bad.message, step="HoldOutLoss") from None
    return Verdict(int(seat.patience.goes_on(float(total) / rows)))
