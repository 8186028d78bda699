"""What a training opens can tell of labels, over all trainings on a snapshot, at the active party.

A party that gets k weights of b bits learns at most k b bits of the labels, whatever it makes of them; and so it does
from where training ends, and why: after which of E epochs, by the loss, by the range or by both. No party may learn
more than a quarter of a bit of each training label, summed over all trainings on the snapshot. Bits count before they
are told, whether the training then comes to its end or not: a party chooses its features, and when it leaves.

Source: MATH 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import structlog

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.protocols.falcon import FalconParameters, bits_of_opened_weight
from blindfit.algorithms.statistics.vertical.gradient_leaks import MOST_BITS_PER_ROW
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.database import Store

log = structlog.get_logger(__name__)


def weights_share(parameters: FalconParameters) -> float:
    """Bits of each training label that a passive party's weights have at most; 1 where they are not rounded, and none
    where they stay in shares.
    """
    if parameters.weights_stay_shared:
        return 0.0
    if parameters.kept_bits is None:
        return 1.0
    return min(1.0, max(parameters.columns[1:]) * bits_of_opened_weight(parameters.kept_bits) / parameters.train_rows)


def end_share(parameters: FalconParameters, epochs: int) -> float:
    """Bits of each training label that the end has, of so many epochs that may follow: it comes after one of them, by
    the range or by the loss or by both, or after all.
    """
    ends = (3 if parameters.judges else 1) * epochs + 1
    return min(1.0, math.log2(ends) / parameters.train_rows)


def count_end(session: Session[FalconJob], store: Store, parameters: FalconParameters, epochs: int) -> None:
    """Before anything is put in, and once the whole training may be: whether it may tells of what was counted before,
    and a peer that only asks pays as one that trains.

    Args:
        epochs: that may follow.

    Raises:
        PolicyRefused: with those before it, it would tell too much.
        LedgerUnavailable: it could not be written.
    """
    end = end_share(parameters, epochs)
    _count(session, store, "end", end, weights_share(parameters) + end)


def count_weights(session: Session[FalconJob], store: Store, parameters: FalconParameters) -> None:
    """Before they are told, in each session.

    Raises:
        PolicyRefused: another training took what was left since this one began.
        LedgerUnavailable: it could not be written.
    """
    share = weights_share(parameters)
    _count(session, store, "weights", share, share)


def _count(session: Session[FalconJob], store: Store, what: str, share: float, asked: float) -> None:
    """Durably."""
    with store.transaction() as transaction:
        _check(session, list(transaction.label_layouts(session.published.id).values()), asked)
        if share:
            transaction.add_label_layout(session.published.id, f"{what} {session.id}", share)


def _check(session: Session[FalconJob], before: Sequence[float], share: float) -> None:
    try:
        check_weight_bits(session.job, before, share, session.me.name)
    except PolicyRefused:
        log.warning("weight bits", session=session.id, told_before=round(sum(before), 4), this=round(share, 4))
        raise


def check_weight_bits(job: FalconJob, before: Sequence[float], share: float, party: str) -> None:
    """How much was told before, and in how many trainings, those with other partners included, is nobody else's to
    know: the reason is the same for any of it.

    Raises:
        PolicyRefused: too much would be told, and no flag of the job allows it.
    """
    if "weight-bits" in job.falcon.unsafe or sum(before) + share <= MOST_BITS_PER_ROW:
        return
    if job.falcon.stays_shared:
        source, helps = "where training ends", "use more rows"
    else:
        source, helps = "its weights", "use more rows or fewer columns"
        if job.falcon.model == "logistic":  # a linear model does not stay shared
            helps += ', or set falcon.weights = "shared"'
        helps += '; falcon.unsafe = ["weight-bits"] allows it'
    if share > MOST_BITS_PER_ROW:
        told = f"a passive party could learn {share:.2f} bits of each label from {source} (at most {MOST_BITS_PER_ROW})"
    else:
        told = f"with trainings before, {source} could tell more than {MOST_BITS_PER_ROW} bits of each label"
    raise PolicyRefused(party=party, field="weight bits", reason=f"{told}: {helps}")
