"""Leaks of gradients, as far as they follow from public facts; refused before any gradient is sent.

A leak that depends on a party's rows is never refused, because a refusal would reveal something about them. Instead,
rows that stand out are shortened.
"""

from __future__ import annotations

from blindfit.algorithms.errors import PolicyRefused, RangeError
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.statistics.vertical import gradient_leaks
from blindfit.algorithms.statistics.vertical.gradient_leaks import BatchRules, Leak
from blindfit.algorithms.statistics.vertical.loss import LOSSES
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.algorithms.statistics.vertical.selection import FOLDS
from blindfit.parties.taylor.parameters import match_rate
from blindfit.parties.taylor.settings import TaylorJob


def leaks_of(parameters: TaylorParameters, plan: RowPlan, job: TaylorJob) -> list[Leak]:
    """Return all leaks of a training. Every party finds the same.

    Under label DP no rule protects labels, because epsilon bounds what is revealed about them. The other rules stay:
    the kept noise is the same in every epoch, and cancels.
    """
    columns = dict(zip(parameters.data_parties, parameters.columns, strict=True))
    rows = len(plan.train) + len(plan.validation) + len(plan.test)
    found = [
        *gradient_leaks.check_noise(job.taylor.gradient_noise),
        *gradient_leaks.check_match_rate(match_rate(job), linked=job.align.method == "linkage"),
        *gradient_leaks.check_hold_out(len(plan.validation), rows),
        *gradient_leaks.check_test(len(plan.test), rows),
        *gradient_leaks.check_class_weights(job.taylor.class_weights == "balanced"),
        *gradient_leaks.check_batches(columns, plan, batch_rules(job)),
    ]
    if job.privacy is not None:
        return [leak for leak in found if leak.rule != gradient_leaks.LABEL_BITS]
    return [*found, *gradient_leaks.check_jitter(job.taylor.jitter)]


def refuse_few_batches(job: TaylorJob, plan: RowPlan, party: str) -> None:
    """Check that each fold has batches of its own.

    Raises:
        PolicyRefused: there are fewer batches than folds, or a fold has too few rows.
    """
    selection = job.selection
    if selection is None:
        return
    batches, rows = len(plan.batches), len(plan.train)
    if batches < selection.folds:
        most = rows // selection.folds
        fewer = f"set select.folds = {FOLDS[0]}" if FOLDS[0] <= batches else f"set taylor.batch_rows = {most}"
        reason = (
            f"{selection.folds} folds are made of whole batches, and there are {batches}: {fewer}, or use more rows"
        )
        raise PolicyRefused(party=party, field="select", reason=reason)
    try:
        selection.check(rows)
    except RangeError as error:
        raise PolicyRefused(party=party, field="select", reason=f"{error.message}; {error.hint}") from None


def batch_rules(job: TaylorJob) -> BatchRules:
    """Return the rules that no flag of the job allows to break."""
    return BatchRules(
        match_rate(job),
        job.taylor.jitter,
        features="leverage" not in job.taylor.unsafe,
        labels="label-bits" not in job.taylor.unsafe and job.privacy is None,
        cross=LOSSES[job.taylor.model].cross,
    )


def rows_that_count(plan: RowPlan, job: TaylorJob) -> int:
    """Return how many rows of the smallest batch match at least."""
    return gradient_leaks.rows_that_count(min(map(len, plan.batches)), match_rate(job))


def refuse_leaks(leaks: list[Leak], job: TaylorJob, party: str) -> None:
    """Raise PolicyRefused if something would leak that no flag of the job allows."""
    for leak in leaks:
        if leak.flag not in job.taylor.unsafe:
            raise refusal(leak, party)


def refusal(leak: Leak, party: str) -> PolicyRefused:
    return PolicyRefused(party=party, field=leak.rule, reason=str(leak))
