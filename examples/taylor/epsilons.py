"""What label DP costs on the tumours, simulated on plain numbers: noise that is kept beside noise drawn every epoch.

The Taylor gradient's label term never changes, so that noise drawn once for each batch and kept makes all epochs one
release. Drawn afresh, every epoch is another release, and for the same epsilon its noise is the root of their number
times as large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from blindfit.algorithms.fixed_point import clip_integer_rows
from blindfit.algorithms.statistics import metrics, taylor_oracle
from blindfit.algorithms.statistics.taylor_oracle import PlainTable
from blindfit.algorithms.statistics.taylor_plan import Grid, RowPlan
from blindfit.parties.job.tables import PrivacySettings
from blindfit.parties.taylor.data_party import FEATURE_BITS
from blindfit.parties.taylor.parameters import label_noise_std, preparation_of, row_bound
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.rows import PartyRows
from blindfit.parties.vertical.prepared import prepare
from examples.taylor.joined import joined

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
WAYS = ("kept", "drawn every epoch")
DRAWS = 61  # of the order of the rows, and of the noise


def simulate(job: TaylorJob) -> dict[str, list[float]]:
    """For each way the median AUC on the test rows at every epsilon."""
    private = [job.model_copy(update={"privacy": PrivacySettings(epsilon=e)}) for e in EPSILONS]
    found = {
        way: [float(np.median([test_auc(job, way, draw) for draw in range(DRAWS)])) for job in private] for way in WAYS
    }
    without = [test_auc(private[0], "none", draw) for draw in range(DRAWS)]
    return {**found, "none": [float(np.median(without))] * len(EPSILONS)}


def test_auc(job: TaylorJob, way: str, draw: int) -> float:
    generator = np.random.default_rng(draw)
    grid = Grid("logistic", 3, feature_bits=FEATURE_BITS)
    table, labels, plan = plain_table(job, grid, generator)
    width = sum(block.shape[1] for block in table.blocks.values())
    std = 0.0 if way == "none" else label_noise_std(job, width) * 2.0**grid.gradient_bits
    if way == "drawn every epoch":
        std *= math.sqrt(job.taylor.epochs)  # so many releases compose to the same epsilon
    trained = taylor_oracle.train(
        table,
        plan,
        grid,
        job.taylor.optimiser_settings(),
        epochs=job.taylor.epochs,
        noise=noise_of(std, generator, kept=way == "kept"),
        hold_out_loss=False,
    )
    scores = sum(grid.scores(block[plan.test], trained.weights[party]) for party, block in table.blocks.items())
    return metrics.auc(labels[plan.test], scores)


def plain_table(job: TaylorJob, grid: Grid, generator: np.random.Generator) -> tuple[PlainTable, np.ndarray, RowPlan]:
    """Every party's rows as it would train on them, in an order as the key node draws one."""
    ids, rows, labels = joined()
    order = generator.permutation(len(ids))
    there = np.ones(len(ids), bool)
    prepared = {}
    for party, features in rows.items():
        own = PartyRows(None, features[order], labels[order] if party == "hospital" else None, there)
        names = tuple(f"{party}_{j}" for j in range(features.shape[1]))
        prepared[party] = prepare(own, names, preparation_of(job), np.arange(len(order)), active=party == "hospital")
    width = sum(p.columns.shape[1] for p in prepared.values())
    blocks = {
        party: clip_integer_rows(
            grid.features(p.columns), int(row_bound(job, width, p.columns.shape[1]) * 2**FEATURE_BITS)
        )
        for party, p in prepared.items()
    }
    y = prepared["hospital"].y
    table = PlainTable(blocks, y, grid.label_terms(y, np.zeros(len(y))), intercept="hospital")
    return table, labels[order], prepared["hospital"].plan


def noise_of(std: float, generator: np.random.Generator, *, kept: bool) -> Callable[[str, int, int, int], list[int]]:
    drawn: dict[object, list[int]] = {}

    def noise(party: str, epoch: int, batch: int, columns: int) -> list[int]:
        which = (party, batch) if kept else (party, epoch, batch)
        if which not in drawn:
            drawn[which] = np.rint(std * generator.standard_normal(columns)).astype(np.int64).tolist()
        return drawn[which]

    return noise


def draw_curve(found: dict[str, list[float]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.axhline(found["none"][0], color="#5d6879", linewidth=1, linestyle="--", label="no privacy")
    for way, colour in zip(WAYS, ("#2563b8", "#c2591b"), strict=True):
        axes.plot(EPSILONS, found[way], color=colour, marker="o", markersize=4, label=f"noise {way}")
    axes.set_xscale("log", base=2)
    axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axes.set_xlabel("epsilon of label DP")
    axes.set_ylabel("AUC on test rows")
    axes.grid(color="#e1e5eb", linewidth=0.7)
    axes.spines[:].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=144)
