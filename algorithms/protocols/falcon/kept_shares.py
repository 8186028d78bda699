"""A vector in shares that outlives its session: what each party keeps, and how another session takes it up.

The later session has its own seeds and MAC key, so it uses nothing of the earlier session's, and the dealer need keep
nothing. Each party puts in what it kept: its shares w_i, their MACs m_i, and its share a_i of the old key. In shares,
with w, m, a their sums and coefficients x that nobody knew before,

    sum_j x_j m_j - a sum_j x_j w_j

times a dealt random number is opened. It is 0, or a party put in another number than it kept, and the session ends. A
change of w passes only with a guess of a. A change of a (which, with m changed to match, would compare w with a guess)
passes only with a guess of the number behind w that nobody knows: 2 in p. So a failed session reveals nothing, and the
kept shares are as good as before.

Without MACs the parties are believed to put in the shares that they kept.

Source: ours; the check is that of SPDZ (sharing/mac_check.py), under a key that is itself in shares.
"""

from __future__ import annotations

from blindfit.algorithms.errors import SharesDoNotFit
from blindfit.algorithms.protocols.falcon.seats import Seat
from blindfit.algorithms.sharing.computing import multiply
from blindfit.algorithms.sharing.dealing import Item
from blindfit.algorithms.sharing.kept import KeptShares, flat_length, length_of_kept_share
from blindfit.algorithms.sharing.shares import Share, join


async def keep(seat: Seat, vector: Share, *, macs: bool) -> KeptShares:
    """Keep a vector. It is opened once, under a mask, so that the check that must follow covers its MACs."""
    if not macs:
        return KeptShares(vector, None)
    whole = join([vector, await _random(seat, "nobody knows", 1)])
    await seat.open_(whole + await _random(seat, "kept", len(whole)))
    return KeptShares(whole, seat.holder.mac_key_share)


async def take_up(seat: Seat, parties: int, columns: int, mine: KeptShares | None, *, macs: bool) -> Share:
    """Return the vector under this session's MAC key.

    Args:
        columns: length of the vector.
        mine: the shares that this party kept; None at the dealer.

    Raises:
        SharesDoNotFit: the parties did not put in the shares of one vector that they kept.
    """
    shape = (flat_length(columns, macs=macs),)
    own = None if mine is None else mine.flat
    total = await seat.put_in("kept shares", 0, shape, own)
    for place in range(1, parties):
        total = total + await seat.put_in("kept shares", place, shape, own)
    if macs:
        await _check(seat, total, length_of_kept_share(columns, macs=macs))
    return total[:columns]


async def _check(seat: Seat, total: Share, length: int) -> None:
    await seat.check()  # nobody knew its coefficients when the shares were put in
    coefficients = seat.coefficients.elements("kept shares", (length,))
    values = total[:length].times(coefficients).total()
    macs = total[length : 2 * length].times(coefficients).total()
    wrong = macs - await multiply(seat, "kept shares/key", total[2 * length :], values)
    told = await seat.reveal(await multiply(seat, "kept shares/hidden", wrong, await _random(seat, "hidden", 1)))
    if told.any():
        raise SharesDoNotFit


async def _random(seat: Seat, name: str, length: int) -> Share:
    """Take random numbers that nobody knows."""
    return (await seat.take_dealt(Item(f"random/{name}", random={"u": (length,)})))["u"]
