"""The rows that benchmarks.dp_lr fits models to, and at which epsilons it does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from blindfit import Pretrained, pretrain

EPSILONS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 15.0, 150.0)
DELTA = 1e-5
PUBLIC_ROWS, PRIVATE_ROWS, TEST_ROWS = 60, 400, 4000
# Class means and variances; the public source is near the private one, and not the same.
PRIVATE_SOURCE = ((-0.09, -0.20), (2.05, 1.55), (1.0, 9.5))
PUBLIC_SOURCE = ((0.25, -0.60), (2.20, 2.40), (1.5, 7.0))
GAUSSIAN_BOUNDS = ([-20.0] * 2, [20.0] * 2)
# Of the means, errors and worst values of ten measurements of cell nuclei: from what they are, not from the rows.
CANCER_BOUNDS = (
    [0.0] * 30,
    [
        *(40, 50, 250, 3500, 0.3, 0.5, 0.6, 0.3, 0.4, 0.15),
        *(4, 6, 30, 700, 0.05, 0.2, 0.5, 0.1, 0.1, 0.05),
        *(50, 60, 300, 5000, 0.3, 1.5, 1.5, 0.4, 0.8, 0.3),
    ],
)

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]
Rows = tuple[Floats, Labels]


@dataclass(frozen=True)
class Split:
    private: Rows
    public: Rows
    test: Rows
    bounds: tuple[list[float], list[float]]

    def pretrained(self) -> Pretrained:
        return pretrain(*self.public)

    def scale_alone(self) -> Pretrained:
        """Return the public rows' scale, without what they say of the labels."""
        model = self.pretrained()
        return replace(model, weights=(0.0,) * len(model.weights), intercept=0.0)


def gaussian_split(seed: int) -> Split:
    generator = np.random.default_rng(seed)
    private, test = (draw(generator, n, PRIVATE_SOURCE) for n in (PRIVATE_ROWS, TEST_ROWS))
    return Split(private, draw(generator, PUBLIC_ROWS, PUBLIC_SOURCE), test, GAUSSIAN_BOUNDS)


def draw(generator: np.random.Generator, n: int, source: tuple[tuple[float, float], ...]) -> Rows:
    negative, positive, variances = map(np.array, source)
    labels = generator.permutation(n) < n // 2
    features = np.where(labels[:, None], positive, negative) + generator.normal(size=(n, 2)) * np.sqrt(variances)
    return features, labels


def cancer_split(seed: int) -> Split:
    features, target = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(target))
    public, private, test = ((features[part], target[part] == 1) for part in np.split(order, [60, 400]))
    return Split(private, public, test, CANCER_BOUNDS)


def own_split(directory: Path, _seed: int) -> Split:
    private, public, test = (read(directory / f"{part}.csv") for part in ("private", "public", "test"))
    return Split(private, public, test, (public[0].min(axis=0).tolist(), public[0].max(axis=0).tolist()))


def read(path: Path) -> Rows:
    import pyarrow.csv

    table = pyarrow.csv.read_csv(path)
    features = [table[name].to_numpy() for name in sorted(table.column_names) if name != "label"]
    return np.column_stack(features).astype(np.float64), table["label"].to_numpy() == 1
