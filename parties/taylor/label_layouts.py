"""What all trainings on a snapshot together give away of its labels, at the active party.

Jitter is drawn once for a snapshot, so the same rows in the same batches beside the same columns tell nothing new,
however often they are trained on. Any other layout of batches, and any other columns, are new equations in the same
labels: their bits add up.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import structlog
from numpy.typing import NDArray

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.statistics.vertical import gradient_leaks
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.database import Store
from blindfit.parties.taylor.leaks import refuse_leaks, rows_that_count
from blindfit.parties.taylor.parameters import preparation_of
from blindfit.parties.taylor.settings import TaylorJob

log = structlog.get_logger(__name__)


def count_label_bits(
    session: Session[TaylorJob], store: Store, parameters: TaylorParameters, plan: RowPlan, positions: NDArray[np.int64]
) -> None:
    """Durably, before the training sends anything that labels are in; a layout that was counted before is free.

    Args:
        positions: of the aligned rows in the active party's snapshot.

    Raises:
        PolicyRefused: with the layouts before it, it would give away more than a quarter of a bit of each label.
        LedgerUnavailable: it could not be written.
    """
    job, layout = session.job, _digest(session, parameters, plan, positions)
    share = gradient_leaks.label_share(sum(parameters.columns[1:]), rows_that_count(plan, job), job.taylor.jitter)
    with store.transaction() as transaction:
        before = transaction.label_layouts(session.published.id)
        if layout in before:
            return
        if job.taylor.jitter > 0:  # without, all is given away at once, as its flag says
            _check(session, list(before.values()), share)
        transaction.add_label_layout(session.published.id, layout, share)


def _check(session: Session[TaylorJob], before: list[float], share: float) -> None:
    try:
        refuse_leaks(gradient_leaks.check_label_shares(before, share), session.job, session.me.name)
    except PolicyRefused:
        log.warning("label bits", session=session.id, given_before=round(sum(before), 4), this=round(share, 4))
        raise


def _digest(
    session: Session[TaylorJob], parameters: TaylorParameters, plan: RowPlan, positions: NDArray[np.int64]
) -> str:
    """Return a digest of all that the equations in the labels depend on, except the weights.

    It covers which rows are together, the size of jitter, the factors, and the columns of the passive parties. The
    training rows, on which these columns were scaled, are the rows of all batches.
    """
    job, options = session.job, session.job.digest_fields()
    align = {name.removeprefix("align."): value for name, value in options.items() if name.startswith("align.")}
    columns = dict(zip(parameters.data_parties[1:], parameters.columns[1:], strict=True))
    meaning = {
        "passive": {name: [session.snapshots.get(name, ""), count] for name, count in columns.items()},
        "shortened": preparation_of(job).match_rate,
        "class_weights": options["taylor.class_weights"],
        "jitter": options["taylor.jitter"],
        "linkage": align if job.align.method == "linkage" else None,  # which of the other's rows is in a slot
    }
    digest = hashlib.sha256(json.dumps(meaning, sort_keys=True).encode())
    for batch in plan.batches:  # by the rows in it: alignment puts them in another order each time
        digest.update(hashlib.sha256(np.sort(positions[batch]).astype("<i8").tobytes()).digest())
    return digest.hexdigest()
