"""Parameters of a falcon session, which every party computes from the job and from all parties' reports."""

from __future__ import annotations

from collections.abc import Mapping

from blindfit.algorithms.errors import PolicyRefused, RangeError
from blindfit.algorithms.protocols.falcon import FalconParameters, check_parameters
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.statistics.linear.weight_bits import choose_kept_bits
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.parties.falcon.privacy import noise_of
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.vertical.prepared import Preparation
from blindfit.parties.vertical.seats import Seats


def preparation_of(job: FalconJob) -> Preparation:
    settings = job.falcon
    return Preparation(
        table="falcon",
        test_fraction=job.test_fraction,
        validation_fraction=settings.validation_fraction,
        batch_rows=None if settings.batch_rows == "auto" else settings.batch_rows,
        model=settings.model,
        intercept=settings.intercept,
        # Rows that stand out are shortened: otherwise a weight would reveal their labels. The rule depends on other
        # rows of the batch, so it does not hold under differential privacy, which takes its place.
        match_rate=1.0 if job.privacy is None else None,
        norm_bound=None if job.privacy is None else settings.norm_bound,
        feature_bounds=None if job.privacy is None else settings.bounds(),
    )


def parameters_of(job: FalconJob, seats: Seats, told: Mapping[str, Ready], plan: RowPlan) -> FalconParameters:
    """Return the parameters. They are public and the same at every party, and so is the reason of a refusal.

    Args:
        plan: row plan, of which only the sizes count.

    Raises:
        PolicyRefused: numbers of these sizes do not fit, or would reveal too much.
    """
    settings, columns = job.falcon, tuple(told[name].columns for name in seats.chain)
    as_they_are = "weight-bits" in settings.unsafe or job.privacy is not None
    parameters = FalconParameters(
        data_parties=seats.chain,
        key_node=seats.key_node,
        columns=columns,
        batch_rows=tuple(map(len, plan.batches)),
        validation_rows=len(plan.validation),
        test_rows=len(plan.test),
        epochs=settings.epochs,
        optimiser=settings.optimiser_settings(),
        intercept=settings.intercept,
        patience=settings.patience if settings.validation_fraction else 0,
        tolerance=settings.tolerance,
        macs=settings.macs,
        kept_bits=None if as_they_are else choose_kept_bits(len(plan.train), settings.model),
        threshold=settings.threshold,
        waves_name=settings.waves,
        model=settings.model,
        sampling=settings.sampling,
        weighted=settings.class_weights == "balanced",
        weights_stay_shared=settings.stays_shared,
        key_bits=settings.key_bits if settings.is_encrypted else None,
        noise=None if job.privacy is None else noise_of(job, columns),
        selection=job.selection,
    )
    try:
        check_parameters(parameters)
    except RangeError as error:
        reason = f"{error.message}; {error.hint}" if error.hint else error.message
        raise PolicyRefused(party=seats.me, field="falcon", reason=reason) from None
    return parameters
