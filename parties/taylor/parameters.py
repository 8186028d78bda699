"""What every party of a taylor session computes from the job and from what all said of themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from blindfit.algorithms.protocols.ready import Ready
from blindfit.algorithms.protocols.taylor import TaylorParameters
from blindfit.algorithms.statistics.taylor import LOSSES
from blindfit.algorithms.statistics.taylor_plan import Grid
from blindfit.algorithms.statistics.vertical_model import FEATURE_BITS
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.budget import event_of
from blindfit.parties.vertical.prepared import Preparation
from blindfit.parties.vertical.seats import Seats

NORM_PER_ROOT = 1.25  # a standardised row's norm is about the root of its columns
CLASS_WEIGHT_BITS = 8
LARGEST_CLASS_WEIGHT = 64


def match_rate(job: TaylorJob) -> float:
    """A masked row hides nothing of its batch: after linkage fewer rows share what leaks."""
    return job.align.match_rate if job.align.method == "linkage" else 1.0


def parameters_of(job: TaylorJob, seats: Seats, told: Mapping[str, Ready]) -> TaylorParameters:
    """The same at every party: from the job and what everyone said of itself."""
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
        noise_std=settings.gradient_noise if job.privacy is None else label_noise_std(job, sum(columns)),
        noise_kept=job.privacy is not None,
        masked=job.align.method == "linkage",
        hold_out_loss=job.hold_out_fraction > 0,
    )


def row_bound(job: TaylorJob, all_columns: int, columns: int) -> float:
    """R sqrt(k_p / k): a party's own part of the bound R on a row, so that the squares add up to R^2."""
    bound = NORM_PER_ROOT * math.sqrt(all_columns) if job.taylor.norm_bound == "auto" else job.taylor.norm_bound
    return bound * math.sqrt(columns / all_columns)


def label_noise_std(job: TaylorJob, columns: int) -> float:
    """Of the key node's kept noise: the multiplier times what one label changes in X^T (b y)."""
    label_range = 2.0  # from -1 to 1
    sensitivity = LOSSES[job.taylor.model].cross * label_range * row_bound(job, columns, columns)
    return event_of(job.required_privacy).noise_multiplier * sensitivity


def preparation_of(job: TaylorJob) -> Preparation:
    settings = job.taylor
    return Preparation(
        test_fraction=job.test_fraction,
        validation_fraction=job.hold_out_fraction,
        batch_rows=settings.batch_rows,
        model=settings.model,
        intercept=settings.intercept,
        match_rate=match_rate(job) if shortens_rows(job) else None,
    )


def shortens_rows(job: TaylorJob) -> bool:
    """Under label DP the noise covers rows that stand out."""
    return job.taylor.leverage == "shrink" and "leverage" not in job.taylor.unsafe and job.privacy is None
