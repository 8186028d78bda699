"""What gradients would give away, as far as it shows in what is public; refused before anything is sent.

What hangs on a party's rows is never refused, as that would tell of them: rows that stand out are shortened.
"""

from __future__ import annotations

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.statistics import gradient_leaks
from blindfit.algorithms.statistics.taylor_plan import RowPlan
from blindfit.parties.taylor.parameters import match_rate
from blindfit.parties.taylor.settings import TaylorJob


def own_leaks(plan: RowPlan, n_columns: int, job: TaylorJob) -> list[gradient_leaks.Leak]:
    """What so many columns of one party would give away, or be given away by: of features under label DP too, whose
    kept noise is the same in every epoch and cancels.

    Args:
        n_columns: the intercept's included.
    """
    smallest = min(map(len, plan.batches))
    return [
        *gradient_leaks.check_rows_against_features(smallest, n_columns, match_rate=match_rate(job)),
        *gradient_leaks.check_match_rate(match_rate(job), linked=job.align.method == "linkage"),
        *gradient_leaks.check_noise(job.taylor.gradient_noise),
        *gradient_leaks.check_hold_out(len(plan.validation)),
        *gradient_leaks.check_test(len(plan.test)),
        *gradient_leaks.check_class_weights(job.taylor.class_weights == "balanced"),
    ]


def shared_leaks(parameters: TaylorParameters, plan: RowPlan, job: TaylorJob) -> list[gradient_leaks.Leak]:
    """What all passive columns together would tell of a batch's labels; under label DP epsilon bounds that."""
    if job.privacy is not None:
        return []
    return gradient_leaks.check_label_bits(sum(parameters.columns[1:]), rows_that_count(plan, job), job.taylor.jitter)


def rows_that_count(plan: RowPlan, job: TaylorJob) -> int:
    """In the smallest batch: after linkage no more of its slots match, as far as anybody but the key node knows."""
    return max(1, int(min(map(len, plan.batches)) * match_rate(job)))


def refuse_leaks(leaks: list[gradient_leaks.Leak], job: TaylorJob, party: str) -> None:
    """Raises PolicyRefused: something would leak that no flag of the job allows."""
    for leak in leaks:
        if leak.flag not in job.taylor.unsafe:
            reason = f'{leak.text}; taylor.unsafe = ["{leak.flag}"] allows it'
            raise PolicyRefused(party=party, field=leak.rule, reason=reason)
