"""Gradient descent on shares: four rounds a step, and no opened number reveals anything.

    round  opened numbers                                                 shares that each party then has
    1      F = w - V                                                      z = X w.
    2      c = z + 2^59 + r                                               e = rate / rows (sigmoid(z) - y), z in coarse
                                                                          units for the test of its range.
    3      G = e - V'                                                     g = X^T e.
    4      g, l2 w and momentum v under masks of truncations              v <- momentum v - g - rate l2 w,  w <- w + v.

A linear model's e = rate / rows (z - y) needs no waves: round 2 divides z twice, to the bits of y and to a coarse unit.
That takes a round all the same, as z at its own scale leaves no bits for g, but it deals 4 numbers a row in place of
two for each wave.

If rows have their own weights, secret and known to the active party, two rounds follow the second: residuals
times weights, and a division by the scale of weights.

With an l1 penalty the soft threshold of w + v follows (soft_threshold.py), in eight more rounds. The move that momentum
repeats is the rest that the threshold leaves of v.

X is the batch's rows of a matrix whose E = X - U was opened once (sharing/products.py). V, V', r and the masks of
truncations are new in every step. Rate and rows are folded into the public factors of the sigmoid's waves, or into
those of z - y.

Source: MATH 4.9; Mohassel, Zhang 2017 (SecureML) for matrices that are masked once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from blindfit.algorithms.sharing import field, products, ranges, truncation, waves
from blindfit.algorithms.sharing.computing import Party, divide, multiply
from blindfit.algorithms.sharing.dealing import Item
from blindfit.algorithms.sharing.descent_scales import Scales
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.products import Mask, MaskedMatrix
from blindfit.algorithms.sharing.shares import Index, Share
from blindfit.algorithms.sharing.soft_threshold import soft_threshold
from blindfit.algorithms.sharing.waves import Waves


@dataclass(frozen=True, repr=False)
class Labels:
    """The labels of a batch, in shares.

    Attributes:
        y: 0 and 1, (rows,); for a linear model, numbers at scales.waves.wave bits.
        row_weights: weights at Step.row_weight_bits; None if all rows count alike.
    """

    y: Share
    row_weights: Share | None = None

    def __getitem__(self, rows: Index) -> Labels:
        return Labels(self.y[rows], None if self.row_weights is None else self.row_weights[rows])


@dataclass(frozen=True)
class Step:
    """The public parameters of one step.

    Attributes:
        name: unique name of the step.
        rows: number of rows of the batch.
        penalised: 0 or 1 for each column: an intercept is not pulled to zero.
        l1: after each move, penalised weights are drawn to zero by rate l1.
        row_weight_bits: bits of row weights; None if all rows count alike.
        waves: waves of the sigmoid; in any model, their bound is that of a score.
    """

    name: str
    rows: int
    rate: float
    l2: float
    momentum: float
    penalised: Elements
    scales: Scales
    waves: Waves
    model: Literal["logistic", "linear"] = "logistic"
    row_weight_bits: int | None = None
    l1: float = 0.0

    @property
    def threshold(self) -> Elements:
        """The soft threshold, (columns,), at weight_bits."""
        each = round(self.rate * self.l1 * 2.0**self.scales.weight_bits)
        return field.multiply(field.elements([each]), self.penalised)

    @property
    def factor(self) -> float:
        return self.rate / self.rows

    @property
    def linear_factor(self) -> int:
        """Factor of a linear model at scales.waves.coefficient bits, rounded; it defines the model's rate."""
        return round(self.factor * 2.0**self.scales.waves.coefficient)

    @property
    def weighing(self) -> str:
        return f"{self.name}/row weights"

    @property
    def columns(self) -> int:
        return len(self.penalised)

    @property
    def coarse_shift(self) -> int:
        """Bits by which a score is divided into coarse units (ranges.py)."""
        return self.scales.waves.score + ranges.unit_bits(self.waves)

    @property
    def score_shift(self) -> int:
        """Bits by which a linear model's score is divided to the bits of its labels."""
        return self.scales.waves.score - self.scales.waves.wave


@dataclass(frozen=True)
class Items:
    """Dealt items of one step, in the order of their use."""

    forward: Item
    residual: Item
    weigh: Item | None
    lighten: Item | None
    backward: Item
    move: Item
    shrink: Item | None
    repeat: Item | None

    @classmethod
    def of(cls, step: Step, mask: Mask) -> Items:
        """Return the items of a step.

        Args:
            mask: function that returns the batch's rows of U, for the dealer. Parties never call it.
        """
        k, bits = (step.columns,), step.scales.decay_bits
        return cls(
            products.forward_item(step.name, mask, step.rows, step.columns),
            _residual_item(step),
            None if step.row_weight_bits is None else products.product_item(step.weighing, (step.rows,)),
            None
            if step.row_weight_bits is None
            else truncation.truncation_item(step.weighing, (step.rows,), step.row_weight_bits),
            products.backward_item(step.name, mask, step.rows, step.columns),
            truncation.truncation_item(f"{step.name}/move", k, step.scales.shift),
            truncation.truncation_item(f"{step.name}/shrink", k, bits) if step.l2 else None,
            truncation.truncation_item(f"{step.name}/repeat", k, bits) if step.momentum else None,
        )

    @property
    def all(self) -> list[Item]:
        first = (self.forward, self.residual, self.weigh, self.lighten)
        every = (*first, self.backward, self.move, self.shrink, self.repeat)
        return [item for item in every if item is not None]


