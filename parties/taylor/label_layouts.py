"""The limit of what all trainings on the same people together reveal about their labels, at the active party.

Jitter is drawn once for a person and label. So the same people in the same batches with the same columns reveal nothing
new, in any number of trainings. Another layout of batches, other columns and a new snapshot of the labels give new
equations. Their bits add up in the disclosure account, over all snapshots. Whether a label changed in a new snapshot
does not matter, because a refusal would reveal it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from functools import partial
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
from blindfit.parties.store.account import Disclosure
from blindfit.parties.store.database import Store
from blindfit.parties.taylor.parameters import preparation_of
from blindfit.parties.taylor.settings import TaylorJob

LAYOUT, END, SELECTION = "batch layout", "end of training", "grid and end of training"


def bits_of(parameters: TaylorParameters, plan: RowPlan, jitter: float) -> float:
    """Return how many bits about the labels one layout of batches has at most; one for each row without jitter."""
    rows = float(sum(map(len, plan.batches)))
    of_batch = label_bits(sum(parameters.columns[1:]), jitter, parameters.grid.loss.cross)
    return min(rows, len(plan.batches) * of_batch)


def end_bits(parameters: TaylorParameters, epochs: int) -> float:
    """Return how many bits the end of a training has: it comes after one of the epochs that may follow.

    The end reveals something about the hold-out rows' labels, which decide it. A training that runs every epoch has no
    such bits.
    """
    decides = parameters.hold_out_loss and parameters.patience > 0
    return math.log2(max(1, epochs)) if decides else 0.0


def grid_bits(job: TaylorJob, plan: RowPlan) -> float:
    """Return how many bits the figures of all grid points have.

    The gradients of folds add no bits, because a fold's batches are batches of the final training.
    """
    return 0.0 if job.selection is None else job.selection.figure_bits(len(plan.train))


def count_label_bits(
    session: Session[TaylorJob],
    settings: PartySettings,
    store: Store,
    parameters: TaylorParameters,
    plan: RowPlan,
    people: Digests,
    epochs: int,
) -> None:
    """Count a layout and the end before the training sends anything that depends on labels.

    A layout that was counted before is free. Each session has an end of its own: a job with a slightly different
    tolerance is another question about the hold-out labels.

    Args:
        people: digest of each aligned row; 0 for a slot without a row.
        epochs: number of epochs that may follow.

    Raises:
        PolicyRefused: with earlier disclosures, it would reveal too much about the labels.
        LedgerUnavailable: it could not be written.
    """
    account, (layout, end) = _entries(session, settings, parameters, plan, people, epochs)
    with store.transaction() as transaction:
        for entry, together in ((layout, layout.bits + end.bits), (end, end.bits)):
            limit = account.label_limit(transaction)
            refuse = partial(refusal, session.job, session.me.name, plan)
            account.enter_below(transaction, entry, limit, refuse, asked=together)


def check_label_bits(
    session: Session[TaylorJob],
    settings: PartySettings,
    store: Store,
    parameters: TaylorParameters,
    plan: RowPlan,
    people: Digests,
    epochs: int,
) -> float:
    """Return how many bits a training adds to the account; nothing is counted. See `count_label_bits` for arguments and
    errors.
    """
    account, (layout, end) = _entries(session, settings, parameters, plan, people, epochs)
    refuse = partial(refusal, session.job, session.me.name, plan)
    with store.view() as reader:
        limit, added = account.label_limit(reader), 0.0
        for entry, together in ((layout, layout.bits + end.bits), (end, end.bits)):
            added += entry.bits * account.check_below(reader, entry, limit, refuse, asked=together)
    return added


def _entries(
    session: Session[TaylorJob],
    settings: PartySettings,
    parameters: TaylorParameters,
    plan: RowPlan,
    people: Digests,
    epochs: int,
) -> tuple[Account, tuple[Disclosure, Disclosure]]:
    """Return the account, and the entries of the layout and of the end."""
    job, account = session.job, Account.of(settings, session.me.dataset)
    bits, end = bits_of(parameters, plan, job.taylor.jitter), end_bits(parameters, epochs) + grid_bits(job, plan)
    event_of_end = END if job.selection is None else SELECTION
    question, learners = _digest(session, parameters, plan, people), parameters.data_parties[1:]
    read = session.published.id, job.resumes or session.id  # a resumed training counts as the same session
    return account, (
        account.entry("labels", account.label, learners, LAYOUT, question, bits, read),
        account.entry("labels", account.label, learners, event_of_end, f"{END} {session.id}", end, read),
    )


def refusal(job: TaylorJob, party: str, plan: RowPlan) -> PolicyRefused | None:
    """Return the error for a layout that does not fit; None if a flag of the job allows it."""
    leak = gradient_leaks.too_many_label_bits()
    if job.taylor.jitter <= 0 or leak.flag in job.taylor.unsafe:  # without jitter everything is revealed at once
        return None
    reason = str(leak)
    if job.selection is not None:
        points = len(job.selection.points)
        reason += (
            f". The figures of {points} grid points are {grid_bits(job, plan):.0f} bits of it: list fewer grid points "
            "(select.grid), or remove [select]"
        )
    return PolicyRefused(party=party, field=leak.rule, reason=reason)


def _digest(session: Session[TaylorJob], parameters: TaylorParameters, plan: RowPlan, people: Digests) -> str:
    """Return a digest of everything that the equations in the labels depend on, except the weights.

    It covers the snapshot of the labels, the grouping of rows, the size of jitter, the factors, and the columns of the
    passive parties. The training rows, which scale these columns, are the rows of all batches.
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
        "linkage": align
        if job.align.method == "linkage"
        else None,  # decides which row of the other party is in a slot
    }
    return _digest_batches(meaning, plan, people)


def name_fit(session: Session[TaylorJob], plan: RowPlan, people: Digests) -> str:
    """Return a digest of everything that the gradients depend on: the job, the parties, their snapshots and the
    batches.

    The key node draws the same noise for the same question, and other noise for another question. So jobs with slightly
    different options would average the noise out.
    """
    return _digest_batches({"question": session.question.hex()}, plan, people)


def _digest_batches(meaning: Mapping[str, Any], plan: RowPlan, people: Digests) -> str:
    digest = hashlib.sha256(json.dumps(meaning, sort_keys=True).encode())
    for batch in plan.batches:  # by its set of rows: alignment puts them in another order each time
        digest.update(hashlib.sha256(np.sort(people[batch]).astype("<u8").tobytes()).digest())
    return digest.hexdigest()
