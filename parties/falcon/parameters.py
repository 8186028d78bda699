"""What every party of a falcon session computes from the job and from what all said of themselves."""

from __future__ import annotations

from collections.abc import Mapping

from blindfit.algorithms.errors import PolicyRefused, RangeError
from blindfit.algorithms.protocols.falcon import FalconParameters, kept_bits_for
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.statistics.taylor_plan import RowPlan
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.vertical.prepared import Preparation
from blindfit.parties.vertical.seats import Seats


def preparation_of(job: FalconJob) -> Preparation:
    settings = job.falcon
    return Preparation(
        test_fraction=job.test_fraction,
        validation_fraction=settings.validation_fraction,
        batch_rows=None if settings.batch_rows == "auto" else settings.batch_rows,
        model=settings.model,
        intercept=settings.intercept,
        match_rate=1.0,  # rows that stand out are shortened: a weight would tell their labels
    )


def parameters_of(job: FalconJob, seats: Seats, told: Mapping[str, Ready], plan: RowPlan) -> FalconParameters:
    """The same at every party, and public: so is why they do not fit.

    Args:
        plan: of which the sizes count.

    Raises:
        PolicyRefused: numbers of these sizes do not fit, or would tell too much.
    """
    settings = job.falcon
    parameters = FalconParameters(
        data_parties=seats.chain,
        key_node=seats.key_node,
        columns=tuple(told[name].columns for name in seats.chain),
        batch_rows=tuple(map(len, plan.batches)),
        validation_rows=len(plan.validation),
        test_rows=len(plan.test),
        epochs=settings.epochs,
        optimiser=settings.optimiser_settings(),
        intercept=settings.intercept,
        patience=settings.patience if settings.validation_fraction else 0,
        tolerance=settings.tolerance,
        macs=settings.macs,
        kept_bits=None if "weight-bits" in settings.unsafe else kept_bits_for(len(plan.train), settings.model),
        threshold=settings.threshold,
        waves_name=settings.waves,
        model=settings.model,
        sampling=settings.sampling,
        weighted=settings.class_weights == "balanced",
        weights_stay_shared=settings.stays_shared,
    )
    try:
        parameters.check()
    except RangeError as error:
        reason = f"{error}; {error.hint}" if error.hint else str(error)
        raise PolicyRefused(party=seats.me, field="falcon", reason=reason) from None
    return parameters
