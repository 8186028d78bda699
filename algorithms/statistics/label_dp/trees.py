"""Regression trees and layers as arrays: their form in a model file, and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.linear import fields
from blindfit.algorithms.statistics.linear.logistic import Floats

Places = NDArray[np.int64]
LEAF = -1


@dataclass(frozen=True, repr=False)
class Tree:
    """A tree: a row goes from a node to `left` if its feature is at most the threshold, else to `right`.

    Args:
        feature: column that a node compares, LEAF at a leaf.
        left, right: nodes further on in the arrays, so that every path ends.
        value: result at a leaf.
    """

    feature: Places
    threshold: Floats
    left: Places
    right: Places
    value: Floats

    def predict(self, rows: NDArray[np.float32]) -> Floats:
        """Return predictions of rows in single precision, as scikit-learn's trees do."""
        nodes = np.zeros(len(rows), dtype=np.int64)
        open_rows = np.arange(len(rows))
        while (open_rows := open_rows[self.feature[nodes[open_rows]] != LEAF]).size:
            at = nodes[open_rows]
            is_left = rows[open_rows, self.feature[at]] <= self.threshold[at]
            nodes[open_rows] = np.where(is_left, self.left[at], self.right[at])
        return np.asarray(self.value[nodes], dtype=np.float64)

    @classmethod
    def of_estimator(cls, tree: Any) -> Tree:
        """Convert scikit-learn's `tree_`."""
        is_leaf = tree.children_left == tree.children_right
        return cls(
            feature=np.where(is_leaf, LEAF, tree.feature).astype(np.int64),
            threshold=np.where(is_leaf, 0.0, tree.threshold),
            left=np.where(is_leaf, LEAF, tree.children_left).astype(np.int64),
            right=np.where(is_leaf, LEAF, tree.children_right).astype(np.int64),
            value=np.where(is_leaf, tree.value[:, 0, 0], 0.0),
        )

    def to_dict(self, columns: Sequence[str]) -> dict[str, Any]:
        """Return the tree as JSON. A leaf's feature is null, and only its value counts; other nodes' values do not."""
        return {
            "feature": [None if j == LEAF else columns[j] for j in self.feature.tolist()],
            "at_most": self.threshold.tolist(),
            "left": self.left.tolist(),
            "right": self.right.tolist(),
            "value": self.value.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], columns: Sequence[str]) -> Tree:
        """Restore a tree; raise DataError, which names a missing or wrong field."""
        names = stored.get("feature")
        place = {name: j for j, name in enumerate(columns)} | {None: LEAF}
        if not isinstance(names, list) or not names or any(not isinstance(n, str | None) for n in names):
            raise DataError("feature: not a list of names")
        if strangers := [name for name in names if name not in place]:
            raise DataError(f"feature: {strangers[0]} is not a column that is kept")
        feature = np.array([place[name] for name in names], dtype=np.int64)
        left, right = (_nodes(stored, side, feature) for side in ("left", "right"))
        threshold, value = (numbers(stored, name, len(names)) for name in ("at_most", "value"))
        return cls(feature, threshold, left, right, value)


def _nodes(stored: Mapping[str, Any], name: str, feature: Places) -> Places:
    found = stored.get(name)
    if not isinstance(found, list) or len(found) != len(feature) or any(type(node) is not int for node in found):
        raise DataError(f"{name}: not a node for each node")
    for place, node in enumerate(found):
        if feature[place] != LEAF and not place < node < len(feature):
            raise DataError(f"{name}: node {place} does not lead to a later node")
    return np.array([node if feature[place] != LEAF else LEAF for place, node in enumerate(found)], dtype=np.int64)


@dataclass(frozen=True, repr=False)
class Layer:
    """A layer: rows -> rows @ weights + bias; between layers, negative numbers become 0."""

    weights: Floats  # (in, out)
    bias: Floats

    def to_dict(self) -> dict[str, Any]:
        return {"weights": self.weights.tolist(), "bias": self.bias.tolist()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], width: int) -> Layer:
        """Restore a layer; raise DataError, which names a missing or wrong field."""
        bias = numbers(stored, "bias")
        weights = stored.get("weights")
        if not isinstance(weights, list) or len(weights) != width:
            raise DataError("weights: not one line for each input of the layer")
        lines = [numbers({"weights": line}, "weights", len(bias)) for line in weights]
        return cls(np.array(lines), bias)


def predict_layers(layers: Sequence[Layer], rows: Floats) -> Floats:
    for layer in layers[:-1]:
        rows = np.maximum(rows @ layer.weights + layer.bias, 0.0)
    return np.asarray((rows @ layers[-1].weights + layers[-1].bias)[:, 0], dtype=np.float64)


def numbers(stored: Mapping[str, Any], name: str, count: int | None = None) -> Floats:
    found = stored.get(name)
    if not isinstance(found, list) or not found or not all(map(fields.is_number, found)):
        raise DataError(f"{name}: missing or not a list of finite numbers")
    if count is not None and len(found) != count:
        raise DataError(f"{name}: {len(found)} numbers where {count} are needed")
    return np.array(found, dtype=np.float64)
