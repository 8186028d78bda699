"""Labels from one server's share of a sum of rows in shares, for an attacker who knows all masks that were dealt.

a_k = R_k^T e + D^T s_k + (R^T s)_k [+ D^T e at the first server] + noise, e = y - s

The key node knows R, s and each server's shares of them, the active party knows D: the rest is A^T y + noise modulo
p, with A uniform. That is a knapsack in as many unknown bits as there are labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from fpylll import BKZ, LLL, IntegerMatrix

from blindfit.algorithms.protocols.walr.dealt_masks import labels_item
from blindfit.algorithms.protocols.walr.shared_rows import SharedRows
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import short_rows
from blindfit.algorithms.sharing.dealing import Dealer, Expander
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.prg import Seed
from tests.attacks.lattices import Floats

BLOCKS = (10, 20, 20)


def knapsack(shared: SharedRows, seeds: Sequence[Seed], place: int, answer: Elements) -> tuple[Elements, Elements]:
    """Return A, (rows, columns), and A^T y + noise, of the answer of one server without a share of zero.

    Args:
        shared: the active party's rows and its seed.
        seeds: seeds that the key node sent to the servers, in their order.
    """
    plan = shared.plan
    columns, left, parts = slice(0, plan.n_columns), answer, []
    for block, rows in enumerate(plan.blocks):
        masks = short_rows.row_masks(plan, block, shared.seed)
        d = f.contiguous(f.subtract(f.elements(shared.fill(rows)), masks)[:, columns])
        checked, item = Dealer(seeds), short_rows.rows_item(plan, block, shared.seed)
        own = Expander(seeds[place], place).shares(item, None if place else checked.deal(item)[1])
        plain, labels = Dealer(seeds, macs=False), labels_item(plan, block, shared.seed)
        arrays, correction = plain.deal(labels)
        dealt = Expander(seeds[place], place, False).shares(labels, None if place else correction)
        a = own["mask"].columns(columns).value
        a = a if place else f.add(a, d)
        left = f.subtract(left, f.add(f.transposed_times(d, dealt["mask"].value), dealt["product"].value))
        left = f.add(left, f.transposed_times(f.contiguous(a), arrays["mask"]))
        parts.append(a)
    return np.concatenate(parts), left


def labels_of(a: Elements, values: Elements, noise_std: float) -> Floats:
    """Return guesses at y, (rows,), from A^T y + noise modulo p; exact ones where the columns have enough bits.

    rows (2 S e_i, 0 | 2 a_i), (0, 0 | 2 p e_j), (-S .. -S, S | -2 values)      S as large as the noise
    """
    n, m = a.shape
    scale = max(1, int(noise_std))
    rows = [[0] * (n + 1 + m) for _ in range(n + m + 1)]
    for i in range(n):
        rows[i][i] = 2 * scale
        rows[i][n + 1 :] = [2 * int(x) for x in a[i]]
    for j in range(m):
        rows[n + j][n + 1 + j] = 2 * f.P
    rows[n + m] = [-scale] * n + [scale] + [-2 * int(x) for x in values]
    basis = IntegerMatrix.from_matrix(rows)
    LLL.reduction(basis)
    guess = np.zeros(n)
    for block in BLOCKS:
        found = [[basis[i, j] // scale for j in range(n + 1)] for i in range(basis.nrows)]
        of_values = [row for row in found if abs(row[n]) == 1]
        whole = [row for row in of_values if all(abs(x) == 1 for x in row)]
        for row in (whole or of_values)[:1]:
            guess = np.array([x * row[n] > 0 for x in row[:n]], float)
        if whole:
            break
        BKZ.reduction(basis, BKZ.Param(block, flags=BKZ.AUTO_ABORT))
    return guess
