"""Parameters of a taylor session, which every party computes from the job and from all parties' reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.protocols.taylor.steps import steps_of_kept_noise
from blindfit.algorithms.statistics.vertical.class_weights import CLASS_WEIGHT_BITS, LARGEST_CLASS_WEIGHT
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.loss import LOSSES
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.budget import event_of, population_of
from blindfit.parties.vertical.prepared import Preparation
from blindfit.parties.vertical.seats import Seats

LABEL_RANGE = 2.0  # from -1 to 1: classes, and numbers after they are clipped to their public range and scaled by it


def match_rate(job: TaylorJob) -> float:
    """Return the assumed match rate: after a linkage fewer rows share a leak. A masked row hides nothing of its
    batch.
    """
    return job.align.match_rate if job.align.method == "linkage" else 1.0


def parameters_of(job: TaylorJob, seats: Seats, told: Mapping[str, Ready]) -> TaylorParameters:
    """Return the parameters, the same at every party: from the job and from all parties' reports."""
    settings = job.taylor
    columns = tuple(told[name].columns for name in seats.chain)
    weighted = settings.class_weights == "balanced"
    grid = Grid(settings.model, len(seats.chain), feature_bits=FEATURE_BITS)
    if weighted:
        grid = replace(grid, factor_bits=CLASS_WEIGHT_BITS, factor_bound=LARGEST_CLASS_WEIGHT << CLASS_WEIGHT_BITS)
    return TaylorParameters(
        data_parties=seats.chain,
        key_node=seats.key_node,
        columns=columns,
        grid=grid,
        key_bits=settings.key_bits,
        epochs=settings.epochs,
        patience=settings.patience,
        tolerance=settings.tolerance,
        encrypted_factors=weighted,
        noise_std=settings.gradient_noise,
        kept_noise_std=0.0 if job.privacy is None else label_noise_std(job, sum(columns)),
        masked=job.align.method == "linkage",
        hold_out_loss=job.hold_out_fraction > 0,
        calibrate=job.calibrates_by_sums,
    )


def row_bound(job: TaylorJob, columns: int) -> float:
    """Return the bound of a row's part with `columns` columns. The squares of all parties' bounds add up to the whole
    row's.
    """
    return job.taylor.norm_bound * math.sqrt(columns)


def row_bound_steps(job: TaylorJob, columns: int) -> int:
    """Return the same in steps of the features' grid, rounded down."""
    return int(row_bound(job, columns) * 2**FEATURE_BITS)


def label_sensitivity(job: TaylorJob, columns: int) -> float:
    """Return the largest change by one label in X^T (b y), over all parties' columns: b D R."""
    return LOSSES[job.taylor.model].cross * LABEL_RANGE * row_bound(job, columns)


def label_noise_std(job: TaylorJob, columns: int) -> float:
    """Return the standard deviation of the key node's kept noise."""
    return event_of(job.required_privacy).noise_multiplier * label_sensitivity(job, columns)


def keeps_noise_of(event: ReleaseEvent, job: TaylorJob, parameters: TaylorParameters) -> bool:
    """Return True if the key node draws, for an earlier charge, the kept noise that it drew then.

    It draws from a key, with a standard deviation in whole steps. With another number of steps it would draw other
    noise from the same key.
    """
    noise_std = event.noise_multiplier * label_sensitivity(job, sum(parameters.columns))
    return steps_of_kept_noise(replace(parameters, kept_noise_std=noise_std)) == steps_of_kept_noise(parameters)


def check_label_dp(dataset: PartyDatasetSettings, name: str, job: TaylorJob) -> None:
    """Raise ConfigError if the active party's dataset has no budget, or labels without a bound."""
    population_of(dataset, name)
    if job.taylor.model == "linear" and dataset.label_range is None:
        raise ConfigError(
            f"datasets.{name}.label_range is missing: label DP of numbers clips them to a public range",
            hint=f"set datasets.{name}.label_range = [0.0, 100.0], or another range; choose it without looking at "
            "the labels",
        )


def preparation_of(job: TaylorJob) -> Preparation:
    settings = job.taylor
    return Preparation(
        table="taylor",
        test_fraction=job.test_fraction,
        validation_fraction=job.hold_out_fraction,
        batch_rows=None if settings.batch_rows == "auto" else settings.batch_rows,
        batch_sizes=settings.batch_sizes,
        model=settings.model,
        intercept=settings.intercept,
        match_rate=match_rate(job) if shortens_rows(job) else None,
        norm_bound=None if job.privacy is None else job.taylor.norm_bound,
    )


def shortens_rows(job: TaylorJob) -> bool:
    """Return True if rows that stand out are shortened. Under label DP too they would reveal others' scores, and so
    features.
    """
    return "leverage" not in job.taylor.unsafe
