"""Scores, log loss, and figures of a model on rows whose scores nobody learns.

    loss        sum_i log(2 cosh(z_i / 2)) + z_i / 2 - y_i z_i: the waves' opening, and a product with the labels.
    confusion   sum_i y_i [z_i >= t] and sum_i [z_i >= t], for the decision threshold t in log odds.
    AUC, KS     from counts of the rows of each class in 256 bins of a flattened probability, ties as halves.

Scores are first clipped to the range in which the waves are right.

Source: MATH 4.7, 4.10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import lookup, products, ranges, truncation, waves
from blindfit.algorithms.sharing.comparison import not_negative
from blindfit.algorithms.sharing.computing import Party, divide, multiply
from blindfit.algorithms.sharing.largest import largest
from blindfit.algorithms.sharing.products import SecretMatrix
from blindfit.algorithms.sharing.shares import Share, join
from blindfit.algorithms.sharing.waves import Waves, WaveScales

BINS = 256
LARGEST_LOSS_BITS = 7  # twice the loss of a row is below 128, by the widest waves
FLATTENED_BY = 3.0  # log odds are binned as sigmoid(z / 3): bins of 0.05 about 0, and of 0.2 at 6


async def scores(party: Party, name: str, rows: SecretMatrix, w: Share) -> Share:
    """Return X w: one round."""
    dealt = await party.take_dealt(products.forward_item(name, rows.dealer_mask, len(rows), len(w)))
    (masked,) = await party.open_(w - dealt["v"])
    return rows.times(w, dealt, masked)


# --- log loss -----------------------------------------------------------------------------------------------------


def loss_scales(rows: int, score_bits: int, row_weight_bits: int = 0) -> WaveScales:
    """Return the finest scales at which a sum over so many rows stays in the field's middle.

    Args:
        row_weight_bits: bits of a row's weight, before and after the point.
    """
    room = truncation.MOST_BITS - LARGEST_LOSS_BITS - row_weight_bits
    result = min(37, score_bits, room - math.ceil(math.log2(max(rows, 2))))
    wave = min(17, result // 2)
    return WaveScales(score_bits, wave, result - wave)


async def log_loss(
    party: Party, name: str, z: Share, y: Share, chosen: Waves, scales: WaveScales, row_weights: Share | None = None
) -> Share:
    """Return twice the sum over the rows, (1,), at scales.result bits and those of row weights: 2 or 3 rounds.

    Args:
        z: scores at scales.score bits, in the range in which the waves are right.
        y: 0 and 1.
    """
    shift = scales.score - scales.result
    dealt = await party.take_dealt(waves.waves_item(name, z.shape, chosen, scales, shift=shift))
    (c,) = await party.open_(truncation.mask(party.holder, z, dealt["r"]))
    even = waves.log_cosh(party.holder, dealt, c, chosen, scales)
    coarser = truncation.truncate(party.holder, dealt, c, shift)
    # log(1 + e^z) - y z = log(2 cosh(z / 2)) - (2 y - 1) z / 2
    signed = await multiply(party, f"{name}/labels", party.holder.plus(y + y, f.elements([-1])), coarser)
    losses = even.times_power_of_two(1) - signed
    if row_weights is not None:
        losses = await multiply(party, f"{name}/row weights", losses, row_weights)
    return losses.total()


# --- figures of a model ------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Counts:
    """Sums over rows, in shares; they add up over parts of the rows.

    Attributes:
        confusion: true positives, and rows called positive.
        bins: rows without the label and rows with it, (2 BINS,).
        loss: twice the log loss.
    """

    confusion: Share
    bins: Share
    loss: Share

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.confusion + other.confusion, self.bins + other.bins, self.loss + other.loss)


async def counts(
    party: Party, name: str, z: Share, y: Share, chosen: Waves, scales: WaveScales, threshold: float
) -> Counts:
    """Count over rows with scores z: 13 rounds.

    Args:
        scales: scales of the loss, for the rows of all parts (`loss_scales`).
        threshold: a probability.
    """
    n, one = len(z), 2.0**scales.score
    limit = round((chosen.bound - 2 ** ranges.unit_bits(chosen)) * one)
    at = round(math.log(threshold / (1 - threshold)) * one)
    moved = join([party.holder.plus(z, f.elements([-bound])) for bound in (at, limit, -limit)])
    above = await not_negative(party, f"{name}/limits", moved)
    positive, too_large, large_enough = above[:n], above[n : 2 * n], above[2 * n :]
    kept = await multiply(party, f"{name}/kept", join([large_enough - too_large, positive]), join([z, y]))
    beyond = party.holder.plus(
        too_large + large_enough, f.elements([-1])
    )  # 1 above the limit, -1 below minus the limit
    clipped = kept[:n] + beyond.times(f.elements([limit]))
    loss = await log_loss(party, f"{name}/loss", clipped, y, chosen, scales)
    bins = await _count_by_bin(party, f"{name}/bins", clipped, y, chosen, scales)
    return Counts(join([kept[n:].total(), positive.total()]), bins, loss)


async def _count_by_bin(party: Party, name: str, z: Share, y: Share, chosen: Waves, scales: WaveScales) -> Share:
    """Count rows by bin and label, (2 BINS,): three rounds. Chance decides for a row near a border of two bins."""
    dealt = await party.take_dealt(waves.waves_item(name, z.shape, chosen, scales, shift=0))
    (c,) = await party.open_(truncation.mask(party.holder, z, dealt["r"]))
    sines = chosen.flat_sigmoid(FLATTENED_BY)
    flattened = waves.sigmoid(party.holder, dealt, c, chosen, scales, factor=BINS - 3, sines=sines)
    places = party.holder.plus(
        flattened, f.elements([1 << scales.result])
    )  # from 1 to BINS - 2, times 2^result: the fit may pass 1
    places = await divide(party, f"{name}/places", places, scales.result)
    return await lookup.count(party, name, places + y.times(f.elements([BINS])), 2 * BINS)


@dataclass(frozen=True, repr=False)
class Ranks:
    """Ranks of rows by score, in shares.

    Attributes:
        auc: twice the AUC times the number of pairs of a row with the label and one without, (1,).
        ks: the KS statistic times that number, (1,).
    """

    auc: Share
    ks: Share


async def ranks(party: Party, name: str, bins: Share, rows: int) -> Ranks:
    """Compute from `Counts.bins` of `rows` rows: 1 round, and those of the largest of 2 BINS."""
    negative, positive = bins[:BINS], bins[BINS:]
    below, up_to = negative.cumulate() - negative, positive.cumulate()
    n_negative, n_positive = negative.total(), positive.total()
    cumulated = join([negative.cumulate(), up_to])
    totals = join([n_positive.repeat(BINS), n_negative.repeat(BINS)])
    products = await multiply(
        party, f"{name}/products", join([positive, cumulated]), join([below + below + negative, totals])
    )
    apart = products[2 * BINS :] - products[BINS : 2 * BINS]  # of the shares of both classes, times both numbers
    most = rows * rows // 4  # pairs of a row with the label and one without
    ks = await largest(party, f"{name}/largest", join([apart, -apart]), (2 * most).bit_length())
    return Ranks(products[:BINS].total(), ks)


# --- opening ----------------------------------------------------------------------------------------------------------


async def round_weights(party: Party, name: str, w: Share, weight_bits: int, kept_bits: int, bound: float) -> Share:
    """Clip weights to [-bound, bound) and round them to whole steps of 2^-kept_bits: 9 rounds.

    A weight between two steps becomes either, by chance and without a bias.
    """
    k, least = len(w), -round(bound * 2.0**weight_bits)
    largest = -least - (1 << weight_bits - kept_bits)
    moved = join([party.holder.plus(w, f.elements([-limit])) for limit in (largest, least)])
    above = await not_negative(party, f"{name}/limits", moved)
    inside = await multiply(party, f"{name}/inside", above[k:] - above[:k], w)
    too_small = -party.holder.plus(above[k:], f.elements([-1]))
    clipped = inside + above[:k].times(f.elements([largest])) + too_small.times(f.elements([least]))
    return await divide(party, name, clipped, weight_bits - kept_bits)
