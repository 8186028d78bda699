"""The published network for Criteo: embedded hashed columns and three standardised numbers into dense layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.label_dp import report as label_dp_report
from benchmarks.label_dp.arms import NO_NOISE, Case, release
from benchmarks.label_dp.criteo import Codes, CriteoRows, Floats, read
from benchmarks.label_dp.network import Ensemble, Reals, batches, first_weights
from benchmarks.label_dp.results import Outcome, Results, outcome_of
from benchmarks.label_dp.runs import Plan, constant, in_order
from blindfit.algorithms.randomness import public_generator
from blindfit.algorithms.statistics.linear.scaling import Standardiser


@dataclass(frozen=True)
class CriteoTraining:
    """Settings as in the public code; the rate falls along a cosine, once for each epoch."""

    epochs: int = 50
    batch_rows: int = 8192
    learning_rate: float = 1e-3
    min_rate: float = 5e-6
    weight_decay: float = 1e-4
    embedding_width: int = 8

    def rate(self, epoch: int) -> float:
        return self.min_rate + (self.learning_rate - self.min_rate) * (1 + cos(pi * epoch / self.epochs)) / 2


class EmbeddingNetwork:
    """A vector for each number of each hashed column, and the numbers themselves, into one dense network."""

    def __init__(self, sizes: tuple[int, ...], numbers: int, width: int, seed: int) -> None:
        draw = public_generator(seed, "label_dp/embeddings")
        self._width = width
        self._embeddings: list[Reals] = [draw.standard_normal((size, width), dtype=np.float32) for size in sizes]
        self._dense = Ensemble.starting_from(first_weights(width * len(sizes) + numbers, seed), 1)

    @property
    def parameters(self) -> list[Reals]:
        return [*self._embeddings, *self._dense.parameters]

    def predict(self, codes: Codes, numbers: Reals) -> Reals:
        return self._dense.predict(self._inputs(codes, numbers))[0, :, 0]

    def gradients(self, codes: Codes, numbers: Reals, y: Reals) -> list[Reals]:
        """Return the gradients of the mean squared error, in the order of the parameters."""
        dense, of_sums = self._dense.gradients(self._inputs(codes, numbers), y[None, :, None])
        of_inputs = of_sums[0] @ self._dense.parameters[0][0].T
        found = [np.zeros_like(embedding) for embedding in self._embeddings]
        for place, gradient in enumerate(found):
            np.add.at(gradient, codes[:, place], of_inputs[:, place * self._width : (place + 1) * self._width])
        return [*found, *dense]

    def _inputs(self, codes: Codes, numbers: Reals) -> Reals:
        embedded = [embedding[codes[:, place]] for place, embedding in enumerate(self._embeddings)]
        return np.hstack([*embedded, numbers])


@dataclass
class RMSprop:
    """Steps on parameters in place; weight decay is added to the gradient."""

    parameters: list[Reals]
    weight_decay: float
    beta: float = 0.99
    least: float = 1e-8

    def __post_init__(self) -> None:
        self._squares = [np.zeros_like(one) for one in self.parameters]

    def step(self, gradients: list[Reals], rate: float) -> None:
        for parameter, gradient, square in zip(self.parameters, gradients, self._squares, strict=True):
            gradient += self.weight_decay * parameter
            square *= self.beta
            square += (1 - self.beta) * gradient * gradient
            parameter -= rate * gradient / (np.sqrt(square) + self.least)


def measure(path: Path, plan: Plan, results: Results, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure as for the other data, one network after another; no options are varied."""
    rows = standardised(read(path))
    say(f"Criteo: {len(rows.amounts)} rows, {sum(rows.sizes)} embedded values")
    dataset, training = rows.dataset(), CriteoTraining(epochs=plan.training.epochs)
    cases = [(seed, case) for seed in range(plan.seeds) for case in plan.cases(seed) if not case.varied]
    found, outcomes = results.found(dataset), []
    for done, (seed, case) in enumerate(cases, 1):
        if (seed, case) not in found:
            found[seed, case] = _outcome(rows, case, seed, training)
            results.add(dataset, [found[seed, case]])
        outcomes.append(found[seed, case])
        say(f"Criteo: {done} of {len(cases)} networks, {case.arm} at {case.epsilon:g}: {outcomes[-1]['mse']:.2f}")
    outcomes += [constant(dataset.split(seed), seed) for seed in range(plan.seeds)]
    return label_dp_report.summarise("Criteo", in_order(outcomes))


def standardised(rows: CriteoRows) -> CriteoRows:
    return replace(rows, numbers=Standardiser.fit([rows.numbers]).transform(rows.numbers))


def _outcome(rows: CriteoRows, case: Case, seed: int, training: CriteoTraining) -> Outcome:
    dataset = rows.dataset()
    train_rows, test_rows = dataset.split_rows(seed)
    labels = rows.amounts[train_rows]
    if case.arm != NO_NOISE:
        labels = release(case, dataset, labels, seed).labels
    network = train(rows, train_rows, labels, training, seed)
    error = float(np.square(predict(network, rows, test_rows) - rows.amounts[test_rows]).mean())
    return outcome_of(case, seed, error)


def train(
    rows: CriteoRows, train_rows: NDArray[np.int64], labels: Floats, training: CriteoTraining, seed: int
) -> EmbeddingNetwork:
    """Train a network on these rows.

    Args:
        labels: one label for each of `train_rows`.
    """
    network = EmbeddingNetwork(rows.sizes, rows.numbers.shape[1], training.embedding_width, seed)
    optimiser = RMSprop(network.parameters, training.weight_decay)
    y = labels.astype(np.float32)
    for epoch, batch in batches(len(y), training.epochs, training.batch_rows, seed):
        gradients = network.gradients(*_inputs(rows, train_rows[batch]), y[batch])
        optimiser.step(gradients, training.rate(epoch))
    return network


def predict(network: EmbeddingNetwork, rows: CriteoRows, wanted: NDArray[np.int64]) -> Floats:
    parts = np.array_split(wanted, max(1, len(wanted) // 65_536))
    return np.concatenate([network.predict(*_inputs(rows, part)) for part in parts]).astype(np.float64)


def _inputs(rows: CriteoRows, wanted: NDArray[np.int64]) -> tuple[Codes, Reals]:
    return rows.codes[wanted], rows.numbers[wanted].astype(np.float32)
