"""The grids of the numbers of a training in shares: no sum may leave the field's middle, |x| < 2^59."""

from __future__ import annotations

import math
from dataclasses import dataclass

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.sharing.truncation import MOST_BITS
from blindfit.algorithms.sharing.waves import WaveScales

MOST_WAVE_BITS, MOST_FACTOR_BITS = 17, 21  # with more bits, only the fit's own error remains
LEAST_WAVE_BITS = 8
FACTOR_ABOVE_WAVE_BITS = 4  # so that both roundings count alike: there are as many factors as waves
LARGEST_WEIGHT = 64.0  # beyond it a model has long diverged


class BatchesTooLarge(RangeError):
    """Numbers do not fit into the field, or are too coarse, because batches have too many rows."""


@dataclass(frozen=True, slots=True)
class Scales:
    """Bits after the binary point of the numbers of a training.

    Attributes:
        feature_bits, weight_bits: bits of features and weights.
        waves: scales of a residual; its factors include rate / rows of the batch. In a linear model, `wave` are the
            bits of z - y, and `coefficient` those of its factor.
        decay_bits: bits of the factor that shrinks weights and repeats moves.
    """

    feature_bits: int
    weight_bits: int
    waves: WaveScales
    decay_bits: int

    @classmethod
    def fitting(
        cls,
        *,
        batch_rows: int,
        rate: float,
        feature_bound: float,
        feature_bits: int = 16,
        weight_bits: int = 24,
        residual_bound: float = 1.0,
        noise: float = 0.0,
    ) -> Scales:
        """Return the finest scales that fit.

        Args:
            residual_bound: bound of sigmoid(z) - y, or of a linear model's z - y.
            noise: the largest noise in a batch's gradient, in units of a feature times a residual.

        Raises:
            RangeError: no scales fit.
            BatchesTooLarge: no scales fit, because of the rows of a batch.
        """
        largest = batch_rows * feature_bound * residual_bound + noise
        room = MOST_BITS - feature_bits - math.ceil(math.log2(largest)) - 1
        wave = min(MOST_WAVE_BITS, (room - FACTOR_ABOVE_WAVE_BITS) // 2)
        if wave < LEAST_WAVE_BITS:
            if noise > batch_rows * feature_bound:
                raise RangeError(
                    "so much noise does not fit into the field", hint="raise privacy.epsilon, or lower falcon.epochs"
                )
            raise BatchesTooLarge(
                f"batches of {batch_rows:,} rows of features up to {feature_bound:g} do not fit into the field"
            )
        factor = min(MOST_FACTOR_BITS, room - wave) + math.floor(math.log2(batch_rows / rate))
        score = feature_bits + weight_bits
        decay_bits = MOST_BITS - weight_bits - math.ceil(math.log2(LARGEST_WEIGHT)) - 1
        return cls(feature_bits, weight_bits, WaveScales(score, wave, factor), decay_bits)

    @property
    def residual_bits(self) -> int:
        return self.waves.result

    @property
    def shift(self) -> int:
        """Bits by which a batch's gradient is divided to become a move of the weights."""
        return self.feature_bits + self.residual_bits - self.weight_bits
