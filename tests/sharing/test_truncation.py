from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.dealing import Dealer, Expander
from blindfit.algorithms.sharing.field import Integers, P
from blindfit.algorithms.sharing.shares import Holder, Share
from blindfit.algorithms.sharing.truncation import MOST, mask, truncate, truncation_item
from tests.sharing.parties import dealt, dealt_to, opened, reconstructed, shared

EXTREMES = [0, 1, -1, MOST - 1, 1 - MOST, 2**16, -(2**16), 2**58, -(2**58) - 1]


def divided(x: Integers, bits: int, dealer: Dealer, parties: list[Expander], name: str = "1") -> Integers:
    item = truncation_item(name, x.shape, bits)
    shares, secrets = dealt(dealer, parties, item), shared(x, dealer, parties)
    c = opened([mask(p.holder, s, t["r"]) for p, s, t in zip(parties, secrets, shares, strict=True)])
    found = [truncate(p.holder, t, c, bits) for p, t in zip(parties, shares, strict=True)]
    return field.integers(reconstructed(found, dealer))


@pytest.mark.parametrize("bits", [1, 16, 37, 59])
@pytest.mark.parametrize("n_parties", [2, 3, 8])
def test_the_error_is_below_one_at_the_ends_too(bits: int, n_parties: int) -> None:
    dealer, parties = dealt_to(n_parties)
    for number in range(40):  # a wrap is as likely as not
        x = np.array(EXTREMES)
        errors = [
            found - exact / 2**bits
            for found, exact in zip(divided(x, bits, dealer, parties, str(number)).tolist(), EXTREMES, strict=True)
        ]
        assert max(map(abs, errors)) <= 1, errors


def test_the_error_reaches_one_and_no_more() -> None:
    """One party holds r = p - 2^bits, and x' = 2^bits: c = 0, and the sum wrapped."""
    bits = 16
    shares = {
        name: Share(field.elements([secret]), None) for name, secret in (("shifted", (P - 2**bits) >> bits), ("top", 1))
    }
    found = truncate(Holder(True, None), shares, field.elements([0]), bits)
    assert field.integers(found.value).tolist() == [(2**bits - MOST) // 2**bits + 1]


def test_the_error_has_mean_zero_and_never_wraps() -> None:
    """The 200,000 errors are uniform on a width of 2 at most: six standard deviations of their mean are 0.008.

    These seeds never pass that."""
    x = np.random.default_rng(4).integers(1 - MOST, MOST, 200_000)
    dealer, parties = dealt_to(2)
    errors = divided(x, 16, dealer, parties) - x / 2**16
    assert np.abs(errors).max() <= 1 + 2**-8  # float64 holds x / 2^16 to a 2^-10
    assert abs(errors.mean()) < 0.008


def test_what_is_opened_is_uniform_whatever_was_divided() -> None:
    """The top 5 bits of 20,000 openings have a chi-square of 31 degrees of freedom, above 110 once in 1e10."""
    for secret in (0, MOST - 1, 1 - MOST):
        dealer, parties = dealt_to(2)
        item = truncation_item("1", (20_000,), 16)
        secrets = shared(np.full(20_000, secret), dealer, parties)
        shares = dealt(dealer, parties, item)
        c = opened([mask(p.holder, s, t["r"]) for p, s, t in zip(parties, secrets, shares, strict=True)])
        counts = np.bincount((c >> np.uint64(56)).astype(np.int64), minlength=32)
        assert ((counts - 625) ** 2 / 625).sum() < 110
        assert int(c.max()) < P
