"""Dealt shares add up, with their MACs; all parties except the first need only their seed."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.dealing import Arrays, Dealer, Expander, Item
from blindfit.algorithms.sharing.field import P
from blindfit.algorithms.sharing.prg import Seed
from tests.sharing.parties import dealt, dealt_to, reconstructed

PARTIES = pytest.mark.parametrize("n_parties", range(2, 9))
MACS = pytest.mark.parametrize("macs", [True, False])


def square(arrays: Arrays) -> Arrays:
    return {"squared": field.multiply(arrays["a"], arrays["a"]), "sum": field.add(arrays["a"], arrays["mine"])}


ITEM = Item(
    "test/1",
    random={"a": (2, 3)},
    known={"mine": (1, (2, 3))},
    derived={"sum": (2, 3), "squared": (2, 3)},  # in another order than `square` gives them
    derive=square,
)


@PARTIES
@MACS
def test_all_arrays_and_their_macs_add_up(n_parties: int, macs: bool) -> None:
    dealer, parties = dealt_to(n_parties, macs=macs)
    arrays, shares = dealer.deal(ITEM)[0], dealt(dealer, parties, ITEM)
    for name, array in arrays.items():
        assert np.array_equal(reconstructed([share[name] for share in shares], dealer), array)
    assert np.array_equal(arrays["squared"], field.multiply(arrays["a"], arrays["a"]))
    assert np.array_equal(arrays["mine"], parties[1].derive_known(ITEM, "mine"))
    with pytest.raises(LocalProtocolError, match="another party knows mine"):
        parties[0].derive_known(ITEM, "mine")


@MACS
def test_a_correction_is_as_long_as_it_says(macs: bool) -> None:
    dealer, parties = dealt_to(3, macs=macs)
    correction = dealer.deal(ITEM)[1]
    assert len(correction) == ITEM.correction_length(macs=macs) == 18 + 24 * macs
    for wrong in (None, correction[:-1], np.append(correction, correction[:1])):
        with pytest.raises(LocalProtocolError, match="the correction has the wrong length"):
            parties[0].shares(ITEM, wrong)


def test_the_mac_key_is_nobodys() -> None:
    dealer, parties = dealt_to(3)
    keys = [party.holder.mac_key_share for party in parties]
    assert all(key is not None for key in keys)
    assert sum(int(key[0]) for key in keys if key is not None) % P == int(dealer.mac_key[0])
    assert len({int(key[0]) for key in keys if key is not None} | {int(dealer.mac_key[0])}) == 4


def test_an_items_name_decides_what_is_dealt() -> None:
    dealer, _ = dealt_to(2)
    again, other = dealer.deal(ITEM)[0], dealer.deal(Item("test/2", random=ITEM.random))[0]
    assert np.array_equal(again["a"], dealer.deal(ITEM)[0]["a"])
    assert not np.array_equal(again["a"], other["a"])


def test_what_is_derived_is_as_announced() -> None:
    dealer, _ = dealt_to(2)
    with pytest.raises(LocalProtocolError, match="other arrays are derived"):
        dealer.deal(Item("test/3", derived={"b": (2,)}, derive=lambda arrays: {"b": field.elements([1])}))[1]


def test_no_secret_shows_in_a_text() -> None:
    seed = Seed(bytes(range(32)))
    for secret in (seed, Dealer([seed]), Expander(seed, 0)):
        assert "\\x01\\x02" not in repr(secret)
        assert "x1f" not in repr(secret)


# --- the generator -----------------------------------------------------------------------------------------------


def test_elements_are_uniform() -> None:
    """The top 6 bits of 2^16 elements have a chi-square of 63 degrees of freedom: above 170 once in 1e9, never for this
    seed.
    """
    drawn = Seed(bytes(32)).elements("test", (2**16,))
    assert int(drawn.max()) < P
    counts = np.bincount((drawn >> np.uint64(55)).astype(np.int64), minlength=64)
    assert ((counts - 1024) ** 2 / 1024).sum() < 170


def test_streams_do_not_meet() -> None:
    seed = Seed(bytes(32))
    assert not set(seed.elements("a", (1000,)).tolist()) & set(seed.elements("b", (1000,)).tolist())
    assert seed.elements("a", (10,)).tolist() == seed.elements("a", (1000,))[:10].tolist()


def test_the_one_number_that_is_no_element_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    octets = {"a": [2**64 - 1, 3 << 3, 2**64 - 8], "a, again": [5 << 3, 2**64 - 1], "a, again, again": [7 << 3]}
    monkeypatch.setattr(
        Seed, "_octets", lambda _self, name, _count: bytearray(np.array(octets[name], dtype="<u8").tobytes())
    )
    assert Seed(b"").elements("a", (3,)).tolist() == [5, 3, 7]
