"""Each product equals that of the secrets; opened numbers are uniform for any secrets."""

from __future__ import annotations

import numpy as np
import pytest

from blindfit.algorithms.sharing import field, products
from blindfit.algorithms.sharing.dealing import Item
from blindfit.algorithms.sharing.field import Elements, P
from blindfit.algorithms.sharing.products import MaskedMatrix
from tests.sharing.parties import dealt, dealt_to, opened, reconstructed

ROWS, COLUMNS = 6, 4
SECRETS = Item("secrets", random={"x": (ROWS,), "y": (ROWS,), "X": (ROWS, COLUMNS), "w": (COLUMNS,)})
SIZES = pytest.mark.parametrize("n_parties", [2, 3, 8])


@SIZES
@pytest.mark.parametrize("macs", [True, False])
def test_a_product_of_arrays(n_parties: int, macs: bool) -> None:
    dealer, parties = dealt_to(n_parties, macs=macs)
    secrets, triples = dealt(dealer, parties, SECRETS), dealt(dealer, parties, products.product_item("1", (ROWS,)))
    masked = [products.mask_factors(s["x"], s["y"], t) for s, t in zip(secrets, triples, strict=True)]
    d, e = (opened([one[place] for one in masked]) for place in range(2))
    found = [products.product(p.holder, t, d, e) for p, t in zip(parties, triples, strict=True)]
    x, y = (dealer.deal(SECRETS)[0][name].tolist() for name in "xy")
    assert reconstructed(found, dealer).tolist() == [a * b % P for a, b in zip(x, y, strict=True)]


@SIZES
def test_products_with_a_matrix_that_stays(n_parties: int) -> None:
    dealer, parties = dealt_to(n_parties)
    arrays, secrets = dealer.deal(SECRETS)[0], dealt(dealer, parties, SECRETS)
    mask = products.mask_item("X", 0, (ROWS, COLUMNS))
    masks = [shares["u"] for shares in dealt(dealer, parties, mask)]
    difference = opened([s["X"] - u for s, u in zip(secrets, masks, strict=True)])
    whole = [MaskedMatrix(difference, u) for u in masks]

    batch = np.array([4, 0, 5])
    matrices = [matrix.rows(batch) for matrix in whole]

    def u() -> Elements:
        return field.contiguous(dealer.deal(mask)[0]["u"][batch])

    forward = dealt(dealer, parties, products.forward_item("1", u, 3, COLUMNS))
    f_opened = opened([s["w"] - one["v"] for s, one in zip(secrets, forward, strict=True)])
    scores = [m.times(s["w"], one, f_opened) for m, s, one in zip(matrices, secrets, forward, strict=True)]
    rows = field.contiguous(arrays["X"][batch])
    assert np.array_equal(reconstructed(scores, dealer), field.times(rows, arrays["w"]))

    backward = dealt(dealer, parties, products.backward_item("1", u, 3, COLUMNS))
    residuals = [s["x"][:3] for s in secrets]
    g_opened = opened([e - one["v"] for e, one in zip(residuals, backward, strict=True)])
    gradients = [m.transposed_times(e, one, g_opened) for m, e, one in zip(matrices, residuals, backward, strict=True)]
    assert np.array_equal(reconstructed(gradients, dealer), field.transposed_times(rows, arrays["x"][:3]))


def test_openings_are_of_the_vectors_length() -> None:
    assert products.forward_item("1", lambda: field.elements([]), 4096, 100).random == {"v": (100,)}
    assert products.backward_item("1", lambda: field.elements([]), 4096, 100).random == {"v": (4096,)}
