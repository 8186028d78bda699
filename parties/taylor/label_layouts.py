"""What all trainings on the same people reveal of their labels together, at the active party.

Jitter is drawn once for a person and label, so the same people in the same batches beside the same columns reveal
nothing new, however often they are trained on. Another layout of batches, other columns and a new snapshot of the
labels give new equations: their bits add up in the disclosure account, over all snapshots. Whether a label changed in a
new snapshot does not matter, because others would find it out from a refusal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.statistics.vertical import gradient_leaks
from blindfit.algorithms.statistics.vertical.loss import label_bits
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.parties.account.account import Account
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.people import Digests
from blindfit.parties.store.database import Store
from blindfit.parties.taylor.parameters import preparation_of
from blindfit.parties.taylor.settings import TaylorJob


def bits_of(parameters: TaylorParameters, plan: RowPlan, jitter: float) -> float:
    """Return how many bits of the labels one layout of batches has at most; one for each row without jitter."""
    rows = float(sum(map(len, plan.batches)))
    return min(rows, len(plan.batches) * label_bits(sum(parameters.columns[1:]), jitter)) if jitter > 0 else rows


def count_label_bits(
    session: Session[TaylorJob],
    settings: PartySettings,
    store: Store,
    parameters: TaylorParameters,
    plan: RowPlan,
    people: Digests,
) -> None:
    """Count a layout before the training sends anything that depends on labels; one that was counted before is free.

    Args:
        people: the digest of each aligned row; 0 for a slot without a row.

    Raises:
        PolicyRefused: with what was revealed before, it would reveal too much of the labels.
        LedgerUnavailable: it could not be written.
    """
    job, me = session.job, session.me.name
    bits = bits_of(parameters, plan, job.taylor.jitter)

    question, learners = _digest(session, parameters, plan, people), parameters.data_parties[1:]
    account, read = Account.of(settings, session.me.dataset), (session.published.id, session.id)
    with store.transaction() as transaction:
        entry = account.entry("labels", account.label, learners, "batch layout", question, bits, read)
        account.enter_below(transaction, entry, account.label_limit(transaction), lambda: refusal(job, me))


def refusal(job: TaylorJob, party: str) -> PolicyRefused | None:
    """Return what is raised where a layout does not fit; None where a flag of the job allows it."""
    leak = gradient_leaks.too_many_label_bits()
    if job.taylor.jitter <= 0 or leak.flag in job.taylor.unsafe:  # without jitter all is revealed at once
        return None
    return PolicyRefused(party=party, field=leak.rule, reason=str(leak))


def _digest(session: Session[TaylorJob], parameters: TaylorParameters, plan: RowPlan, people: Digests) -> str:
    """Return a digest of all that the equations in the labels depend on, except the weights.

    It covers the snapshot of the labels, which rows are together, the size of jitter, the factors, and the columns of
    the passive parties. The training rows, on which these columns were scaled, are the rows of all batches.
    """
    job, options = session.job, session.job.digest_fields()
    align = {name.removeprefix("align."): value for name, value in options.items() if name.startswith("align.")}
    columns = dict(zip(parameters.data_parties[1:], parameters.columns[1:], strict=True))
    meaning = {
        "labels": session.published.id,
        "passive": {name: [session.snapshots.get(name, ""), count] for name, count in columns.items()},
        "shortened": preparation_of(job).match_rate,
        "class_weights": options["taylor.class_weights"],
        "jitter": options["taylor.jitter"],
        "linkage": align if job.align.method == "linkage" else None,  # which of the other's rows is in a slot
    }
    return _digest_batches(meaning, plan, people)


def name_fit(session: Session[TaylorJob], plan: RowPlan, people: Digests) -> str:
    """Return a digest of the parties, their snapshots, and which rows are together in a batch."""
    return _digest_batches({"parties": dict(session.snapshots)}, plan, people)


def _digest_batches(meaning: Mapping[str, Any], plan: RowPlan, people: Digests) -> str:
    digest = hashlib.sha256(json.dumps(meaning, sort_keys=True).encode())
    for batch in plan.batches:  # by the rows in it: alignment puts them in another order each time
        digest.update(hashlib.sha256(np.sort(people[batch]).astype("<u8").tobytes()).digest())
    return digest.hexdigest()
