"""Cost of label DP, simulated on plain numbers: for the tumours here, for more data in taylor_privacy.py.

The Taylor gradient's label term never changes. So noise that is drawn once for each batch and kept makes all epochs one
release. With fresh noise every epoch is another release, and for the same epsilon the noise grows by the root of their
number. Kept noise cancels in differences of gradients, so a partner reads features in them. Therefore fresh noise is
added to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from blindfit.algorithms.fixed_point import clip_integer_rows
from blindfit.algorithms.statistics.quality import metrics
from blindfit.algorithms.statistics.vertical.grid import Grid
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.parties.job.tables import PrivacySettings
from blindfit.parties.taylor.parameters import label_noise_std, preparation_of, row_bound_steps
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.prepared import PreparedLabels, prepare
from examples.taylor.joined import joined
from tests.oracles import taylor as taylor_oracle
from tests.oracles.taylor import PlainTable

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
AS_IT_IS, KEPT_ONLY, REDRAWN = "kept, and fresh on top", "kept only", "drawn every epoch"
WAYS = (AS_IT_IS, KEPT_ONLY, REDRAWN)
DRAWS = 61  # of the order of the rows, and of the noise


@dataclass(frozen=True)
class Pooled:
    """Everybody's rows in one place; the first party is the active one."""

    rows: dict[str, np.ndarray]
    labels: np.ndarray
    label_range: tuple[float, float] | None = None


@cache
def tumours() -> Pooled:
    _, rows, labels = joined()
    return Pooled(rows, labels)


def simulate(
    job: TaylorJob, pooled: Pooled, *, ways: tuple[str, ...] = WAYS, draws: int = DRAWS
) -> dict[str, list[float]]:
    """Return the median figure of the test rows for each way at every epsilon: AUC, or R squared of a linear model.

    `none` has no label DP and no bounds on rows and labels; it has all other defences except jitter.
    """
    private = [job.model_copy(update={"privacy": PrivacySettings(epsilon=e)}) for e in EPSILONS]
    found = {way: [_median(one, pooled, way, draws) for one in private] for way in ways}
    return {**found, "none": [_median(job, pooled, "none", draws)] * len(EPSILONS)}


def _median(job: TaylorJob, pooled: Pooled, way: str, draws: int) -> float:
    return float(np.median([test_figure(job, pooled, way, draw) for draw in range(draws)]))


def test_figure(job: TaylorJob, pooled: Pooled, way: str, draw: int) -> float:
    generator = np.random.default_rng(draw)
    grid = Grid(job.taylor.model, len(pooled.rows), feature_bits=FEATURE_BITS)
    table, prepared, labels, plan = plain_table(job, pooled, grid, generator)
    fresh, kept = noise_stds(job, way, sum(block.shape[1] for block in table.blocks.values()))
    trained = taylor_oracle.train(
        table,
        plan,
        grid,
        job.taylor.optimiser_settings(),
        epochs=job.taylor.epochs,
        noise=noise_of(fresh * 2.0**grid.gradient_bits, kept * 2.0**grid.gradient_bits, generator),
        hold_out_loss=False,
    )
    scores = sum(grid.scores(block[plan.test], trained.weights[party]) for party, block in table.blocks.items())
    truth = labels[plan.test]
    if job.taylor.model == "logistic":
        return metrics.auc(truth, scores)
    return float(1 - np.mean((truth - scores * prepared.scale - prepared.mean) ** 2) / truth.var())


def noise_stds(job: TaylorJob, way: str, columns: int) -> tuple[float, float]:
    """Return the standard deviations of fresh and of kept noise, in units of the features."""
    if job.privacy is None:
        return job.taylor.gradient_noise, 0.0
    std = label_noise_std(job, columns)
    if way == REDRAWN:  # that many releases compose to the same epsilon
        return std * math.sqrt(job.taylor.epochs), 0.0
    return job.taylor.gradient_noise * (way == AS_IT_IS), std


def plain_table(
    job: TaylorJob, pooled: Pooled, grid: Grid, generator: np.random.Generator
) -> tuple[PlainTable, PreparedLabels, np.ndarray, RowPlan]:
    """Return every party's rows as it would train on them, in an order like that of the key node."""
    active, n = next(iter(pooled.rows)), len(pooled.labels)
    order, there = generator.permutation(n), np.ones(n, bool)
    prepared = {}
    for party, features in pooled.rows.items():
        own = PartyRows(None, features[order], pooled.labels[order] if party == active else None, there)
        names = tuple(f"{party}_{j}" for j in range(features.shape[1]))
        prepared[party] = prepare(
            own, names, preparation_of(job), np.arange(n), active=party == active, label_range=pooled.label_range
        )
    blocks = {party: grid.features(p.columns) for party, p in prepared.items()}
    if job.privacy is not None:
        blocks = {party: clip_integer_rows(b, row_bound_steps(job, b.shape[1])) for party, b in blocks.items()}
    labels = prepared[active].labels
    assert labels.y is not None  # the active party's
    table = PlainTable(blocks, labels.y, grid.label_terms(labels.y, np.zeros(n)), intercept=active)
    return table, labels, pooled.labels[order], prepared[active].plan


def noise_of(fresh: float, kept: float, generator: np.random.Generator) -> Callable[[str, int, int, int], list[int]]:
    @cache
    def kept_of(_party: str, _batch: int, columns: int) -> np.ndarray:
        return kept * generator.standard_normal(columns)

    def noise(party: str, _epoch: int, batch: int, columns: int) -> list[int]:
        drawn = kept_of(party, batch, columns) + fresh * generator.standard_normal(columns)
        return [int(step) for step in np.rint(drawn)]

    return noise


def draw_curve(found: dict[str, list[float]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.axhline(found["none"][0], color="#5d6879", linewidth=1, linestyle="--", label="no privacy")
    for way, colour in zip(WAYS, ("#2563b8", "#7a8b3c", "#c2591b"), strict=True):
        axes.plot(EPSILONS, found[way], color=colour, marker="o", markersize=4, label=f"noise {way}")
    axes.set_xscale("log", base=2)
    axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axes.set_xlabel("epsilon of label DP")
    axes.set_ylabel("AUC on test rows")
    axes.grid(color="#e1e5eb", linewidth=0.7)
    axes.spines[:].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=144)
