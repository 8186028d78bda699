"""The rows of the WALR benchmarks, and the release that they have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms import fixed_point
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows, ReleaseSettings
from blindfit.algorithms.randomness import system_uniform
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows
from blindfit.algorithms.statistics.linear.scaling import Standardiser, append_constant, row_norms
from blindfit.algorithms.statistics.linear.solver_settings import SolverSettings
from blindfit.algorithms.statistics.walr import defaults
from blindfit.algorithms.statistics.walr.fit import fit_released
from blindfit.algorithms.statistics.walr.model import WALRModel

EXAMPLE = Path(__file__).parents[2] / "examples" / "advertising"
DELTA = 1e-5
FRAC_BITS = 16
Floats = NDArray[np.float64]


def rand_data() -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return features, labels 0 and 1, and a mask of the held-out rows."""
    from statsmodels.datasets import randhie

    data = randhie.load_pandas().data
    y = (data["mdvis"] > 0).to_numpy(np.float64)
    x = data.drop(columns="mdvis").to_numpy(np.float64)
    return x, y, np.random.default_rng(7).random(len(y)) < 0.3


@dataclass(frozen=True)
class PreparedRows:
    """Rows of the active party and labels of the measurement server, which are the same for every draw of the noise."""

    standardiser: Standardiser
    bound: int  # of a row's norm, in steps of the grid
    rows: ConsumerRows
    labels: dict[str, int]

    @classmethod
    def of(cls, x: Floats, y: Floats) -> PreparedRows:
        standardiser = Standardiser.fit([x])
        columns = append_constant(standardiser.transform(x))
        bound = fixed_point.norm_bound_steps(defaults.default_norm_bound(row_norms(columns)), FRAC_BITS)
        ids = tuple(map(str, range(len(y))))
        rows = ConsumerRows(ids, fixed_point.quantise_rows(columns, bound, FRAC_BITS))
        return cls(standardiser, bound, rows, dict(zip(ids, y.astype(int).tolist(), strict=True)))


def private_model(epsilon: float, data: PreparedRows) -> WALRModel:
    """Run the protocol's own steps with both roles in this process, and return the model.

    The noise is fresh, from the system's generator.
    """
    settings = ReleaseSettings("rand", "1", epsilon, DELTA, frac_bits=FRAC_BITS)
    request = walr.step_1_open(data.rows, data.bound, settings)
    answer = walr.run_locally(data.rows, request, data.labels, system_uniform)
    mu, noise_std = walr.step_6_mean(answer, request)
    norm_bound = data.bound * 2.0**-FRAC_BITS
    fit = fit_released(
        QuantisedRows(data.rows.weights, FRAC_BITS),
        mu,
        noise_std=noise_std,
        norm_bound=norm_bound,
        epsilon=epsilon,
        settings=SolverSettings(l2=0.0),
    )
    return WALRModel(data.standardiser, fit.result.weights, True, norm_bound)
