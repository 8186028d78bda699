"""A proof that secret rows of integers are short: each has a Euclidean norm of at most R. The party that put them in
proves it.

Only squares would prove nothing: modulo p, rows of huge numbers have small sums of squares. So the prover shows two
facts.

1. No number is huge. Nobody knew the signs u in {-1, 0, 1} (chances 1/4, 1/2, 1/4) when the rows were put in. If a
   number passes 2 b, the chance of |u.w mod p| <= b is at most 1/2. Let c be that number and s the rest of the sum:
   either s is small, and then s + c and s - c are not, or s is not. There are 64 such sums, each shown by its bits to
   lie in [-b, b). So no number passes 2 b, except with a chance of 2^-64.
2. The squares of a row and of six more numbers add up to R^2, modulo p. They then also do so as integers, because no
   number passes 2 b and (columns + 6) (2 b)^2 + R^2 < p.

All of it is linear in a dealer's arrays: masks that the prover knows, and their squares, as the square of a masked
number d + r is d^2 + 2 d r + r^2 with d public. One opened number shows whether everything holds.

An honest prover's u.w stays below b: it has |w| = R root(rows) exactly, so by Hoeffding's bound |u.w| > t |w| has a
chance of at most 2 e^(-t^2), which is 5e-16 at t = 6. For that bound, rows go in blocks.

Source: ours; random signs as in Gentry, Halevi, Lyubashevsky 2022, "Practical non-interactive publicly verifiable
secret sharing", and in the "approximate range proofs" of lattice cryptography before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.fixed_point import MAX_NORM_BOUND, IntegerRows
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.dealing import Arrays, Item
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.shares import Holder, Share

SQUARES = 6  # numbers whose squares fill a row's up to R^2
PROJECTIONS = 64
TAIL = 6.0  # t
MOST_BLOCK_NUMBERS = 2**17  # the signs of a block take 64 MiB
LEAST_BLOCK_ROWS = 32  # if numbers are many grid steps
MOST_NUMBERS = 2**27  # of all rows: 2 GiB of shares at a party
_LIMB_BITS, _LIMBS = 21, 3

Signs = npt.NDArray[np.float64]  # (PROJECTIONS, numbers of a block), of -1, 0 and 1


@dataclass(frozen=True)
class Plan:
    """Dimensions of a proof: public, and the same for all.

    Attributes:
        bits: log2 of b.
        block_rows: number of rows that are projected together.
    """

    n_rows: int
    n_columns: int
    norm_bound: int

    def __post_init__(self) -> None:
        if self.n_rows * self.width > MOST_NUMBERS:
            raise RangeError(
                f"{self.n_rows} rows of {self.width} numbers are more than the {MOST_NUMBERS} that fit in shares",
                hint='use fewer rows or columns, or a trust other than "shared-rows" in [walr] or [evaluate]',
            )
        if _rows_that_fit(self.width, self.norm_bound) < LEAST_BLOCK_ROWS:
            raise RangeError(
                f"rows of norm {self.norm_bound} in {self.n_columns} columns are too long to be proved short",
                hint="lower frac_bits in [walr] or [evaluate]"
                + (
                    "; or use fewer columns" if _rows_that_fit(1 + SQUARES, self.norm_bound) >= LEAST_BLOCK_ROWS else ""
                ),
            )

    @property
    def width(self) -> int:
        return self.n_columns + SQUARES

    @property
    def bits(self) -> int:
        return _bits(self.width, self.norm_bound)

    @property
    def block_rows(self) -> int:
        return min(max(1, MOST_BLOCK_NUMBERS // self.width), _rows_that_fit(self.width, self.norm_bound))

    @cached_property
    def blocks(self) -> list[slice]:
        return [
            slice(start, min(start + self.block_rows, self.n_rows)) for start in range(0, self.n_rows, self.block_rows)
        ]


def _bits(width: int, norm_bound: int) -> int:
    room = (f.P - norm_bound**2 - 1) // width
    return math.isqrt(room).bit_length() - 2  # (2 b)^2 <= room


def _rows_that_fit(width: int, norm_bound: int) -> int:
    return int((math.ldexp(1.0, _bits(width, norm_bound)) / (TAIL * norm_bound)) ** 2)


def longest_to_prove(n_columns: int) -> int:
    """Return a norm bound of rows that can be proved short, within an eighth of the largest."""
    bound = MAX_NORM_BOUND
    while _rows_that_fit(n_columns + SQUARES, bound) < LEAST_BLOCK_ROWS:
        bound -= bound // 8
    return bound


# --- dealt items ------------------------------------------------------------------------------------------------


def rows_item(plan: Plan, block: int, prover: Seed | None) -> Item:
    """Return the item of a block's rows: a mask of its numbers, and the sum of the masks' squares for each row.

    Args:
        prover: seed of the prover, who knows the masks; None at a party that only has shares.
    """
    rows = plan.blocks[block]
    shape = (rows.stop - rows.start, plan.width)

    def derive(_: Arrays) -> Arrays:
        masks = row_masks(plan, block, prover)
        squares = f.multiply(masks, masks)
        return {"mask": masks, "square": f.sum_over_first(f.contiguous(squares.T))}

    return Item(f"rows/{block}", derived={"mask": shape, "square": shape[:1]}, derive=derive)


def bits_item(plan: Plan, block: int, prover: Seed | None) -> Item:
    """Return the item of a block's projections: a mask of their bits, and the masks' squares."""
    shape = (PROJECTIONS, plan.bits + 1)

    def derive(_: Arrays) -> Arrays:
        masks = bit_masks(plan, block, prover)
        return {"mask": masks, "square": f.multiply(masks, masks)}

    return Item(f"bits/{block}", derived={"mask": shape, "square": shape}, derive=derive)


def row_masks(plan: Plan, block: int, prover: Seed | None) -> Elements:
    rows = plan.blocks[block]
    return _of(prover).elements(f"rows/{block}", (rows.stop - rows.start, plan.width))


def bit_masks(plan: Plan, block: int, prover: Seed | None) -> Elements:
    return _of(prover).elements(f"bits/{block}", (PROJECTIONS, plan.bits + 1))


def _of(prover: Seed | None) -> Seed:
    if prover is None:
        raise RangeError("a party that has shares derives nothing")
    return prover


# --- the prover -----------------------------------------------------------------------------------------------------


def fill_rows(rows: IntegerRows, plan: Plan) -> npt.NDArray[np.int64]:
    """Append to each row six numbers whose squares fill its own up to R^2.

    Raises:
        RangeError: a row is longer than R.
    """
    wide = rows.astype(np.int64)
    missing = plan.norm_bound**2 - (wide**2).sum(axis=1)
    if missing.size and missing.min() < 0:
        raise RangeError("a row is longer than the norm bound")
    return np.concatenate([wide, squares_of(missing)], axis=1)


def squares_of(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return (n, 6) numbers whose squares add up to these (below 2^51): two greedily, four by a table (Lagrange)."""
    first = _roots(numbers)
    rest = numbers - first**2
    second = _roots(rest)
    return np.column_stack([first, second, _four_squares()[rest - second**2]])


