"""Estimate what a regression on released labels takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from blindfit.algorithms.fit_cost import NUMBER_BYTES, FitCost
from blindfit.algorithms.statistics.label_dp.options import OptionValue, check_options, widths_of

NODE_BYTES = 400  # of a tree: in scikit-learn's arrays, in ours, and as JSON
WEIGHT_BYTES = 12 * NUMBER_BYTES  # of a network: itself, its gradient, two moments, our copy, and as JSON
OPERATIONS_OF_A_SPLIT = 8  # a value of one column, sorted and summed at one level of a tree


def regression_cost(regressor: str, options: Mapping[str, OptionValue], n_rows: int, n_columns: int) -> FitCost:
    """Return the cost of a regression on released labels.

    Raises:
        ConfigError: the regressor or an option of it is not on the list.
    """
    chosen = check_options(regressor, options)
    if regressor == "mlp":
        return _network_cost(chosen, n_rows, n_columns)
    if regressor in ("decision-tree", "random-forest", "gradient-boosting"):
        return _trees_cost(chosen, n_rows, n_columns)
    passes = int(chosen.get("max_iter", n_columns))  # without iterations, each column meets each other one
    operations = 2.0 * passes * n_rows * n_columns
    return FitCost(NUMBER_BYTES * n_columns**2, operations, "label_dp.options.max_iter, rows or columns")


def _network_cost(chosen: Mapping[str, OptionValue], n_rows: int, n_columns: int) -> FitCost:
    sizes = (n_columns, *widths_of(str(chosen["hidden_layer_sizes"])), 1)
    weights = sum((inner + 1) * outer for inner, outer in itertools.pairwise(sizes))
    operations = 6.0 * int(chosen["max_iter"]) * n_rows * weights  # a product forward, two backward
    lower = "label_dp.options.hidden_layer_sizes or max_iter"
    return FitCost(WEIGHT_BYTES * weights, operations, lower)


def _trees_cost(chosen: Mapping[str, OptionValue], n_rows: int, n_columns: int) -> FitCost:
    trees, depth = int(chosen.get("n_estimators", 1)), int(chosen["max_depth"])
    leaves = min(2**depth, max(1, n_rows // int(chosen["min_samples_leaf"])))
    levels = min(depth, math.ceil(math.log2(leaves)) + 1)
    operations = float(OPERATIONS_OF_A_SPLIT) * trees * levels * n_rows * n_columns
    lower = "label_dp.options.n_estimators or max_depth"
    return FitCost(NODE_BYTES * 2 * leaves * trees, operations, lower)
