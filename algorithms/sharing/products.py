"""Products of secret arrays, each with one opening (Beaver 1991): of two arrays, and of a matrix that stays.

    elementwise   dealt a, b, c = a b.     d = x - a and e = y - b are opened;    x y = c + d b + e a + d e
    forward       dealt V and U V.         F = w - V is opened;                   X w = E w + U F + U V
    backward      dealt V' and U^T V'.     G = e - V' is opened;                  X^T e = E^T e + U^T G + U^T V'.

X is a matrix of which E = X - U was opened once, under a mask U that no other matrix ever has. So a step opens only as
many numbers as a vector has, and never as many as the matrix has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing.dealing import Arrays, Item, Shape
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.shares import Holder, Share

# --- elementwise --------------------------------------------------------------------------------------------------


def product_item(name: str, shape: Shape) -> Item:
    def derive(arrays: Arrays) -> Arrays:
        return {"c": f.multiply(arrays["a"], arrays["b"])}

    return Item(f"product/{name}", random={"a": shape, "b": shape}, derived={"c": shape}, derive=derive)


def mask_factors(x: Share, y: Share, dealt: dict[str, Share]) -> tuple[Share, Share]:
    """Return d and e, ready to be opened."""
    return x - dealt["a"], y - dealt["b"]


def product(holder: Holder, dealt: dict[str, Share], d: Elements, e: Elements) -> Share:
    """Return x y, from the opened numbers."""
    return holder.plus(dealt["c"] + dealt["b"].times(d) + dealt["a"].times(e), f.multiply(d, e))


# --- a matrix that stays --------------------------------------------------------------------------------------------


class SecretMatrix(Protocol):
    """A matrix X that was put in once: a party's side of it, or the dealer's."""

    def __len__(self) -> int: ...

    def rows(self, which: slice | f.Integers) -> SecretMatrix: ...

    def columns(self, which: slice) -> SecretMatrix: ...

    def dealer_mask(self) -> Elements:
        """Return U, for the dealer's items."""
        ...

    def times(self, w: Share, dealt: dict[str, Share], masked: Elements, /) -> Share: ...


@dataclass(frozen=True, repr=False)
class MaskedMatrix:
    """One party's side of a secret matrix X.

    Attributes:
        opened: E = X - U, the same at all parties.
        mask: the share of U.
    """

    opened: Elements
    mask: Share

    def __len__(self) -> int:
        return len(self.opened)

    def dealer_mask(self) -> Elements:
        raise LocalProtocolError("only the dealer derives what it deals")

    def rows(self, which: slice | f.Integers) -> MaskedMatrix:
        return MaskedMatrix(f.contiguous(self.opened[which]), self.mask[which])

    def columns(self, which: slice) -> MaskedMatrix:
        return MaskedMatrix(f.contiguous(self.opened[:, which]), self.mask.columns(which))

    def times(self, w: Share, dealt: dict[str, Share], masked: Elements) -> Share:
        """Return X w.

        Args:
            dealt: shares of `forward_item`.
            masked: F = w - V, opened.
        """
        return w.under(self.opened) + self.mask.times_vector(masked) + dealt["uv"]

    def transposed_times(self, e: Share, dealt: dict[str, Share], masked: Elements) -> Share:
        """Return X^T e; `dealt` are shares of `backward_item`, and `masked` is G = e - V'."""
        return e.under_transposed(self.opened) + self.mask.transposed_times_vector(masked) + dealt["uv"]


@dataclass(frozen=True, repr=False)
class DealerMatrix:
    """The dealer's side of a secret matrix X, of which it knows only the mask; its shares are zeros."""

    mask: Elements

    def __len__(self) -> int:
        return len(self.mask)

    def dealer_mask(self) -> Elements:
        return self.mask

    def rows(self, which: slice | f.Integers) -> DealerMatrix:
        return DealerMatrix(self.mask[which])

    def columns(self, which: slice) -> DealerMatrix:
        return DealerMatrix(f.contiguous(self.mask[:, which]))

    def times(self, _w: Share, _dealt: dict[str, Share], _masked: Elements, /) -> Share:
        return Share(np.zeros(len(self.mask), dtype=np.uint64), None)


def mask_item(name: str, owner: int, shape: Shape) -> Item:
    """Return the item for a party's input: the party knows the mask, and the others receive its input less the mask.

    Args:
        owner: place of that party.
    """
    return Item(f"mask/{name}", known={"u": (owner, shape)})


Mask = Callable[[], Elements]  # only the dealer calls it: the rows of U in the step


def forward_item(name: str, mask: Mask, rows: int, columns: int) -> Item:
    def derive(arrays: Arrays) -> Arrays:
        return {"uv": f.times(mask(), arrays["v"])}

    return Item(f"forward/{name}", random={"v": (columns,)}, derived={"uv": (rows,)}, derive=derive)


def backward_item(name: str, mask: Mask, rows: int, columns: int) -> Item:
    def derive(arrays: Arrays) -> Arrays:
        return {"uv": f.transposed_times(mask(), arrays["v"])}

    return Item(f"backward/{name}", random={"v": (rows,)}, derived={"uv": (columns,)}, derive=derive)
