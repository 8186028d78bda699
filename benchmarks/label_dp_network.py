"""Many networks d-128-64-1 trained at once: torch.bmm over a leading axis, one Adam, the same batches for all.

Networks share nothing but the batches, and Adam works on each number by itself, so that every network is trained as it
would be alone. `one_by_one` trains them so, with torch.nn and its gradients, and the benchmark compares. Here gradients
are written out, into memory that is used again for each batch, which is a tenth to a third faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from blindfit.algorithms.randomness import public_generator

HIDDEN = (128, 64)
TOGETHER = 16
"""So many networks' activations stay in a core's caches."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingSettings:
    """As published; `halving` is the public code's schedule, else the rate falls to a tenth halfway, as in the text."""

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
    """Predictions at `test`, a row for each network.

    Args:
        features: (n, d).
        labels: (networks, n): each network's own.
        test: (m, d).
        seed: of the first weights and the batches, which all networks share.
    """
    parts = [labels[first : first + TOGETHER] for first in range(0, len(labels), TOGETHER)]
    return np.concatenate([_train_together(features, part, test, settings, seed) for part in parts])


@torch.no_grad()
def _train_together(features: Floats, labels: Floats, test: Floats, settings: TrainingSettings, seed: int) -> Floats:
    ensemble = Ensemble(len(labels), first_weights(features.shape[1], seed), min(settings.batch_rows, len(features)))
    adam = _adam(ensemble.parameters, settings)
    x, y = _tensor(features), _tensor(labels).unsqueeze(2)
    for epoch, rows in batches(len(features), settings, seed):
        adam.param_groups[0]["lr"] = settings.rate(epoch)
        ensemble.compute_gradients(x[rows], y[:, rows])
        adam.step()
    return np.asarray(ensemble.predict(_tensor(test)).squeeze(2).numpy(), dtype=np.float64)


class Ensemble:
    """Networks side by side, all with the same first weights.

    Parameters are of shapes (networks, in, out) and (networks, 1, out); gradients, in each one's `grad`, are of the
    mean squared error.
    """

    def __init__(self, networks: int, weights: list[Tensor], batch_rows: int) -> None:
        self.parameters = [weight.expand(networks, *weight.shape).contiguous() for weight in weights]
        for parameter in self.parameters:
            parameter.grad = torch.empty_like(parameter)
        self._room = [torch.empty(networks, batch_rows, width) for width in (*HIDDEN, *HIDDEN, 1)]

    def predict(self, x: Tensor) -> Tensor:
        w1, b1, w2, b2, w3, b3 = self.parameters
        hidden = torch.bmm(x.expand(len(w1), *x.shape), w1).add_(b1).relu_()
        hidden = torch.bmm(hidden, w2).add_(b2).relu_()
        return torch.bmm(hidden, w3).add_(b3)

    def compute_gradients(self, x: Tensor, y: Tensor) -> None:
        """For one batch: x of shape (rows, d), y of shape (networks, rows, 1)."""
        w1, b1, w2, b2, w3, b3 = self.parameters
        first, second, of_first, of_second, of_output = (room[:, : len(x)] for room in self._room)
        inputs = x.expand(len(w1), *x.shape)
        torch.bmm(inputs, w1, out=first).add_(b1).relu_()
        torch.bmm(first, w2, out=second).add_(b2).relu_()
        torch.bmm(second, w3, out=of_output).add_(b3).sub_(y).mul_(2 / len(x))
        _layer_gradients(second, of_output, w3, b3)
        _through_relu(torch.mul(of_output, w3.mT, out=of_second), second)
        _layer_gradients(first, of_second, w2, b2)
        _through_relu(torch.bmm(of_second, w2.mT, out=of_first), first)
        _layer_gradients(inputs, of_first, w1, b1)


def _layer_gradients(inputs: Tensor, of_outputs: Tensor, weight: Tensor, bias: Tensor) -> None:
    torch.bmm(inputs.mT, of_outputs, out=weight.grad)
    torch.sum(of_outputs, 1, keepdim=True, out=bias.grad)


def _through_relu(gradient: Tensor, output: Tensor) -> None:
    """Zero where the output was; torch's own kernel, as a product with a mask takes 50 times as long."""
    torch.ops.aten.threshold_backward.grad_input(gradient, output, 0, grad_input=gradient)


def one_by_one(features: Floats, labels: Floats, test: Floats, settings: TrainingSettings, seed: int) -> Floats:
    """What `train` returns, by one torch.nn.Sequential for each network."""
    return np.stack([_train_alone(features, own, test, settings, seed) for own in labels])


def _train_alone(features: Floats, labels: Floats, test: Floats, settings: TrainingSettings, seed: int) -> Floats:
    network = _sequential(first_weights(features.shape[1], seed))
    adam = _adam(list(network.parameters()), settings)
    x, y = _tensor(features), _tensor(labels)
    for epoch, rows in batches(len(features), settings, seed):
        adam.param_groups[0]["lr"] = settings.rate(epoch)
        adam.zero_grad()
        nn.functional.mse_loss(network(x[rows]).squeeze(1), y[rows]).backward()  # type: ignore[no-untyped-call]
        adam.step()
    with torch.no_grad():
        return np.asarray(network(_tensor(test)).squeeze(1).numpy(), dtype=np.float64)


def _sequential(parameters: list[Tensor]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        linear = nn.Linear(*weight.shape)
        with torch.no_grad():
            linear.weight.copy_(weight.T)
            linear.bias.copy_(bias[0])
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


# --- what both ways share --------------------------------------------------------------------------------


def first_weights(width: int, seed: int) -> list[Tensor]:
    """Weights (in, out) and biases (1, out) of each layer, uniform within 1/sqrt(in) as torch.nn.Linear draws them."""
    draw = public_generator(seed, "label_dp/weights")
    drawn = []
    for before, after in pairwise((width, *HIDDEN, 1)):
        bound = before**-0.5
        drawn += [draw.uniform(-bound, bound, (before, after)), draw.uniform(-bound, bound, (1, after))]
    return [_tensor(values) for values in drawn]


def batches(rows: int, settings: TrainingSettings, seed: int) -> Iterator[tuple[int, Tensor]]:
    """(epoch, rows of the batch); the last batch of an epoch is what is left."""
    draw = public_generator(seed, "label_dp/batches")
    for epoch in range(settings.epochs):
        order = torch.from_numpy(draw.permutation(rows))
        for batch in torch.split(order, settings.batch_rows):
            yield epoch, batch


def _adam(parameters: list[Tensor], settings: TrainingSettings) -> torch.optim.Adam:
    return torch.optim.Adam(parameters, settings.learning_rate, weight_decay=settings.weight_decay, fused=True)


def _tensor(values: Floats) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float32))


def largest_difference(features: Floats, labels: Floats, test: Floats, settings: TrainingSettings, seed: int) -> float:
    """Of predictions by both ways, after one epoch: single precision's rounding, which grows as training goes on."""
    once = replace(settings, epochs=1)
    together, alone = (way(features, labels, test, once, seed) for way in (train, one_by_one))
    return float(np.abs(together - alone).max())
