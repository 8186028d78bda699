"""What gradients would give away of the rows that are here, before any is sent."""

from __future__ import annotations

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.statistics import gradient_leaks
from blindfit.algorithms.statistics.taylor_plan import RowPlan
from blindfit.parties.taylor.parameters import match_rate
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.vertical.prepared import Prepared


def own_leaks(prepared: Prepared, job: TaylorJob) -> list[gradient_leaks.Leak]:
    """What this party's own columns would give away, or be given away by: of features under label DP too, whose kept
    noise is the same in every epoch and cancels."""
    columns, batches = prepared.columns, prepared.plan.batches
    return [
        *gradient_leaks.check_leverage(columns, batches, match_rate=match_rate(job)),
        *gradient_leaks.check_rows_against_features(min(map(len, batches)), columns.shape[1]),
        *gradient_leaks.check_noise(job.taylor.gradient_noise, gradient_leaks.narrow_columns(columns)),
        *gradient_leaks.check_hold_out(len(prepared.plan.validation)),
    ]


def shared_leaks(parameters: TaylorParameters, plan: RowPlan, job: TaylorJob) -> list[gradient_leaks.Leak]:
    """What all passive columns together would tell of a batch's labels; under label DP epsilon bounds that."""
    if job.privacy is not None:
        return []
    smallest = min(map(len, plan.batches))
    return gradient_leaks.check_label_bits(sum(parameters.columns[1:]), smallest, job.taylor.jitter)


def refuse_leaks(leaks: list[gradient_leaks.Leak], job: TaylorJob, party: str) -> None:
    """Raises PolicyRefused: something would leak that no flag of the job allows."""
    for leak in leaks:
        if leak.flag not in job.taylor.unsafe:
            reason = f'{leak.text}; taylor.unsafe = ["{leak.flag}"] allows it'
            raise PolicyRefused(party=party, field=leak.rule, reason=reason)