def _residual_item(step: Step) -> Item:
    shape = (step.rows,)
    if step.model == "linear":
        return truncation.quotients_item(step.name, shape, step.score_shift, step.coarse_shift)
    return waves.waves_item(step.name, shape, step.waves, step.scales.waves, shift=step.coarse_shift)


@dataclass(frozen=True, repr=False)
class State:
    """One party's shares of the model, (columns,) at weight_bits.

    Attributes:
        velocity: the last move.
    """

    weights: Share
    velocity: Share


async def move(
    party: Party, step: Step, batch: MaskedMatrix, labels: Labels, state: State, noise: Share | None = None
) -> tuple[State, Share]:
    """Take one step; return the model after it, and the scores before it in coarse units, for a later range test.

    Args:
        batch: X, (rows, columns), features at feature_bits.
        noise: noise that is added to the gradient first, (columns,).
    """
    items, w = Items.of(step, batch.dealer_mask), state.weights
    gradient, coarse = await _gradient(party, step, items, batch, labels, w)
    if noise is not None:
        gradient = gradient + noise
    decays = [(items.shrink, w, step.rate * step.l2 * step.penalised), (items.repeat, state.velocity, step.momentum)]
    divided = [(items.move, gradient, step.scales.shift)]
    for item, share, decay in decays:
        if item is not None:
            bits = step.scales.decay_bits
            factors = field.elements(np.broadcast_to(np.rint(np.asarray(decay) * 2.0**bits), w.shape).astype(np.int64))
            divided.append((item, share.times(factors), bits))
    quotients = await _divide(party, divided)
    velocity = -quotients[0]
    for (item, _, _), quotient in zip(divided[1:], quotients[1:], strict=True):
        velocity = velocity - quotient if item is items.shrink else velocity + quotient
    if not step.l1:
        return State(w + velocity, velocity), coarse
    drawn = await draw_to_zero(party, step, w + velocity)
    return State(drawn, drawn - w), coarse


async def draw_to_zero(party: Party, step: Step, w: Share) -> Share:
    return await soft_threshold(party, f"{step.name}/l1", w, step.threshold)


async def _gradient(
    party: Party, step: Step, items: Items, batch: MaskedMatrix, labels: Labels, w: Share
) -> tuple[Share, Share]:
    """Do rounds 1 to 3; return the gradient at feature_bits + residual_bits, and coarse scores."""
    dealt = await party.take_dealt(items.forward)
    (masked,) = await party.open_(w - dealt["v"])
    z = batch.times(w, dealt, masked)
    errors, coarse = await residuals(party, step, items, z, labels)
    dealt = await party.take_dealt(items.backward)
    (masked,) = await party.open_(errors - dealt["v"])
    return batch.transposed_times(errors, dealt, masked), coarse


async def residuals(party: Party, step: Step, items: Items, z: Share, labels: Labels) -> tuple[Share, Share]:
    """Do round 2: return rate / rows (sigmoid(z) - y), or (z - y), at residual_bits, times the rows' weights.

    Also return z in coarse units.

    Args:
        z: scores, at scales.waves.score bits.
    """
    dealt = await party.take_dealt(items.residual)
    (c,) = await party.open_(truncation.mask(party.holder, z, dealt["r"]))
    if step.model == "linear":
        shorter, coarse = truncation.quotients(party.holder, dealt, c, step.score_shift, step.coarse_shift)
        errors = (shorter - labels.y).times(field.elements([step.linear_factor]))
    else:
        p = waves.sigmoid(party.holder, dealt, c, step.waves, step.scales.waves, factor=step.factor)
        coarse = truncation.truncate(party.holder, dealt, c, step.coarse_shift)
        errors = p - labels.y.times(field.elements([round(step.factor * 2.0**step.scales.residual_bits)]))
    if step.row_weight_bits is not None and labels.row_weights is not None:
        weighted = await multiply(party, step.weighing, errors, labels.row_weights)
        errors = await divide(party, step.weighing, weighted, step.row_weight_bits)
    return errors, coarse


async def _divide(party: Party, asked: list[tuple[Item, Share, int]]) -> list[Share]:
    """Do several divisions in one round."""
    dealt = [await party.take_dealt(item) for item, _, _ in asked]
    hidden = [truncation.mask(party.holder, share, one["r"]) for one, (_, share, _) in zip(dealt, asked, strict=True)]
    opened = await party.open_(*hidden)
    return [
        truncation.truncate(party.holder, one, value, bits)
        for one, value, (_, _, bits) in zip(dealt, opened, asked, strict=True)
    ]
