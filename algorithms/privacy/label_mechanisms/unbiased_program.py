"""The linear program of the unbiased randomiser, and its solution in integers."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import RangeError
from blindfit.algorithms.privacy.label_mechanisms.base import Floats
from blindfit.algorithms.privacy.label_mechanisms.drawing import exp_bounds

Weights = tuple[tuple[int, ...], ...]

_SCALE = 2**54
_FIRST_MIX, _LAST_MIX = 2.0**-34, 2.0**-6
_TOLERANCE = 1e-10
_EASIER = "lower output_cells, or use another mechanism without bias: laplace or staircase"


def solve(inputs: Floats, outputs: Floats, mass: Floats, epsilon: float) -> Floats:
    """Return M, up to the solver's tolerance; inputs and outputs in units of the labels' range.

    Raises:
        RangeError: the solver found no solution.
    """
    from scipy.optimize import linprog  # here, as it takes long to import, and only this mechanism needs it

    k, m = len(inputs), len(outputs)
    errors = mass[:, None] * (outputs[None, :] - inputs[:, None]) ** 2
    limits, equalities = _constraints(k, tuple(outputs.tolist()), math.exp(-epsilon))
    found = linprog(
        np.concatenate((errors.ravel() / errors.max(), np.zeros(m))),
        A_ub=limits,
        b_ub=np.zeros(2 * k * m),
        A_eq=equalities,
        b_eq=np.concatenate((np.ones(k), inputs / _widest(outputs))),
        method="highs",
        options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
    )
    if found.status != 0:
        raise RangeError(f"unbiased: the linear program was not solved: {found.message}", hint=_EASIER)
    return np.asarray(np.maximum(found.x[: k * m].reshape(k, m), 0.0))


@lru_cache(maxsize=1)
def _constraints(k: int, outputs: tuple[float, ...], min_ratio: float) -> tuple[Any, Any]:
    """Return the constraints on M and Q: those of the ratios, and those of sums and means.

    The last ones are cached, as only the prior differs between the fits of an audit.
    """
    from scipy import sparse

    m = len(outputs)
    each, rows = sparse.eye(k * m), sparse.kron(sparse.eye(k), np.ones((1, m)))
    columns = sparse.kron(np.ones((k, 1)), sparse.eye(m))
    means = sparse.kron(sparse.eye(k), np.array(outputs)[None, :] / _widest(np.array(outputs)))
    nothing = sparse.csr_matrix((k, m))
    limits = sparse.vstack((sparse.hstack((each, -columns)), sparse.hstack((-each, min_ratio * columns))))
    equalities = sparse.vstack((sparse.hstack((rows, nothing)), sparse.hstack((means, nothing))))
    return limits.tocsr(), equalities.tocsr()


def _widest(outputs: Floats) -> float:
    return max(1.0, float(np.abs(outputs).max()))


def integer_weights(program: Floats, inputs: list[int], outputs: list[int], epsilon: float) -> Weights:
    """Weights in the program's ratios that keep epsilon exactly and each mean to 2^-54 of the outputs' width.

    Raises:
        RangeError: no mixture of up to a 64th makes up for the solver's errors.
    """
    raised = _raise_weights(np.array(np.rint(program * _SCALE), dtype=np.int64).astype(object), epsilon)
    mix = _FIRST_MIX
    while mix <= _LAST_MIX:
        weights = _balance(raised, inputs, outputs, mix)
        if weights is not None and _keeps(weights, epsilon):
            return tuple(tuple(int(w) for w in row) for row in weights)
        mix *= 4
    raise RangeError(f"unbiased: the linear program's solution at epsilon {epsilon:g} is too inexact", hint=_EASIER)


def _raise_weights(weights: npt.NDArray[np.object_], epsilon: float) -> npt.NDArray[np.object_]:
    """Raise each weight to at least its column's largest / e^epsilon, and to at least 1."""
    most = exp_bounds(epsilon)[0]
    least = [max(1, math.ceil(top / most)) for top in weights.max(axis=0)]
    raised: npt.NDArray[np.object_] = np.maximum(weights, np.array(least, dtype=object))
    return raised


def _balance(
    weights: npt.NDArray[np.object_], inputs: list[int], outputs: list[int], mix: float
) -> npt.NDArray[np.object_] | None:
    """Add to each row's first and last output until its total is the common one and its mean is its input."""
    first, last = outputs[0], outputs[-1]
    total = int(max(weights.sum(axis=1))) + int(_SCALE * mix)
    balanced = weights.copy()
    for i, label in enumerate(inputs):
        missing = total - int(weights[i].sum())
        moment = label * total - int((weights[i] * np.array(outputs, dtype=object)).sum())
        to_last = round((moment - first * missing) / (last - first))
        if not 0 <= to_last <= missing:
            return None
        balanced[i, 0] += missing - to_last
        balanced[i, -1] += to_last
    return balanced


def _keeps(weights: npt.NDArray[np.object_], epsilon: float) -> bool:
    most = exp_bounds(epsilon)[0]
    return all(max(column) <= most * min(column) for column in weights.T)
