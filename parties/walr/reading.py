"""Where a data party of a WALR job reads its rows: in this process, or on its own cluster."""

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
    """None where the party has none: one process with all cores is then as fast as several."""
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
    """Reads, splits, standardises.

    Args:
        workers: of a cluster that reads the party's snapshot; None: this process reads.
        intercept: whether a constant stands after the columns.
    """
    if workers is None:
        return read_columns(source, job, randomness, report, intercept=intercept)
    return read_parts(source, job, randomness, report, workers, intercept=intercept)


def prepare_rows(
    source: Source, job: WalrJob, randomness: PublicRandomness, report: Report, workers: Workers | None = None
) -> PreparedRows:
    """Everything about the rows that needs no peer: also clips and rounds."""
    read = read_where(source, job, randomness, report, workers, intercept=job.walr.intercept)
    return read.rounded(job.grid_of_rows(read.norm_bound(job.walr), read.columns.width))
