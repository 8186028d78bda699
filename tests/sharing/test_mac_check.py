from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.dealing import Dealer, Expander, Item
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.mac_check import Opened, adds_up
from blindfit.algorithms.sharing.prg import Seed
from blindfit.algorithms.sharing.shares import Share, join
from tests.sharing.parties import dealt, dealt_to, opened, reconstructed

COEFFICIENTS = Seed(b"drawn by all " + bytes(19))
SECRET = Item("secret", random={"x": (5,), "y": (5,), "matrix": (3, 5)})
PUBLIC = field.elements([7, -1, 0, 2**60, 3])
ONE = field.elements([1])

# What each party computes on its own from x, y and a matrix, and the same of the secrets.
LINEAR: dict[str, tuple[Callable[..., Share], Callable[..., Elements]]] = {
    "sum": (lambda h, x, y, m: x + y, lambda x, y, m: field.add(x, y)),
    "difference": (lambda h, x, y, m: x - y, lambda x, y, m: field.subtract(x, y)),
    "negative": (lambda h, x, y, m: -x, lambda x, y, m: field.negative(x)),
    "public factor": (lambda h, x, y, m: x.times(PUBLIC), lambda x, y, m: field.multiply(x, PUBLIC)),
    "public summand": (lambda h, x, y, m: h.plus(x, ONE), lambda x, y, m: field.add(x, ONE)),
    "public": (lambda h, x, y, m: h.public(PUBLIC), lambda x, y, m: PUBLIC),
    "power of two": (lambda h, x, y, m: x.times_power_of_two(45), lambda x, y, m: field.times_power_of_two(x, 45)),
    "matrix by public": (lambda h, x, y, m: m.times_vector(PUBLIC), lambda x, y, m: field.times(m, PUBLIC)),
    "public by vector": (lambda h, x, y, m: x.under(PUBLIC[None, :]), lambda x, y, m: field.times(PUBLIC[None, :], x)),
    "total": (lambda h, x, y, m: x.total(), lambda x, y, m: field.sum_over_first(x[:, None])),
    "part": (lambda h, x, y, m: x[1:3], lambda x, y, m: x[1:3]),
    "joined": (lambda h, x, y, m: join([x, y]), lambda x, y, m: np.concatenate([x, y])),
    "reshaped": (lambda h, x, y, m: m.reshape(15), lambda x, y, m: m.reshape(15)),
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("macs", [True, False])
def test_what_is_linear_keeps_its_macs(name: str, macs: bool) -> None:
    dealer, parties = dealt_to(3, macs=macs)
    in_shares, plain = LINEAR[name]
    computed = [
        in_shares(party.holder, share["x"], share["y"], share["matrix"])
        for party, share in zip(parties, dealt(dealer, parties, SECRET), strict=True)
    ]
    arrays = dealer.deal(SECRET)[0]
    assert np.array_equal(reconstructed(computed, dealer), plain(arrays["x"], arrays["y"], arrays["matrix"]))


# --- the check ------------------------------------------------------------------------------------------------------


def opened_by(parties: list[Expander], shares: list[Share], value: Elements) -> list[Opened]:
    seen = [Opened() for _ in parties]
    for party, share in zip(seen, shares, strict=True):
        party.add(value, share)
    return seen


def residues(parties: list[Expander], seen: list[Opened]) -> list[Elements]:
    return [one.residue(COEFFICIENTS, party.holder) for party, one in zip(parties, seen, strict=True)]


@pytest.fixture(params=[2, 3, 8])
def dealing(request: pytest.FixtureRequest) -> tuple[Dealer, list[Expander]]:
    return dealt_to(request.param)


def test_what_was_opened_rightly_passes(dealing: tuple[Dealer, list[Expander]]) -> None:
    dealer, parties = dealing
    shares = [share["x"] for share in dealt(dealer, parties, SECRET)]
    seen = opened_by(parties, shares, opened(shares))
    for one, share in zip(seen, shares, strict=True):
        one.add(opened(shares)[:2], share[:2])
    assert [len(one) for one in seen] == [7] * len(parties)
    assert len({one.digest() for one in seen}) == 1
    assert adds_up(residues(parties, seen))
    seen[0].forget()
    assert len(seen[0]) == 0


def test_a_changed_value_mac_or_key_does_not(dealing: tuple[Dealer, list[Expander]]) -> None:
    dealer, parties = dealing
    shares = [share["x"] for share in dealt(dealer, parties, SECRET)]
    value = opened(shares)
    for place in range(5):
        wrong = value.copy()
        wrong[place] = field.add(wrong[place : place + 1], ONE)[0]
        seen = opened_by(parties, shares, wrong)
        assert not adds_up(residues(parties, seen))
        assert seen[0].digest() != opened_by(parties, shares, value)[0].digest()
    assert shares[0].mac is not None
    changed = Share(shares[0].value, field.add(shares[0].mac, ONE))
    assert not adds_up(residues(parties, opened_by(parties, [changed, *shares[1:]], value)))
    right = residues(parties, opened_by(parties, shares, value))
    assert not adds_up([field.add(right[0], ONE), *right[1:]])


def test_two_changes_cancel_for_one_choice_of_coefficients_alone() -> None:
    """An attacker who knew the coefficients could change two values unseen."""
    dealer, parties = dealt_to(2)
    shares = [share["x"] for share in dealt(dealer, parties, SECRET)]
    x = COEFFICIENTS.elements("coefficients/0", (5,))
    wrong = opened(shares)
    wrong[:2] = field.add(wrong[:2], np.array([x[1], field.negative(x[:1])[0]], dtype=np.uint64))
    seen = opened_by(parties, shares, wrong)
    assert adds_up(residues(parties, seen))
    others = [one.residue(Seed(bytes(32)), party.holder) for party, one in zip(parties, seen, strict=True)]
    assert not adds_up(others)


def test_without_macs_there_is_nothing_to_check() -> None:
    dealer, parties = dealt_to(2, macs=False)
    shares = [share["x"] for share in dealt(dealer, parties, SECRET)]
    with pytest.raises(LocalProtocolError, match="a checked share must have MACs"):
        Opened().add(opened(shares), shares[0])
    with pytest.raises(LocalProtocolError, match="share of the MAC key"):
        Opened().residue(COEFFICIENTS, parties[0].holder)
