"""Model parts and rows, of every kind that a training or a file could bring."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import LARGEST_SCORE, VerticalModelPart

ACTIVE, PASSIVES = "bank", ("post", "rail", "shop")
DATA_PARTIES = (ACTIVE, *PASSIVES)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
STEPS = st.integers(-9 * 8192, 9 * 8192)  # multiples of half of 2^-12
PLACES = st.sampled_from(["clip", "other clip", "step", "mean", "anywhere", "anywhere"])


def standardiser(columns: int = 3, dropped: tuple[int, ...] = (), seed: int = 0) -> Standardiser:
    rng = np.random.default_rng(seed)
    kept = tuple(j for j in range(columns) if j not in dropped)
    mean, std = rng.normal(size=len(kept)) * 100, rng.random(len(kept)) * 10 + 0.1
    return Standardiser(tuple(f"c{j}" for j in range(columns)), kept, tuple(mean.tolist()), tuple(std.tolist()))


def part_of(party: str = ACTIVE, *, columns: int = 3, seed: int = 0, **changes: Any) -> VerticalModelPart:
    scaling = standardiser(columns, seed=seed)
    fields: dict[str, Any] = {
        "party": party,
        "role": "active" if party == ACTIVE else "passive",
        "model": "logistic",
        "data_parties": DATA_PARTIES,
        "standardiser": scaling,
        "weights": np.random.default_rng(seed + 1).normal(size=len(scaling.kept)),
    }
    return VerticalModelPart(**{**fields, **changes})


@st.composite
def standardisers(draw: st.DrawFn) -> Standardiser:
    columns = draw(st.integers(1, 5))
    kept = tuple(sorted(draw(st.sets(st.integers(0, columns - 1), min_size=1))))
    mean = tuple(draw(FINITE) for _ in kept)
    std = tuple(draw(st.floats(min_value=5e-324, allow_infinity=False)) for _ in kept)
    return Standardiser(tuple(f"column {j}" for j in range(columns)), kept, mean, std)


@st.composite
def model_parts(draw: st.DrawFn, party: str = ACTIVE) -> VerticalModelPart:
    scaling = draw(standardisers())
    active = party == ACTIVE
    bound = draw(st.sampled_from([8.0, 1.0, 0.3, 1024.0]) | st.floats(1e-9, 1024.0))
    largest = min(LARGEST_SCORE / bound / (len(scaling.kept) + 1), 1e9)
    weight = st.floats(-largest, largest)
    return VerticalModelPart(
        party=party,
        role="active" if active else "passive",
        model=draw(st.sampled_from(["logistic", "linear"])),
        data_parties=DATA_PARTIES,
        standardiser=scaling,
        weights=np.array([draw(weight) for _ in scaling.kept]),
        intercept=draw(st.none() | weight) if active else None,
        feature_bound=bound,
        row_bound=draw(st.none() | st.integers(1, 2**20) | st.just(2**70)),
        score_rounding=draw(st.just(0) | st.integers(0, 60)),
        label_mean=draw(st.floats(-1e6, 1e6)) if active else 0.0,
        slope=draw(st.floats(0.01, 100)) if active else 1.0,
        offset=draw(st.floats(-100, 100)) if active else 0.0,
        label_scale=draw(st.floats(1e-6, 1e6)) if active else 1.0,
    )


@st.composite
def rows_for(draw: st.DrawFn, part: VerticalModelPart, most: int = 6) -> np.ndarray:
    """Draw finite rows, among them values at the clip and half-way between two steps."""
    known = dict(
        zip(part.standardiser.kept, zip(part.standardiser.mean, part.standardiser.std, strict=True), strict=True)
    )
    n = draw(st.integers(0, most))
    rows = np.empty((n, len(part.standardiser.columns)))
    for i, j in np.ndindex(*rows.shape):
        rows[i, j] = _value(draw, *known.get(j, (0.0, 1.0)), part.feature_bound)
    return rows


def _value(draw: st.DrawFn, mean: float, std: float, bound: float) -> float:
    place = draw(PLACES)
    if place == "anywhere":
        return draw(FINITE)
    away = draw(STEPS) / 8192 if place == "step" else {"clip": bound, "other clip": -bound, "mean": 0.0}[place]
    value = mean + std * away
    return value if np.isfinite(value) else mean