def _roots(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return roots, rounded down; below 2^52 a float64's root is off by one at most."""
    roots = np.sqrt(numbers.astype(np.float64)).astype(np.int64)
    roots -= roots**2 > numbers
    return roots + ((roots + 1) ** 2 <= numbers)


@cache
def _four_squares() -> npt.NDArray[np.int64]:
    """Return four squares for every number up to 2^14 + 1; two greedy squares leave less of a number below 2^52."""
    most = 2**14 + 2
    side = np.arange(math.isqrt(most) + 1)
    first, second = (grid.ravel() for grid in np.meshgrid(side, side))
    sums = first**2 + second**2
    two = np.full((most, 2), -1, np.int64)
    two[sums[sums < most]] = np.column_stack([first, second])[sums < most]
    four = np.full((most, 4), -1, np.int64)
    missing = np.arange(most)
    for low in np.flatnonzero(two[:, 0] >= 0):
        rest = missing - low
        found = (rest >= 0) & (two[rest, 0] >= 0)
        four[missing[found]] = np.column_stack([np.broadcast_to(two[low], (int(found.sum()), 2)), two[rest[found]]])
        missing = missing[~found]
        if not missing.size:
            break
    return four


def project(signs: Signs, numbers: npt.NDArray[np.int64], plan: Plan) -> npt.NDArray[np.int64]:
    """Return u.w of a block, exactly: it stays below 2^53.

    Raises:
        RangeError: a projection passes b, which happens to an honest prover once in 10^12 blocks.
    """
    values = (signs @ numbers.reshape(-1).astype(np.float64)).astype(np.int64)
    if np.abs(values).max() >= 1 << plan.bits:
        raise RangeError("a random sum of the rows came out too large: run the job again")
    return values


def bits_of(projections: npt.NDArray[np.int64], plan: Plan) -> npt.NDArray[np.int64]:
    """Return the bits of u.w + b, (PROJECTIONS, bits + 1), the lowest first."""
    shifted = projections + (1 << plan.bits)
    return (shifted[:, None] >> np.arange(plan.bits + 1)) & 1


# --- all ------------------------------------------------------------------------------------------------------------


def signs_of(seed: Seed, plan: Plan, block: int) -> Signs:
    """Draw the signs from a seed that nobody knew when the rows were put in."""
    rows = plan.blocks[block]
    count = PROJECTIONS * (rows.stop - rows.start) * plan.width
    octets = seed.elements(f"signs/{block}", (-(-count // 28),)).astype("<u8").view(np.uint8).reshape(-1, 8)
    coins = np.unpackbits(octets[:, :7], axis=1).reshape(-1)[: 2 * count].reshape(2, count)  # 56 of 61 bits
    return np.asarray(coins[0].astype(np.float64) - coins[1]).reshape(PROJECTIONS, -1)


# --- parties with shares ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Verifier:
    """One party's side of the check; its results are linear in its shares.

    Attributes:
        holder: this party.
    """

    plan: Plan
    holder: Holder

    def projections(self, signs: Signs, masked: Elements, masks: Share) -> Share:
        """Return u.w of a block, (PROJECTIONS,).

        Args:
            masked: the block's numbers less their masks, (rows, width): public.
            masks: shares of the masks.
        """
        whole = self.holder.plus(masks, masked)
        return whole._each(lambda part: _project(signs, part))

    def of_rows(self, coefficients: Elements, masked: Elements, masks: Share, squares: Share) -> Share:
        """Return zero, (1,), if the squares of every row add up to R^2.

        Args:
            coefficients: one for each row; nobody knew them before.
            squares: the sum of the masks' squares, for each row.
        """
        scaled = f.multiply(masked, coefficients[:, None])
        own = f.sum_over_first(f.multiply(scaled, masked).reshape(-1, 1))
        wanted = f.multiply(f.sum_over_first(coefficients.reshape(-1, 1)), f.elements([self.plan.norm_bound**2]))
        crossed = masks.times(scaled).total()
        total = crossed + crossed + squares.times(coefficients).total()
        return self.holder.plus(-total, f.subtract(wanted, own))

    def of_bits(
        self, coefficients: Seed, name: str, projections: Share, masked: Elements, given: dict[str, Share]
    ) -> Share:
        """Return zero, (1,), if the bits are 0 or 1, and are those of the projections.

        Args:
            masked: the bits less their masks: public.
            given: shares of masks and of their squares.
        """
        bits = self.holder.plus(given["mask"], masked)
        twice = given["mask"].times(masked)
        squares = self.holder.plus(twice + twice + given["square"], f.multiply(masked, masked))
        are_bits = (squares - bits).times(coefficients.elements(f"{name}/bits", masked.shape)).total()
        powers = f.elements(1 << np.arange(self.plan.bits + 1, dtype=np.int64))
        written = self.holder.plus(-bits.times_vector(powers), f.elements([1 << self.plan.bits]))
        difference = (projections + written).times(coefficients.elements(f"{name}/sums", (PROJECTIONS,)))
        return are_bits + difference.total()


def _project(signs: Signs, values: Elements) -> Elements:
    """Project modulo p, by exact products of floats: numbers in limbs of 21 bits, fewer than 2^32 of them."""
    flat = values.reshape(-1)
    mask = np.uint64(2**_LIMB_BITS - 1)
    limbs = np.stack([(flat >> np.uint64(_LIMB_BITS * at)) & mask for at in range(_LIMBS)], axis=1)
    sums = (signs @ limbs.astype(np.float64)).astype(np.int64)
    parts = [f.times_power_of_two(f.elements(sums[:, at].copy()), _LIMB_BITS * at) for at in range(_LIMBS)]
    return f.total(parts)
