"""Sigmoid and log loss of secret scores as sums of waves, with one opening.

On |z| <= bound, with angles t_j = 2 pi j z / period for j = 1..count,

    sigmoid(z) = 1/2 + sum_j b_j sin t_j          log(2 cosh(z/2)) = a_0 + sum_j a_j cos t_j

fitted by least squares. The rest of the period is free, and small singular values are cut off so that coefficients stay
small. The log loss of a label y in {0, 1} is log(2 cosh(z/2)) + z/2 - y z, from the same waves.

c = z' + r is opened as for a truncation (truncation.py). The angle of z is that of c less that of r. With the dealer's
sines and cosines of r's angle everything is linear: sin t_j = sin(c_j) cos(r_j) - cos(c_j) sin(r_j). If the sum wrapped
round p, the angle is that of r - p = r + 1 - 2^61. It is off by one last place, as 2^61 is whole periods: an error of
2 pi j 2^-frac_bits / period, which the bound counts.

Past |z| = bound the value is wrong, and no check here notices it: the caller has z divided by a coarse unit, from the
same opening, and tests that (ranges.py).

Source: MATH 4.7; Huybrechs 2010, "On the Fourier extension of nonperiodic functions".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import truncation
from blindfit.algorithms.sharing.dealing import Arrays, Item, Shape
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.shares import Holder, Share

Floats = npt.NDArray[np.float64]
POINTS_A_WAVE = 64  # points of a fit for each wave; its error is measured at ten times as many other points


@dataclass(frozen=True)
class Waves:
    """A sum of waves that approximates sigmoid and log loss.

    Attributes:
        bound: the largest |z|.
        period: a power of two, above 2 bound.
        count: number of waves.
        sigmoid_cut, log_cosh_cut: singular values below this fraction of the largest are cut off.
    """

    bound: float
    period: int
    count: int
    sigmoid_cut: float = 1e-12
    log_cosh_cut: float = 1e-12

    @cached_property
    def sigmoid(self) -> Floats:
        """Coefficients b_1 .. b_count."""
        return self.flat_sigmoid(1.0)

    def flat_sigmoid(self, width: float) -> Floats:
        """Return the coefficients of sigmoid(z / width)."""
        return _flat_sigmoid(self, width)

    @cached_property
    def log_cosh(self) -> Floats:
        """Coefficients a_0 .. a_count."""
        z = self.points(POINTS_A_WAVE * self.count)
        cosines = np.hstack([np.ones((len(z), 1)), np.cos(self.angles(z))])
        return _least_squares(cosines, np.logaddexp(z / 2, -z / 2), self.log_cosh_cut)

    @cached_property
    def sigmoid_error(self) -> float:
        """The largest error of the sigmoid on |z| <= bound."""
        z = self.points(10 * POINTS_A_WAVE * self.count + 1)
        return float(np.abs(0.5 + np.sin(self.angles(z)) @ self.sigmoid - 1 / (1 + np.exp(-z))).max())

    @cached_property
    def log_cosh_error(self) -> float:
        z = self.points(10 * POINTS_A_WAVE * self.count + 1)
        fitted = self.log_cosh[0] + np.cos(self.angles(z)) @ self.log_cosh[1:]
        return float(np.abs(fitted - np.logaddexp(z / 2, -z / 2)).max())

    def points(self, count: int) -> Floats:
        return np.linspace(0, self.bound, count)  # sines are odd and cosines even, like their functions

    def angles(self, z: Floats) -> Floats:
        """Return angles, (len(z), count)."""
        return 2 * math.pi / self.period * np.outer(z, np.arange(1, self.count + 1))


CHOICES = {
    "narrow": Waves(12.0, 32, 16),
    "medium": Waves(28.0, 64, 32),
    "wide": Waves(56.0, 128, 64, sigmoid_cut=1e-5, log_cosh_cut=1e-8),
}


@cache
def _flat_sigmoid(waves: Waves, width: float) -> Floats:
    z = waves.points(POINTS_A_WAVE * waves.count)
    sines = np.sin(waves.angles(z))
    return _least_squares(sines, 1 / (1 + np.exp(-z / width)) - 0.5, waves.sigmoid_cut)


def _least_squares(columns: Floats, values: Floats, cut: float) -> Floats:
    return np.asarray(np.linalg.lstsq(columns, values, rcond=cut)[0])


# --- in shares ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WaveScales:
    """Bits after the binary point.

    Attributes:
        score: bits of z.
        wave: bits of the dealt sines and cosines.
        coefficient: bits of the public factors.
    """

    score: int = 16
    wave: int = 17
    coefficient: int = 20

    @property
    def result(self) -> int:
        return self.wave + self.coefficient

    def error(self, waves: Waves, coefficients: Floats) -> float:
        """Return a bound of the error in addition to that of the fit: rounded waves and factors, and the angle.

        Args:
            coefficients: one for each wave.
        """
        place_off = 2 * math.pi / waves.period * 2.0**-self.score
        rounded_waves = math.sqrt(2) * 2.0 ** -(self.wave + 1)
        rounded_factors = 2 * 2.0 ** -(self.coefficient + 1) * (1 + 2.0**-self.wave)
        places = np.arange(1, waves.count + 1)
        return float(np.sum(np.abs(coefficients) * (places * place_off + rounded_waves) + rounded_factors))

    def check(self, waves: Waves) -> None:
        """Raise RangeError if a sum would leave the field's middle, or the score's point lies outside a period."""
        largest = (np.abs(waves.log_cosh).sum() + 1) * 2.0 ** (self.result + 1)
        if largest >= 2.0**59 or self.score + math.log2(waves.period) > 59:
            raise RangeError(f"{self.wave} and {self.coefficient} bits of sines and factors do not fit into the field")


def waves_item(name: str, shape: Shape, waves: Waves, scales: WaveScales, *, shift: int) -> Item:
    """Deal sines and cosines of r's angle, (count, *shape); and the parts that divide the same z by 2^shift."""

    def derive(arrays: Arrays) -> Arrays:
        turning = _unit_powers(arrays["r"], waves, scales)
        parts = (("cos", turning.real), ("sin", turning.imag))
        dealt = {name: _at(part, scales.wave) for name, part in parts}
        return {**dealt, **truncation.parts_of(arrays["r"], shift)}

    stacked = (waves.count, *shape)
    return Item(
        f"period {waves.period}, divided by {shift}/{name}",
        random={"r": shape},
        derived={"cos": stacked, "sin": stacked, **truncation.part_shapes(shape)},
        derive=derive,
    )


