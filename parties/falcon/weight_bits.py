"""What the weights that are opened can tell of labels, over all trainings on a snapshot, at the active party.

A party that gets k weights of b bits learns at most k b bits of the labels, whatever it makes of them. No party may
learn more than a quarter of a bit of each training label, summed over all trainings on the snapshot.

Source: MATH 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.protocols.falcon import FalconParameters, opened_bits
from blindfit.algorithms.statistics.gradient_leaks import MOST_BITS_PER_ROW
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.sessions.sessions import Session
from blindfit.parties.store.store import Store

_NAMED = "weights "  # and the session, among what has told of a snapshot's labels
BITS_OF_ANOTHER_ROUNDING = 2  # the same weights rounded again are one of the steps beside


def share_of_label(parameters: FalconParameters, *, again: bool = False) -> float:
    """Bits of each training label that a passive party's weights have at most; 1 where they are not rounded."""
    if parameters.kept_bits is None:
        return 1.0
    bits = BITS_OF_ANOTHER_ROUNDING if again else opened_bits(parameters.kept_bits)
    return min(1.0, max(parameters.columns[1:]) * bits / parameters.train_rows)


def check_weight_bits(job: FalconJob, before: Sequence[float], share: float, party: str) -> None:
    """Raises PolicyRefused: too much would be told, and no flag of the job allows it."""
    if "weight-bits" in job.falcon.unsafe or sum(before) + share <= MOST_BITS_PER_ROW:
        return
    told = f"weights of {sum(before):.2f} bits of each label were opened before, and " if before else ""
    raise PolicyRefused(
        party=party,
        field="weight bits",
        reason=f"{told}with this training a passive party's weights have {sum(before) + share:.2f} bits of each label "
        f'(at most {MOST_BITS_PER_ROW}): more rows or fewer columns help; falcon.unsafe = ["weight-bits"] allows it',
    )


def shares_before(session: Session[FalconJob], store: Store) -> list[float]:
    """Of all trainings on the snapshot."""
    return list(store.reader().label_layouts(session.published.id).values())


def opened_before(session: Session[FalconJob], store: Store) -> bool:
    """Whether the training that is resumed has had its weights opened."""
    return _opened(session.job.resumes, store.reader().label_layouts(session.published.id))


def _opened(resumed: str, before: Mapping[str, float]) -> bool:
    return bool(resumed) and f"{_NAMED}{resumed}" in before


def count_weight_bits(session: Session[FalconJob], store: Store, parameters: FalconParameters) -> None:
    """Durably, before any weight is opened; each opening counts, also that of a training that was resumed.

    Raises:
        PolicyRefused: another training took what was left since this one began.
        LedgerUnavailable: it could not be written.
    """
    with store.transaction() as transaction:
        before = transaction.label_layouts(session.published.id)
        share = share_of_label(parameters, again=_opened(session.job.resumes, before))
        check_weight_bits(session.job, list(before.values()), share, session.me.name)
        transaction.add_label_layout(session.published.id, f"{_NAMED}{session.id}", share)
