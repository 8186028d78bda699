"""The fit to the rows that counted. It is post-processing of the release, and the same bit for bit when repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, Bits, NoisySum
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.linear.logistic import Floats, QuantisedRows, Rows, RowsElsewhere, Sums
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.linear.scaling import Standardiser, pieces
from blindfit.algorithms.statistics.walr.defaults import Bounds, column_bounds, default_l2
from blindfit.algorithms.statistics.walr.fit import WalrFit, fit_released, treatment_of
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.parties.measurement.servers import Released
from blindfit.parties.training.rows import Report
from blindfit.parties.walr.partitions import IntegerParts
from blindfit.parties.walr.release_file import BATCHES
from blindfit.parties.walr.rows import PreparedRows, SentColumns
from blindfit.parties.walr.settings import WalrJob, WalrSettings
from blindfit.parties.work.long_work import StillWanted


def bounds_of(prepared: PreparedRows) -> Bounds | None:
    """Return bounds that a fit needs before it knows a sum; None if the rows are on workers, where passes over them are
    slow.
    """
    rows: IntegerRows | IntegerParts = prepared.train.weights
    return None if isinstance(rows, IntegerParts) else column_bounds(QuantisedRows(rows, prepared.grid.frac_bits))


@dataclass(frozen=True, repr=False)
class FittedModel:
    model: WALRModel
    fit: WalrFit
    noise_std: float  # standard deviation of each coordinate of mu


def fit_walr(
    prepared: PreparedRows,
    released: Released,
    job: WalrJob,
    randomness: PublicRandomness,
    report: Report,
    init: Pretrained | None = None,
    bounds: Bounds | None = None,
    still_wanted: StillWanted = lambda: None,
) -> FittedModel:
    """Fit to exactly the integer rows that counted. The other rows are no longer in memory afterwards.

    Args:
        bounds: bounds of all rows' columns, computed while the server worked.
        still_wanted: function that raises if nobody waits for the fit any more.
    """
    settings, aggregate, request = job.walr, released.aggregate, released.request
    trained_on = SentColumns(prepared.standardiser, settings.intercept).trained_on
    rows = watch(rows_to_fit(prepared.train.weights, aggregate.kept, trained_on, request, in_place=True), still_wanted)
    start = init_weights(init, prepared.standardiser, settings)
    generator = randomness.generator(BATCHES)
    known = bounds if aggregate.kept.all() and len(trained_on) == prepared.train.weights.shape[1] else None
    fit, noise_std = fit_sum(rows, trained_on, aggregate.answer, request, settings, start, generator, report, known)
    norm_bound = request.norm_bound * 2.0**-request.frac_bits
    return FittedModel(
        WALRModel(prepared.standardiser, fit.result.weights, settings.intercept, norm_bound), fit, noise_std
    )


def l2_of(settings: WalrSettings, answer: NoisySum, request: AggregateOpen, n_features: int) -> float:
    if settings.l2 != "auto":
        return settings.l2
    (_, noise_std), norm_bound = walr.step_6_mean(answer, request), request.norm_bound * 2.0**-request.frac_bits
    return default_l2(noise_std, norm_bound, n_features, request.epsilon)


def init_weights(init: Pretrained | None, standardiser: Standardiser, settings: WalrSettings) -> Floats | None:
    return init.weights_for(standardiser, intercept=settings.intercept) if init else None


def rows_to_fit(
    rows: IntegerRows | IntegerParts,
    kept: Bits,
    trained_on: Sequence[int],
    request: AggregateOpen,
    *,
    in_place: bool = False,
) -> Rows:
    """Return the rows that counted, in the columns that are not zeros.

    Args:
        in_place: True if `rows` may be overwritten, because nobody needs the other rows any more.
    """
    if isinstance(rows, IntegerParts):
        return rows.choose(kept, trained_on)
    if not kept.all():
        rows = move_up(rows, kept) if in_place else rows[kept]
    if len(trained_on) < rows.shape[1]:
        rows = rows[:, list(trained_on)]
    return QuantisedRows(rows, request.frac_bits)


def move_up(rows: IntegerRows, kept: Bits) -> IntegerRows:
    """Return the kept rows in their order, at the front of the same array: a second array of gigabytes is never
    made.
    """
    end = 0
    for piece in pieces(len(rows)):
        chosen = rows[piece][kept[piece]]
        rows[end : end + len(chosen)] = chosen
        end += len(chosen)
    return rows[:end]


def fit_sum(
    rows: Rows,
    trained_on: Sequence[int],
    answer: NoisySum,
    request: AggregateOpen,
    settings: WalrSettings,
    start: Floats | None,
    generator: np.random.Generator,
    report: Report,
    bounds: Bounds | None = None,
) -> tuple[WalrFit, float]:
    """Return the fit, a function of only these arguments, and the standard deviation of each coordinate of mu.

    Args:
        rows: rows in the form of `rows_to_fit`.
        trained_on: places of the rows' columns in the sum.
    """
    treatment = treatment_of(settings.mu, answer.rows_kept * request.n_columns)
    mu, noise_std = walr.step_6_mean(answer, request)
    if len(trained_on) < len(mu):  # the noisy sum of a column of zeros is noise
        mu = mu[list(trained_on)]
    norm_bound = request.norm_bound * 2.0**-request.frac_bits
    report("check feasibility", 0, 0, "")
    fit = fit_released(
        rows,
        mu,
        noise_std=noise_std,
        norm_bound=norm_bound,
        epsilon=request.epsilon,
        settings=settings.solver_settings(0.0),
        l2=settings.l2,
        treatment=treatment,
        init=start,
        generator=generator,
        bounds=bounds,
        on_progress=lambda iteration, _: report("fit", iteration, settings.max_iterations or 0, "iterations"),
    )
    return fit, noise_std


# --- rows of a fit that ends with its session -------------------------------------------------------------------------


class WatchedRows:
    """Rows that check at each read if anybody still waits: a solver may read them often before it reports progress."""

    def __init__(self, rows: Rows, still_wanted: StillWanted) -> None:
        self._rows, self._still_wanted = rows, still_wanted
        self.n_rows, self.n_features = rows.n_rows, rows.n_features

    def blocks(self) -> Iterator[Floats]:
        for block in self._rows.blocks():
            self._still_wanted()
            yield block

    def take(self, which: slice | NDArray[np.intp]) -> Floats:
        self._still_wanted()
        return self._rows.take(which)


class WatchedElsewhere(WatchedRows, RowsElsewhere):
    """Watched rows that are not in this process and stay where they are."""

    def __init__(self, rows: Rows, elsewhere: RowsElsewhere, still_wanted: StillWanted) -> None:
        super().__init__(rows, still_wanted)
        self._elsewhere = elsewhere

    def sum_rows(self, function: Callable[..., Sums], *arguments: Any) -> Sums:
        self._still_wanted()
        return self._elsewhere.sum_rows(function, *arguments)


def watch(rows: Rows, still_wanted: StillWanted) -> Rows:
    if isinstance(rows, RowsElsewhere):
        return WatchedElsewhere(rows, rows, still_wanted)
    return WatchedRows(rows, still_wanted)