def sigmoid(
    holder: Holder,
    dealt: dict[str, Share],
    opened: Elements,
    waves: Waves,
    scales: WaveScales,
    *,
    factor: float = 1.0,
    sines: Floats | None = None,
) -> Share:
    """Return factor sigmoid(z) at `scales.result` bits, from c = z' + r.

    Args:
        sines: coefficients of another function in place of the sigmoid; it is 1/2 at 0 and odd about that.
    """
    turning = _unit_powers(opened, waves, scales)
    weighted = turning * _column(factor * (waves.sigmoid if sines is None else sines), opened)
    by_cos, by_sin = _at(weighted.imag, scales.coefficient), _at(-weighted.real, scales.coefficient)
    half = f.elements([round(factor / 2 * 2.0**scales.result)])
    return holder.plus(_weighted_sum(dealt, by_cos, by_sin), half)


def log_cosh(holder: Holder, dealt: dict[str, Share], opened: Elements, waves: Waves, scales: WaveScales) -> Share:
    """Return log(2 cosh(z / 2)) at `scales.result` bits, from the same opened c and the same dealt waves."""
    turning = _unit_powers(opened, waves, scales)
    weighted = turning * _column(waves.log_cosh[1:], opened)
    by_cos, by_sin = _at(weighted.real, scales.coefficient), _at(weighted.imag, scales.coefficient)
    constant = _at(waves.log_cosh[:1], scales.result)
    return holder.plus(_weighted_sum(dealt, by_cos, by_sin), constant)


def _weighted_sum(dealt: dict[str, Share], by_cos: Elements, by_sin: Elements) -> Share:
    return (dealt["cos"].times(by_cos) + dealt["sin"].times(by_sin)).sum_over_first()


def _unit_powers(values: Elements, waves: Waves, scales: WaveScales) -> npt.NDArray[np.complex128]:
    """Return exp(i j t) for the angle t of each value, j = 1..count on the first axis."""
    whole = np.uint64((waves.period << scales.score) - 1)
    angle = (values & whole).astype(np.float64) * (2 * math.pi / (waves.period << scales.score))
    turning = np.empty((waves.count, *values.shape), dtype=np.complex128)
    turning.real[0], turning.imag[0] = np.cos(angle), np.sin(angle)
    for power in range(1, waves.count):  # a product costs a tenth of an exponential, and loses about a bit in 2^52
        np.multiply(turning[power - 1], turning[0], out=turning[power])
    return turning


def _column(coefficients: Floats, opened: Elements) -> Floats:
    return coefficients.reshape(-1, *(1 for _ in opened.shape))


def _at(numbers: Floats, bits: int) -> Elements:
    """Convert numbers to elements, a row at a time, which stays in the processor's cache."""
    if numbers.ndim < 2:
        return f.elements(np.rint(numbers * 2.0**bits).astype(np.int64))
    whole = np.empty(numbers.shape, dtype=np.uint64)
    for row, into in zip(numbers, whole, strict=True):
        into[...] = f.elements(np.rint(row * 2.0**bits).astype(np.int64))
    return whole
