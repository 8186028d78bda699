"""Reading of a WALR data party's rows, in this process or on the party's own cluster."""

from __future__ import annotations

from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.workers import Workers
from blindfit.parties.data.source import Source
from blindfit.parties.sessions.party import Party
from blindfit.parties.training.rows import Report
from blindfit.parties.walr.partitions import ReadParts, read_parts
from blindfit.parties.walr.rows import PreparedRows, ReadColumns, read_columns
from blindfit.parties.walr.settings import WalrJob


def cluster_of(party: Party) -> Workers | None:
    """Return the party's cluster; None without a cluster, as one process with all cores is then as fast as several."""
    return party.workers if party.settings.compute.backend == "dask" else None


def read_where(
    source: Source,
    job: WalrJob,
    randomness: PublicRandomness,
    report: Report,
    workers: Workers | None = None,
    *,
    intercept: bool,
) -> ReadColumns | ReadParts:
    """Read, split and standardise rows.

    Args:
        workers: workers of a cluster that reads the party's snapshot; None to read in this process.
        intercept: True if a constant follows the columns.
    """
    if workers is None:
        return read_columns(source, job, randomness, report, intercept=intercept)
    return read_parts(source, job, randomness, report, workers, intercept=intercept)


def prepare_rows(
    source: Source, job: WalrJob, randomness: PublicRandomness, report: Report, workers: Workers | None = None
) -> PreparedRows:
    """Prepare rows as far as no peer is needed: read, clip and round."""
    read = read_where(source, job, randomness, report, workers, intercept=job.walr.intercept)
    return read.round(job.grid_of_rows(read.norm_bound(job.walr), read.columns.width))
