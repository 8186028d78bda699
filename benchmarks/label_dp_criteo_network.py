"""The published network for Criteo: embedded hashed columns and three standardised numbers into dense layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks import label_dp_report
from benchmarks.label_dp_arms import NO_NOISE, Case, release
from benchmarks.label_dp_criteo import CriteoRows, Floats, read
from benchmarks.label_dp_runs import Outcome, Plan, constant, in_order
from blindfit.algorithms.statistics.scaling import Standardiser


@dataclass(frozen=True)
class CriteoTraining:
    """As in the public code; the rate falls along a cosine, once for each epoch."""

    epochs: int = 50
    batch_rows: int = 8192
    learning_rate: float = 1e-3
    least_rate: float = 5e-6
    weight_decay: float = 1e-4
    embedding_width: int = 8


class EmbeddingNetwork(nn.Module):
    def __init__(self, sizes: tuple[int, ...], numbers: int, width: int) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(size, width) for size in sizes)
        inputs = numbers + width * len(sizes)
        self.dense = nn.Sequential(
            nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0)
        )

    def forward(self, codes: Tensor, numbers: Tensor) -> Tensor:
        embedded = [embedding(codes[:, place]) for place, embedding in enumerate(self.embeddings)]
        out: Tensor = self.dense(torch.cat([*embedded, numbers], dim=1))
        return out


def measure(path: Path, plan: Plan, say: Callable[[str], None]) -> dict[str, Any]:
    """As for the other data, one network after another; no options are varied."""
    rows = standardised(read(path))
    say(f"Criteo: {len(rows.amounts)} rows, {sum(rows.sizes)} embedded values")
    dataset, training, outcomes = rows.dataset(), CriteoTraining(epochs=plan.training.epochs), []
    cases = [(seed, case) for seed in range(plan.seeds) for case in plan.cases(seed) if not case.varied]
    for done, (seed, case) in enumerate(cases, 1):
        outcomes.append(_outcome(rows, case, seed, training))
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
    return {**asdict(case), "seed": seed, "mse": error}


def train(
    rows: CriteoRows, train_rows: np.ndarray, labels: Floats, training: CriteoTraining, seed: int
) -> EmbeddingNetwork:
    """`labels` are of `train_rows`."""
    torch.manual_seed(seed)
    network = EmbeddingNetwork(rows.sizes, rows.numbers.shape[1], training.embedding_width)
    optimiser = torch.optim.RMSprop(network.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, training.epochs, training.least_rate)
    y = torch.from_numpy(labels.astype(np.float32))
    for _ in range(training.epochs):
        for batch in torch.split(torch.randperm(len(y)), training.batch_rows):
            optimiser.zero_grad()
            predicted = network(*_inputs(rows, train_rows[batch.numpy()]))
            nn.functional.mse_loss(predicted, y[batch]).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        schedule.step()
    return network


@torch.no_grad()
def predict(network: EmbeddingNetwork, rows: CriteoRows, wanted: np.ndarray) -> Floats:
    parts = np.array_split(wanted, max(1, len(wanted) // 65_536))
    return np.concatenate([network(*_inputs(rows, part)).numpy() for part in parts]).astype(np.float64)


def _inputs(rows: CriteoRows, wanted: np.ndarray) -> tuple[Tensor, Tensor]:
    numbers = rows.numbers[wanted].astype(np.float32)
    return torch.from_numpy(rows.codes[wanted]), torch.from_numpy(numbers)
