"""Draw the jitter of labels: once for a person and a label, in the label's own units.

Gradients reveal a label only with its jitter. So the draw depends on the person, the label as it was published, and the
size. It does not depend on the other training rows, nor on the scale that a training gives to labels. The size is a
multiple of a unit: 1 for a yes/no label, and for numbers a unit that is fixed when the first training needs it. The
unit stays in the party's database and is never sent.
"""

from __future__ import annotations

import numpy as np
import structlog
from numpy.typing import NDArray

from blindfit.algorithms.statistics.vertical.loss import Model
from blindfit.parties.account.account import Account
from blindfit.parties.files.secret import PartySecret
from blindfit.parties.snapshots.people import Digests, PeopleKey
from blindfit.parties.store.database import Store

log = structlog.get_logger(__name__)

Floats = NDArray[np.float64]

MOST_SPREAD = 1.5  # largest deviation of a new snapshot's labels, in units, without a warning to the operator


def draw_jitter(
    secret: PartySecret, account: Account, model: Model, size: float, people: Digests, labels: Floats
) -> Floats:
    """Return the jitter of each row, float64 (n,), in the label's own units.

    Args:
        size: standard deviation of the jitter, in the same units. Another size has other draws: one draw in two sizes
            would reveal the label.
        labels: published labels (n,).
    """
    key = PeopleKey.of(secret, "jitter", account.population, account.label, model, size.hex())
    classes = 2 * labels - 1 if model == "logistic" else labels
    from scipy.special import ndtri  # here: a party that trains under label DP has no jitter

    return np.asarray(-size * ndtri(key.uniforms(people, classes + 0.0)))  # -0.0 is the label 0.0


def unit_of(store: Store, account: Account, labels: Floats, label_range: tuple[float, float] | None) -> float:
    """Return the unit of the jitter of labels that are numbers; the first call fixes it for this population and column.

    It is half of the declared range, or without a range the standard deviation of the labels in the first snapshot. It
    stays the same when either changes: a person's jitter in two sizes would be two draws, which average out.

    Args:
        labels: all labels of the snapshot.

    Raises:
        LedgerUnavailable: it could not be kept.
    """
    spread = float(labels.std()) if label_range is None else (label_range[1] - label_range[0]) / 2
    with store.transaction() as transaction:
        unit = transaction.label_unit(account.population, account.label)
        if unit is None:
            unit = spread or 1.0
            transaction.put_label_unit(account.population, account.label, unit)
    if spread > MOST_SPREAD * unit:
        log.warning(
            f"labels in {account.label} vary more than when their jitter was fixed: a layout of batches reveals more "
            "of them than its entry in the account counts; raise taylor.jitter by this factor",
            factor=round(spread / unit, 2),
        )
    return unit
