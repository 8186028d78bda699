"""Repeated releases of labels, for neighbouring labels and for neighbouring data sets: the samples of an audit.

| neighbours | one release |
|---|---|
| two labels, the mechanism made beforehand | a noisy label |
| two data sets, one label changed, the mechanism fitted to each | the fit's public results, the noisy labels |

The second kind is for mechanisms that estimate their prior from the labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.privacy.audit import Floats, Samples
from blindfit.algorithms.privacy.label_mechanisms.base import LabelMechanism
from blindfit.algorithms.privacy.label_mechanisms.fitting import FittedMechanism
from blindfit.algorithms.randomness import UniformInt

Refit = Callable[[Floats], FittedMechanism]
"""A fit to these labels with fresh randomness."""

_PLACES = ((0.0, 1.0), (0.0, 0.5), (0.5, 1.0), (0.25, 0.6), (0.45, 0.55), (0.0, 0.01), (0.5, 0.51), (0.99, 1.0))
"""Pairs of labels, in the range from 0 to 1: ends, middle, near pairs."""

OUTPUT = "output"
_CHUNK = 1 << 16
_DEFAULT_ROWS = 20


# --- two labels ---------------------------------------------------------------------------------


def label_pairs(lo: float, hi: float) -> list[tuple[float, float]]:
    return [(lo + a * (hi - lo), lo + b * (hi - lo)) for a, b in _PLACES]


def noisy_labels(mechanism: LabelMechanism, label: float, n: int, uniform: UniformInt) -> Samples:
    """Return n releases of one label."""
    sizes = [min(_CHUNK, n - start) for start in range(0, n, _CHUNK)]
    parts = [mechanism.randomise(np.full(size, label), uniform) for size in sizes]
    return {OUTPUT: np.concatenate(parts)}


# --- two data sets ------------------------------------------------------------------------------


@dataclass(frozen=True)
class DatasetPair:
    """Two data sets that differ in their last label.

    Args:
        words: description of the difference, without any label that is not public.
    """

    words: str
    first: Floats
    second: Floats


def dataset_pairs(lo: float, hi: float, others: npt.ArrayLike | None = None) -> list[DatasetPair]:
    """Return pairs of data sets that differ in one label.

    Args:
        others: labels that both data sets of the first pairs have; None: some labels across the whole range. In the
            other pairs, one label differs from all others, or decides between two halves.
    """
    middle = (lo + hi) / 2
    kept = lo + (hi - lo) * np.linspace(0.1, 0.9, _DEFAULT_ROWS) if others is None else np.asarray(others, np.float64)
    at_lo = np.full(min(len(kept), _DEFAULT_ROWS), lo)
    n, half = len(kept), _DEFAULT_ROWS // 2
    tie = np.repeat([lo, hi], half)
    return [
        DatasetPair(f"{n} labels and {lo:g} or {hi:g}", np.append(kept, lo), np.append(kept, hi)),
        DatasetPair(f"{n} labels and {middle:g} or {hi:g}", np.append(kept, middle), np.append(kept, hi)),
        DatasetPair(f"{len(at_lo)} times {lo:g} and {lo:g} or {hi:g}", np.append(at_lo, lo), np.append(at_lo, hi)),
        DatasetPair(
            f"{half} times {lo:g}, {half} times {hi:g} and {lo:g} or {hi:g}", np.append(tie, lo), np.append(tie, hi)
        ),
    ]


def repeat_release(refit: Refit, labels: Floats, n: int, uniform: UniformInt) -> Iterator[dict[str, float]]:
    """Repeat a fit and its release n times; yield the numbers of each by name, as a fit takes long."""
    for _ in range(n):
        yield release_numbers(refit(labels), labels, uniform)


def release_numbers(fitted: FittedMechanism, labels: Floats, uniform: UniformInt) -> dict[str, float]:
    """Return the last label's noisy label, the mean of the others, and every number that the fit made public.

    A list gives its length, ends and a weighted sum: fewer statistics get more samples each.
    """
    noisy = fitted.mechanism.randomise(labels, uniform)
    public: dict[str, Any] = {"fit": fitted.mechanism.parameters(), "rows outside": fitted.rows_outside}
    if fitted.prior is not None:
        public["prior"] = {"edges": fitted.prior.edges, "masses": fitted.prior.masses}
    numbers = {OUTPUT: float(noisy[-1]), "mean of the other outputs": float(np.mean(noisy[:-1]))}
    return numbers | {name: value for name, value in _numbers("", public) if math.isfinite(value)}


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(f"{name} {key}".strip(), inner)
    elif isinstance(value, list | tuple | np.ndarray):
        flat = np.asarray(value, dtype=object).ravel()
        yield f"{name}, length", float(len(flat))
        if len(flat) and all(isinstance(item, int | float) for item in flat.tolist()):
            yield f"{name}, first", float(flat[0])
            yield f"{name}, last", float(flat[-1])
            yield f"{name}, weighted sum", float(np.asarray(flat, dtype=np.float64) @ _position_weights(len(flat)))
    elif isinstance(value, int | float):
        yield name, float(value)


def _position_weights(n: int) -> Floats:
    """Return weights that are not all equal, because masses always sum to 1."""
    return np.linspace(1.0, 2.0, n)


def columns_of(first: Sequence[Mapping[str, float]], second: Sequence[Mapping[str, float]]) -> tuple[Samples, Samples]:
    """Turn releases into statistics.

    A number that is the same in every release shows nothing and is left out, except the output. For a number that some
    releases lack, there is one more statistic: whether a release has it.
    """
    names = sorted({name for release in (*first, *second) for name in release})
    sides: tuple[dict[str, Floats], dict[str, Floats]] = ({}, {})
    for name in names:
        columns = [np.array([release.get(name, math.nan) for release in side]) for side in (first, second)]
        has = [(~np.isnan(column)).astype(np.float64) for column in columns]
        for statistic, pair in ((name, [np.nan_to_num(column) for column in columns]), (f"has {name}", has)):
            if statistic == OUTPUT or len(np.unique(np.concatenate(pair))) > 1:
                for side_columns, column in zip(sides, pair, strict=True):
                    side_columns[statistic] = column
    return sides
