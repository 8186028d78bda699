"""The promise of a falcon job under differential privacy, and its noise, from the job and public facts.

Rows must not change each other. So columns are scaled by public bounds, and a missing value is refused. A row is
shortened to a norm that the job sets, and never by comparison with other rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from blindfit.algorithms.privacy.events import WHOLE_ROWS, ReleaseEvent
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from blindfit.algorithms.protocols.falcon import Noise
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.data.source import Source
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.training.budget import population_of
from blindfit.parties.training.feature_bounds import in_order
from blindfit.parties.training.unit import refuse_dependent_rows, refuse_persons

UNIT = "each row, features of all parties and label"


def run_privacy(job: FalconJob) -> RunPrivacy:
    """Return the privacy of the run. A row is in one batch of each epoch, so each epoch is one release about it."""
    return RunPrivacy(job.required_privacy.epsilon, job.required_privacy.delta, job.falcon.epochs)


def event_of(job: FalconJob) -> ReleaseEvent:
    """Return the event of all epochs together."""
    run = run_privacy(job)
    multiplier = run.noise_multiplier() / math.sqrt(run.n_iterations)
    return ReleaseEvent("gaussian", multiplier, WHOLE_ROWS[run.neighbours])


def noise_of(job: FalconJob, columns: Sequence[int]) -> Noise:
    """Return the noise.

    Args:
        columns: number of each data party's columns, with the intercept.
    """
    bounds = tuple(row_bound_steps(job, own) for own in columns)
    return Noise(run_privacy(job).noise_multiplier(), bounds)


def row_bound_steps(job: FalconJob, columns: int) -> int:
    """Return the bound of a row's part with `columns` columns, in steps of the features' grid, rounded down.

    A party bounds its own columns; the squares of all parties' bounds add up to the square of the whole row's bound.
    """
    return int(job.falcon.norm_bound * math.sqrt(columns) * 2**FEATURE_BITS)


def check_dataset(job: FalconJob, source: Source, dataset: PartyDatasetSettings) -> None:
    """Raise ConfigError if the dataset has no budget, has persons, fills values, or has a column without bounds."""
    population_of(dataset, source.name)
    refuse_persons(source.settings, source.name, "a falcon job with privacy.epsilon")
    refuse_dependent_rows(source)
    in_order(job.falcon.bounds(), source.model_columns, "falcon.feature_bounds")
