"""Networks d-128-64-1 with ReLU, many trained at once: products over a leading axis, one Adam, the same batches.

Networks share nothing but the first weights and the batches, and Adam works on each number by itself. So every network
is trained as it would be by itself; the benchmark compares both. Gradients are written out, and tests compare them with
differences of the loss. All numbers have single precision, as in the published code.

Source: Kingma, Ba 2015, "Adam: a method for stochastic optimization"; weight decay is added to the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.randomness import public_generator

HIDDEN = (128, 64)
TOGETHER = 16
"""Number of networks whose activations stay in a core's caches."""

Floats = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class TrainingSettings:
    """Settings as published.

    `halving` is the public code's schedule; without it the rate falls to a tenth halfway, as in the text.
    """

    epochs: int = 50
    batch_rows: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    halving: bool = False

    def rate(self, epoch: int) -> float:
        if self.halving:
            return self.learning_rate * 0.5 ** (epoch // 10)
        return self.learning_rate * (0.1 if epoch >= self.epochs // 2 else 1.0)


def train(features: Floats, labels: Floats, test: Floats, settings: TrainingSettings, seed: int) -> Floats:
    """Return predictions at `test`, a row for each network.

    Args:
        features: (n, d).
        labels: (networks, n) labels, each network's own.
        test: (m, d).
        seed: seed of the first weights and the batches, which all networks share.
    """
    parts = [labels[first : first + TOGETHER] for first in range(0, len(labels), TOGETHER)]
    return np.concatenate([_train_together(features, part, test, settings, seed) for part in parts])


def _train_together(features: Floats, labels: Floats, test: Floats, settings: TrainingSettings, seed: int) -> Floats:
    ensemble = Ensemble.starting_from(first_weights(features.shape[1], seed), len(labels))
    adam = Adam(ensemble.parameters, settings.weight_decay)
    x, y = features.astype(np.float32), labels.astype(np.float32)[:, :, None]
    for epoch, rows in batches(len(features), settings.epochs, settings.batch_rows, seed):
        adam.step(ensemble.gradients(x[rows], y[:, rows])[0], settings.rate(epoch))
    return np.asarray(ensemble.predict(test.astype(np.float32))[:, :, 0], dtype=np.float64)


@dataclass(frozen=True)
class Ensemble:
    """Networks side by side: weights (networks, in, out) and biases (networks, 1, out) of each layer, in turn."""

    parameters: list[Reals]

    @classmethod
    def starting_from(cls, weights: Sequence[Reals], networks: int) -> Ensemble:
        return cls([np.repeat(weight[None], networks, axis=0) for weight in weights])

    def predict(self, x: Reals) -> Reals:
        """Return the outputs (networks, rows, 1) for the rows x (rows, d)."""
        return self._layers(x)[-1]

    def _layers(self, x: Reals) -> list[Reals]:
        """Return the input of each layer, and the output."""
        w1, b1, w2, b2, w3, b3 = self.parameters
        first = np.matmul(x[None], w1)
        first += b1
        np.maximum(first, 0, out=first)
        second = np.matmul(first, w2)
        second += b2
        np.maximum(second, 0, out=second)
        return [x[None], first, second, np.matmul(second, w3) + b3]

    def gradients(self, x: Reals, y: Reals) -> tuple[list[Reals], Reals]:
        """Return gradients of the mean squared error of one batch.

        Args:
            x: (rows, d).
            y: (networks, rows, 1).

        Returns:
            gradients for the parameters, in their order, and for the sums of the first layer (networks, rows, 128).
        """
        *inputs, output = self._layers(x)
        of_sums = (output - y) * np.float32(2 / len(x))
        found: list[Reals] = []
        for layer in (2, 1, 0):
            found = [np.matmul(inputs[layer].mT, of_sums), of_sums.sum(axis=1, keepdims=True), *found]
            if layer:
                of_sums = np.matmul(of_sums, self.parameters[2 * layer].mT)
                of_sums *= inputs[layer] > 0
        return found, of_sums


@dataclass
class Adam:
    """Steps on parameters in place."""

    parameters: list[Reals]
    weight_decay: float
    mean_beta: float = 0.9
    square_beta: float = 0.999
    least: float = 1e-8

    def __post_init__(self) -> None:
        self._steps = 0
        self._means, self._squares = ([np.zeros_like(one) for one in self.parameters] for _ in range(2))

    def step(self, gradients: list[Reals], rate: float) -> None:
        """Move the parameters; the memory of the gradients is overwritten."""
        self._steps += 1
        rate /= 1 - self.mean_beta**self._steps
        square_scale = (1 - self.square_beta**self._steps) ** -0.5
        for parameter, gradient, mean, square in zip(
            self.parameters, gradients, self._means, self._squares, strict=True
        ):
            gradient += self.weight_decay * parameter
            mean *= self.mean_beta
            mean += (1 - self.mean_beta) * gradient
            square *= self.square_beta
            square += np.multiply(gradient, gradient, out=gradient) * (1 - self.square_beta)
            divisor = np.sqrt(square, out=gradient)
            divisor *= square_scale
            divisor += self.least
            step = np.divide(mean, divisor, out=divisor)
            step *= rate
            parameter -= step


# --- where training starts, and in which order it sees the rows -------------------------------------------


def first_weights(width: int, seed: int) -> list[Reals]:
    """Weights (in, out) and biases (1, out) of each layer, uniform within 1/sqrt(in)."""
    draw = public_generator(seed, "label_dp/weights")
    drawn = []
    for before, after in pairwise((width, *HIDDEN, 1)):
        bound = before**-0.5
        drawn += [draw.uniform(-bound, bound, (before, after)), draw.uniform(-bound, bound, (1, after))]
    return [values.astype(np.float32) for values in drawn]


def batches(rows: int, epochs: int, batch_rows: int, seed: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield (epoch, rows of the batch); the last batch of an epoch has the remaining rows."""
    draw = public_generator(seed, "label_dp/batches")
    for epoch in range(epochs):
        order = draw.permutation(rows)
        for first in range(0, rows, batch_rows):
            yield epoch, order[first : first + batch_rows]


def one_by_one(features: Floats, labels: Floats, test: Floats, settings: TrainingSettings, seed: int) -> Floats:
    """Return the result of `train`, with every network trained by itself."""
    return np.concatenate([_train_together(features, own[None], test, settings, seed) for own in labels])


def largest_difference(features: Floats, labels: Floats, test: Floats, settings: TrainingSettings, seed: int) -> float:
    """Return the largest difference of predictions by both ways, after one epoch.

    It is the rounding of single precision, which grows during training.
    """
    once = replace(settings, epochs=1)
    together, apart = (way(features, labels, test, once, seed) for way in (train, one_by_one))
    return float(np.abs(together - apart).max())
