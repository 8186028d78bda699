"""`blindfit attack MECHANISM`: check by samples whether a label mechanism keeps the epsilon that it claims."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy import label_mechanisms
from blindfit.algorithms.privacy.audit import (
    LEAST_SAMPLES,
    EpsilonBound,
    Floats,
    Samples,
    bound_epsilon,
    greatest_bound,
)
from blindfit.algorithms.privacy.label_audit import (
    DatasetPair,
    columns_of,
    dataset_pairs,
    label_pairs,
    noisy_labels,
    repeat_release,
)
from blindfit.algorithms.privacy.label_mechanisms import FittedMechanism, LabelGrid, MechanismSettings, uniform_prior
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.parties.data.columns import to_labels
from blindfit.parties.data.files import open_file
from blindfit.parties.data.origin import Origin, refuse_missing_names

FITS_TAKE_S = 30.0
LEAST_FITS, FITS_TIMED = 200, 5
_BATCH_ROWS = 1 << 16

DELTA = 1e-5  # for mechanisms that need a delta
HALF_WIDTH_SHARE = 0.1  # of the range, for mechanisms without a default half width
ROUNDING, ROUNDED_TO = ("rr-on-bins", "unbiased"), 16
"""Number of values to which these mechanisms round labels: a fit then takes milliseconds. An audit needs thousands."""

CELLS = {"rp-with-prior": 2**12, "rp-banded": 2**12}
"""Number of grid cells for mechanisms that search the whole grid in each fit. Others have the grid of a job."""

Progressed = Callable[[str], None]


@dataclass(frozen=True)
class PairFound:
    """
    Args:
        neighbours: description of the two neighbours.
        bound: lower bound on epsilon that the samples show.
    """

    neighbours: str
    bound: EpsilonBound


@dataclass(frozen=True)
class MechanismAudit:
    """Result of all pairs together.

    Args:
        confidence: probability that epsilon is at least every bound.
        fits: number of fits to each of two neighbouring data sets; 0 if nothing is fitted.
    """

    mechanism: str
    epsilon: float
    delta: float
    confidence: float
    samples: int
    fits: int
    pairs: tuple[PairFound, ...] = field(repr=False)

    @property
    def lower_bound(self) -> float:
        return max(pair.bound.epsilon for pair in self.pairs)

    @property
    def greatest_bound(self) -> float:
        """Largest bound that so many samples could show, for a mechanism without any privacy."""
        return self._greatest_bound(self.pairs[0])

    @property
    def greatest_bound_of_data_sets(self) -> float | None:
        """Largest bound that the fits could show. Fits are fewer than samples, so it is smaller. None without fits."""
        return self._greatest_bound(self.pairs[-1]) if self.fits else None

    def _greatest_bound(self, pair: PairFound) -> float:
        false_alarm = (1 - self.confidence) / len(self.pairs)
        return greatest_bound(pair.bound.n, delta=self.delta, false_alarm=false_alarm)

    @property
    def holds(self) -> bool:
        return self.lower_bound <= self.epsilon

    def to_dict(self) -> dict[str, Any]:
        content = {name: value for name, value in asdict(self).items() if name != "pairs"}
        pairs = [
            {
                "neighbours": pair.neighbours,
                "lower_bound": pair.bound.epsilon,
                "event": str(pair.bound.event),
                "of_second_neighbour": pair.bound.swapped,
                "hits": pair.bound.hits,
                "neighbour_hits": pair.bound.neighbour_hits,
                "counted": pair.bound.n,
            }
            for pair in self.pairs
        ]
        return {
            **content,
            "lower_bound": self.lower_bound,
            "greatest_bound": self.greatest_bound,
            "greatest_bound_of_data_sets": self.greatest_bound_of_data_sets,
            "holds": self.holds,
            "pairs": pairs,
        }


# --- settings -----------------------------------------------------------------------------------


def mechanism_settings(
    name: str, epsilon: float, delta: float | None, ends: tuple[float, float], half_width: float | None
) -> MechanismSettings:
    """Raise ConfigError for an option that the mechanism does not use, or a value that it cannot have."""
    if name == "rp-banded" and half_width is None:
        half_width = HALF_WIDTH_SHARE * (ends[1] - ends[0])
    if delta is None:
        delta = DELTA if name == "gaussian" else 0.0
    grid = LabelGrid(*ends, cells=CELLS[name]) if name in CELLS else LabelGrid(*ends)
    rounding = grid.width / ROUNDED_TO if name in ROUNDING else None
    output_cells = ROUNDED_TO if name == "unbiased" else None
    return MechanismSettings(
        name, grid, epsilon, delta, half_width=half_width, rounding=rounding, output_cells=output_cells
    )


def read_labels(place: str) -> Floats:
    """Return the column of `FILE.csv:column`.

    Raises:
        ConfigError: the text names no column.
        DataError: a row is wrong; names the file and the row.
    """
    path, colon, column = place.rpartition(":")
    if not (colon and path and column):
        raise ConfigError(f"--labels {place}: no column is named", hint="write FILE.csv:column")
    reader = open_file("csv", Path(path), Origin("labels", path, option="--labels"))
    refuse_missing_names([column], reader.names, reader.origin)
    parts: list[Floats] = []
    first_row = 1
    for batch in reader.arrow_batches([column], _BATCH_ROWS):
        parts.append(to_labels(batch.column(0), name=column, binary=False, first_row=first_row, origin=reader.origin))
        first_row += batch.num_rows
    if first_row == 1:
        raise reader.origin.error("the file has no rows", hint="a data set needs at least one label")
    return np.concatenate(parts)


# --- the audit ----------------------------------------------------------------------------------


def audit_mechanism(
    settings: MechanismSettings,
    *,
    samples: int,
    confidence: float,
    others: Floats | None = None,
    uniform: UniformInt = system_uniform,
    progressed: Progressed = lambda _: None,
) -> MechanismAudit:
    """
    Args:
        samples: number of releases of each label of a pair; largest number of fits for fitted data sets.
        others: labels that neighbouring data sets share; None takes labels that cover the range.
        progressed: called with each finished step, `steps_of(settings)` times.

    Raises:
        ConfigError: the confidence or the number of samples is out of range.
    """
    if not 0.5 <= confidence < 1:
        raise ConfigError(f"--confidence must lie in [0.5, 1), not {confidence:g}")
    if samples < LEAST_SAMPLES:
        raise ConfigError(f"--samples must be at least {LEAST_SAMPLES}, not {samples}")
    false_alarm = (1 - confidence) / steps_of(settings)
    found: list[PairFound] = []

    def look(neighbours: str, sides: tuple[Samples, Samples]) -> None:
        found.append(PairFound(neighbours, bound_epsilon(*sides, delta=settings.delta, false_alarm=false_alarm)))
        progressed(neighbours)

    for neighbours, sides in _label_samples(settings, samples, uniform):
        look(neighbours, sides)
    fits = 0
    if settings.estimates_prior:
        pairs = dataset_pairs(settings.grid.lo, settings.grid.hi, others)
        fits = _fits(settings, pairs, samples, uniform)
        for pair in pairs:
            look(pair.words, _dataset_samples(settings, pair, fits, uniform))
    return MechanismAudit(settings.name, settings.epsilon, settings.delta, confidence, samples, fits, tuple(found))


def steps_of(settings: MechanismSettings) -> int:
    """Return the number of pairs to compare."""
    lo, hi = settings.grid.lo, settings.grid.hi
    return len(label_pairs(lo, hi)) + (len(dataset_pairs(lo, hi)) if settings.estimates_prior else 0)


def _label_samples(
    settings: MechanismSettings, samples: int, uniform: UniformInt
) -> Iterator[tuple[str, tuple[Samples, Samples]]]:
    """Yield samples, with a public prior if the mechanism needs one: then the mechanism spends all of epsilon."""
    known = replace(settings, prior=uniform_prior(settings.grid)) if settings.estimates_prior else settings
    mechanism = label_mechanisms.fit(known, [settings.grid.lo], uniform).mechanism
    for first, second in label_pairs(settings.grid.lo, settings.grid.hi):
        sides = (noisy_labels(mechanism, first, samples, uniform), noisy_labels(mechanism, second, samples, uniform))
        yield f"label {first:g} or {second:g}", sides


def _fits(settings: MechanismSettings, pairs: list[DatasetPair], samples: int, uniform: UniformInt) -> int:
    """Return as many fits as take FITS_TAKE_S for all data sets. The releases that were timed are not used."""
    started = time.perf_counter()
    for _ in repeat_release(_refit(settings, uniform), pairs[0].first, FITS_TIMED, uniform):
        pass
    fit_s = (time.perf_counter() - started) / FITS_TIMED
    return min(samples, max(LEAST_FITS, int(FITS_TAKE_S / (2 * len(pairs) * fit_s))))


def _dataset_samples(
    settings: MechanismSettings, pair: DatasetPair, fits: int, uniform: UniformInt
) -> tuple[Samples, Samples]:
    refit = _refit(settings, uniform)
    first, second = (list(repeat_release(refit, labels, fits, uniform)) for labels in (pair.first, pair.second))
    return columns_of(first, second)


def _refit(settings: MechanismSettings, uniform: UniformInt) -> Callable[[Floats], FittedMechanism]:
    return lambda labels: label_mechanisms.fit(settings, labels, uniform)


# --- output ------------------------------------------------------------------------------------------


def audit_with_progress(
    settings: MechanismSettings, *, samples: int, confidence: float, others: Floats | None, errors: Console
) -> MechanismAudit:
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(f"pairs of neighbours, {settings.name}", total=steps_of(settings))
        return audit_mechanism(
            settings,
            samples=samples,
            confidence=confidence,
            others=others,
            progressed=lambda _: bar.advance(task),
        )


def table_of(found: MechanismAudit) -> Table:
    claim = f"epsilon {found.epsilon:g}" + (f", delta {found.delta:g}" if found.delta else "")
    table = Table(title=f"{found.mechanism}: claims {claim}", box=SIMPLE_HEAD)
    for name in ("neighbours", "lower bound", "event", "hits", "neighbour's", "samples", "verdict"):
        table.add_column(name, justify="left" if name in ("neighbours", "event", "verdict") else "right")
    for pair in found.pairs:
        bound = pair.bound
        above = bound.epsilon > found.epsilon
        table.add_row(
            Text(pair.neighbours),
            f"{bound.epsilon:.4f}",
            Text(str(bound.event) if bound.epsilon else "none"),
            f"{bound.hits:,}" if bound.epsilon else "",
            f"{bound.neighbour_hits:,}" if bound.epsilon else "",
            f"{bound.n:,}",
            Text("BROKEN", style="bold red") if above else Text("below"),
        )
    return table


def verdict(found: MechanismAudit) -> str:
    confidence = f"at a confidence of {found.confidence * 100:g}%"
    if found.holds:
        fitted = found.greatest_bound_of_data_sets
        of_data_sets = "" if fitted is None else f", and {fitted:.4g} of two data sets"
        return (
            f"No sample contradicts the claim: {confidence} epsilon is at least {found.lower_bound:.4f}, "
            f"and {found.epsilon:g} is claimed. Samples can refute a claim, never prove it; "
            f"so many could show at most {found.greatest_bound:.4g}{of_data_sets}."
        )
    return (
        f"The claim is false: {confidence} epsilon is at least {found.lower_bound:.4f}, "
        f"but {found.epsilon:g} is claimed. Release nothing by this mechanism."
    )
